#include "plugin/describe.hpp"

#include "plugin/ask_child.hpp"
#include "plugin/describe_cache.hpp"
#include "plugin/loader.hpp"

namespace lhost {
namespace {

constexpr std::chrono::seconds kLimit{20};  // LibTorch from a cold disk takes a few

// What the note alone refuses needs no child.
Described refused_by_note(const std::string& path) {
  std::string why;
  Exit code = Exit::plugin;
  try {
    const Note note = read_note(path);
    why = refusal(note, note.torch.empty() ? "" : find_libtorch().version);
  } catch (const Failure& f) {
    why = f.what();
    code = f.code;
  }
  return why.empty() ? Described{} : Described{{}, path + ": " + why, code};
}

}  // namespace

const ComponentDescription* PluginDescription::find(std::string_view kind, std::string_view component) const {
  const ComponentDescription* found = nullptr;
  for (const ComponentDescription& c : components) {
    if (c.kind != kind || (!component.empty() && c.name != component)) continue;
    if (found) return nullptr;  // several, and no name to choose by
    found = &c;
  }
  return found;
}

std::vector<Described> try_describe_plugins(const std::vector<std::string>& paths) {
  DescribeCache cache;
  std::vector<Described> result(paths.size());
  std::vector<FileKey> keys(paths.size());
  std::vector<size_t> asked;
  std::vector<std::string> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    try {
      keys[i] = file_key(paths[i]);
    } catch (const Failure& f) {
      result[i] = {{}, f.what(), f.code};
      continue;
    }
    result[i] = refused_by_note(keys[i].path);
    if (!result[i].broken.empty()) continue;
    if (const Described* known = cache.find(keys[i])) {
      result[i] = *known;
    } else {
      asked.push_back(i);
      files.push_back(keys[i].path);
    }
  }
  if (files.empty()) return result;
  std::vector<Answer> answers = ask_child(installation().host, files, kLimit);
  for (size_t a = 0; a < asked.size(); ++a) {
    if (answers[a].lasting) cache.put(keys[asked[a]], answers[a].described);
    result[asked[a]] = std::move(answers[a].described);
  }
  cache.save();
  return result;
}

std::vector<PluginDescription> describe_plugins(const std::vector<std::string>& paths) {
  std::vector<PluginDescription> plugins;
  std::string faults;
  Exit code = Exit::done;
  for (Described& d : try_describe_plugins(paths)) {
    if (d.broken.empty()) {
      plugins.push_back(std::move(d.plugin));
      continue;
    }
    faults += (faults.empty() ? "" : "\n") + d.broken;
    if (code == Exit::done) code = d.code;
  }
  if (!faults.empty()) throw Failure(code, faults);
  return plugins;
}

}  // namespace lhost
