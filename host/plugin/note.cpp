#include "plugin/note.hpp"

#include "base/failure.hpp"
#include "plugin/elf.hpp"
#include "plugin/kinds.hpp"

#include <lhost/abi.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace lhost {
namespace {

[[noreturn]] void malformed(const std::string& why) { throw Failure(Exit::plugin, "malformed note: " + why); }

template <size_t N>
std::string field(const char (&text)[N], const char* what) {
  const void* end = std::memchr(text, 0, N);
  if (!end) malformed(std::string(what) + " does not end inside its " + std::to_string(N) + " bytes");
  std::string s(text, static_cast<const char*>(end));
  const auto printable = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (!std::all_of(s.begin(), s.end(), printable)) malformed(std::string(what) + " holds unprintable bytes");
  return s;
}

bool identifier(std::string_view s) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !s.empty() && std::all_of(s.begin(), s.end(), good);
}

NotedComponent parse_component(const std::string& item) {
  const size_t slash = item.find('/'), colon = item.find(':');
  const bool ordered = slash != item.npos && colon != item.npos && slash < colon;
  NotedComponent c;
  if (ordered) c = {item.substr(0, slash), item.substr(slash + 1, colon - slash - 1), item.substr(colon + 1)};
  if (!identifier(c.kind) || !identifier(c.revision) || !identifier(c.name))
    malformed("found the component \"" + item + "\", expected a form like \"strategy/0.1:ddp\"");
  return c;
}

std::vector<NotedComponent> parse_components(const std::string& text) {
  if (text.empty()) malformed("it names no component");
  std::vector<NotedComponent> list;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    NotedComponent c = parse_component(text.substr(from, comma - from));
    for (const NotedComponent& other : list)
      if (other.kind == c.kind && other.name == c.name)
        malformed("it names the component " + c.kind + ":" + c.name + " twice");
    list.push_back(std::move(c));
    from = comma + 1;
  }
  return list;
}

Note parse(const ByteSource& bytes) {
  ElfFacts facts = read_elf(bytes);
  lh_note_v1 raw{};
  if (facts.note.size() < sizeof raw)
    malformed("found " + std::to_string(facts.note.size()) + " bytes, expected at least " +
              std::to_string(sizeof raw));
  std::memcpy(&raw, facts.note.data(), sizeof raw);
  if (raw.size < sizeof raw || raw.size > facts.note.size())
    malformed("it says that it has " + std::to_string(raw.size) + " bytes, it has " +
              std::to_string(facts.note.size()));
  Note n;
  n.abi_major = raw.abi_major;
  n.abi_minor = raw.abi_minor;
  n.min_minor = raw.min_minor;
  n.name = field(raw.name, "the name");
  n.version = field(raw.version, "the version");
  n.license = field(raw.license, "the licence");
  n.torch = field(raw.torch, "the LibTorch version");
  if (!identifier(n.name))
    malformed("the plugin's name is \"" + n.name + "\"; expected letters, digits, . _ -");
  n.components = parse_components(field(raw.components, "the list of components"));
  n.needed = std::move(facts.needed);
  return n;
}

std::string cannot_read() { return std::string("cannot be read: ") + std::strerror(errno); }

struct File {
  int fd;
  ~File() { close(fd); }
};

// "2.11.0+cpu" -> "2.11"
std::string major_minor(const std::string& version) {
  const size_t dot = version.find('.');
  return dot == version.npos ? version : version.substr(0, version.find_first_not_of("0123456789", dot + 1));
}

std::string torch_refusal(const Note& n, const std::string& libtorch) {
  for (const std::string& so : n.needed) {
    if (so.rfind("libtorch", 0) != 0 && so.rfind("libc10", 0) != 0) continue;
    if (n.torch.empty())
      return "its note says that it uses no LibTorch, but it is linked to " + so +
             "; build it with lhost_add_plugin, or name the LibTorch version in the note";
    if (so.size() < 3 || so.compare(so.size() - 3, 3, ".so") != 0)
      return "linked to " + so + ", a LibTorch with other file names than this host's " + libtorch +
             "; build it against that one";
  }
  if (n.torch.empty()) return {};
  if (libtorch.empty())
    return "needs LibTorch " + n.torch + ", and none was found; `lhost doctor` says where it was looked for";
  if (major_minor(n.torch) != major_minor(libtorch))
    return "built for LibTorch " + n.torch + ", this host runs " + libtorch + "; build it against LibTorch " +
           major_minor(libtorch);
  return {};
}

}  // namespace

Note parse_note(std::string_view bytes) {
  return parse(
      {bytes.size(), [bytes](uint64_t at, void* to, size_t n) { std::memcpy(to, bytes.data() + at, n); }});
}

Note read_note(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const File file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info {};
  if (file.fd < 0 || fstat(file.fd, &info) != 0) throw Failure(Exit::plugin, cannot_read());
  if (!S_ISREG(info.st_mode)) throw Failure(Exit::plugin, "not a regular file");
  return parse({static_cast<uint64_t>(info.st_size), [&file](uint64_t at, void* to, size_t n) {
                  for (size_t done = 0; done < n;) {
                    const ssize_t got = pread(file.fd, static_cast<char*>(to) + done, n - done,
                                              static_cast<off_t>(at + done));
                    if (got < 0 && errno == EINTR) continue;
                    if (got < 0) throw Failure(Exit::plugin, cannot_read());
                    if (got == 0) throw Failure(Exit::plugin, "truncated while it was read");
                    done += static_cast<size_t>(got);
                  }
                }});
}

std::string refusal(const Note& n, const std::string& libtorch) {
  const std::string ours = std::to_string(LH_ABI_MAJOR) + "." + std::to_string(LH_ABI_MINOR);
  if (n.abi_major != LH_ABI_MAJOR)
    return "built for plugin ABI " + std::to_string(n.abi_major) + ".x, this host speaks " + ours +
           (n.abi_major > LH_ABI_MAJOR ? ": use a newer lhost or an older plugin" : ": use a newer plugin");
  if (n.min_minor > LH_ABI_MINOR)
    return "needs plugin ABI " + std::to_string(n.abi_major) + "." + std::to_string(n.min_minor) +
           ", this host speaks " + ours + ": use a newer lhost or an older plugin";
  for (const NotedComponent& c : n.components) {
    const std::string_view revision = known_revision(c.kind);
    if (revision.empty() || revision == c.revision) continue;
    const bool draft = c.revision.rfind("0.", 0) == 0 || revision.rfind("0.", 0) == 0;
    return c.kind + ":" + c.name + " is built for " + c.kind + "/" + c.revision + ", this host speaks " +
           c.kind + "/" + std::string(revision) + (draft ? " (a draft: both must be the same)" : "") +
           "; build it against this host's headers";
  }
  return torch_refusal(n, libtorch);
}

}  // namespace lhost
