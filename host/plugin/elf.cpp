#include "plugin/elf.hpp"

#include "base/failure.hpp"

#include <lhost/abi.h>

#include <elf.h>

#include <cstring>
#include <optional>

namespace lhost {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
constexpr const char* kMachineName = "aarch64";
#else
#error "name this machine's e_machine"
#endif

// Real ones are a few hundred bytes; the limits bound the work that a hostile file can ask for.
constexpr uint64_t kMaxNoteSegment = 1 << 20;
constexpr uint64_t kMaxDynamicSegment = 1 << 20;
constexpr uint64_t kMaxSoname = 4096;

[[noreturn]] void refuse(const std::string& why) { throw Failure(Exit::plugin, why); }

class Reader {
 public:
  explicit Reader(const ByteSource& bytes) : bytes_(bytes) {}

  ElfFacts facts() {
    check_header();
    read_segments();
    ElfFacts f;
    std::optional<std::string> note;
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_NOTE && !note) note = find_note(s);
    if (!note) refuse("a shared object, but not an lhost plugin (it has no LHOST note)");
    f.note = std::move(*note);
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_DYNAMIC) f.needed = read_dynamic(s);
    return f;
  }

 private:
  bool inside(uint64_t offset, uint64_t n) const { return n <= bytes_.size && offset <= bytes_.size - n; }

  void need(uint64_t offset, uint64_t n, const char* what) const {
    if (inside(offset, n)) return;
    const uint64_t end = offset > UINT64_MAX - n ? UINT64_MAX : offset + n;
    refuse(std::string("truncated: ") + what + " ends at byte " + std::to_string(end) + " of " +
           std::to_string(bytes_.size));
  }
  template <class T>
  T at(uint64_t offset, const char* what) const {
    need(offset, sizeof(T), what);
    T t;
    bytes_.read(offset, &t, sizeof t);
    return t;
  }
  std::string text(uint64_t offset, uint64_t n, const char* what) const {
    need(offset, n, what);
    std::string s(n, '\0');
    if (n) bytes_.read(offset, s.data(), n);
    return s;
  }

  void check_header() {
    if (bytes_.size == 0) refuse("an empty file, not a plugin");
    if (bytes_.size < SELFMAG || text(0, SELFMAG, "the header") != ELFMAG) refuse("not an ELF file");
    header_ = at<Elf64_Ehdr>(0, "the header");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64) refuse("not a 64-bit ELF file; this host is 64-bit");
    if (header_.e_ident[EI_DATA] != ELFDATA2LSB) refuse("a big-endian ELF file; this host is little-endian");
    if (header_.e_machine != kMachine)
      refuse("built for another machine (ELF machine " + std::to_string(header_.e_machine) +
             "), this host runs on " + kMachineName);
    if (header_.e_type == ET_REL) refuse("an object file, expected a shared object; link it with -shared");
    if (header_.e_type != ET_DYN)
      refuse("not a shared object (ELF type " + std::to_string(header_.e_type) + ")");
  }

  void read_segments() {
    if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0)
      refuse("a damaged ELF file: " + std::to_string(header_.e_phnum) + " program headers of " +
             std::to_string(header_.e_phentsize) + " bytes");
    const std::string table =
        text(header_.e_phoff, uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr), "the program header table");
    segments_.resize(header_.e_phnum);
    std::memcpy(segments_.data(), table.data(), table.size());
    for (const Elf64_Phdr& s : segments_) {
      if (s.p_type == PT_INTERP) refuse("an executable, expected a shared object");
      // A file cut short would kill the process with SIGBUS inside dlopen.
      if (s.p_type == PT_LOAD || s.p_type == PT_NOTE || s.p_type == PT_DYNAMIC)
        need(s.p_offset, s.p_filesz, "a segment");
      if (s.p_type == PT_GNU_STACK && (s.p_flags & PF_X))
        refuse("asks for an executable stack; link it with -Wl,-z,noexecstack");
    }
  }

  std::optional<std::string> find_note(const Elf64_Phdr& s) const {
    if (s.p_filesz > kMaxNoteSegment)
      refuse("a damaged ELF file: a note segment of " + std::to_string(s.p_filesz) + " bytes");
    const std::string notes = text(s.p_offset, s.p_filesz, "a segment");
    const uint64_t align = s.p_align == 8 ? 8 : 4;
    const auto padded = [&](uint64_t n) { return (n + align - 1) / align * align; };
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
      Elf64_Nhdr h;
      std::memcpy(&h, notes.data() + at, sizeof h);
      const uint64_t name = at + sizeof h;
      const uint64_t desc = at + padded(sizeof h + h.n_namesz);
      if (desc > notes.size() || h.n_descsz > notes.size() - desc) return {};
      const bool ours = h.n_namesz == sizeof(LH_NOTE_OWNER) && h.n_type == LH_NOTE_TYPE &&
                        std::memcmp(notes.data() + name, LH_NOTE_OWNER, sizeof(LH_NOTE_OWNER)) == 0;
      if (ours) return notes.substr(desc, h.n_descsz);
      at = desc + padded(h.n_descsz);
    }
    return {};
  }

  std::vector<std::string> read_dynamic(const Elf64_Phdr& s) const {
    if (s.p_filesz > kMaxDynamicSegment)
      refuse("a damaged ELF file: a dynamic segment of " + std::to_string(s.p_filesz) + " bytes");
    std::vector<Elf64_Dyn> entries(s.p_filesz / sizeof(Elf64_Dyn));
    if (entries.empty()) return {};
    bytes_.read(s.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn));
    uint64_t strings = 0, strings_size = 0;
    std::vector<uint64_t> offsets;
    for (const Elf64_Dyn& d : entries) {
      if (d.d_tag == DT_NULL) break;
      if (d.d_tag == DT_STRTAB) strings = d.d_un.d_ptr;
      if (d.d_tag == DT_STRSZ) strings_size = d.d_un.d_val;
      if (d.d_tag == DT_NEEDED) offsets.push_back(d.d_un.d_val);
      if (d.d_tag == DT_TEXTREL || (d.d_tag == DT_FLAGS && (d.d_un.d_val & DF_TEXTREL)))
        refuse("has text relocations; compile it with -fPIC");
    }
    std::vector<std::string> needed;
    for (uint64_t o : offsets) needed.push_back(soname(strings, strings_size, o));
    return needed;
  }

  std::string soname(uint64_t strings, uint64_t strings_size, uint64_t offset) const {
    for (const Elf64_Phdr& s : segments_) {
      if (s.p_type != PT_LOAD || strings < s.p_vaddr || strings - s.p_vaddr >= s.p_filesz) continue;
      if (offset >= strings_size) break;
      const uint64_t table = s.p_offset + (strings - s.p_vaddr);
      if (!inside(table, strings_size)) break;
      std::string name = text(table + offset, std::min(strings_size - offset, kMaxSoname), "a name");
      const size_t end = name.find('\0');
      if (end == name.npos) break;
      name.resize(end);
      return name;
    }
    refuse("a damaged ELF file: the name of a needed library is outside its string table");
  }

  const ByteSource& bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

ElfFacts read_elf(const ByteSource& bytes) { return Reader(bytes).facts(); }

}  // namespace lhost
