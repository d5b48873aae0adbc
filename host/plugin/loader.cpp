#include "plugin/loader.hpp"

#include "base/failure.hpp"
#include "plugin/host_table.hpp"
#include "plugin/plugin_table.hpp"
#include "plugin/shared_object.hpp"

#include <sys/stat.h>

#include <deque>
#include <filesystem>
#include <mutex>

namespace fs = std::filesystem;

namespace lhost {
namespace {

struct Entry {
  dev_t device;
  ino_t inode;
  LoadedPlugin plugin;
  enum { fresh, initialised, failed } state = fresh;
  std::string failure;  // of init: asked once, remembered
};

struct Store {
  std::mutex mutex;
  std::deque<Entry> entries;  // addresses stay
};
Store& store() {
  static auto& s = *new Store;  // never destroyed: plugins may run until the very end of the process
  return s;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Failure(Exit::plugin, path + ": " + why);
}

Entry& loaded(const std::string& path) {
  std::error_code ec;
  const std::string file = fs::canonical(path, ec).string();
  struct stat info {};
  if (ec || stat(file.c_str(), &info) != 0) throw Failure(Exit::usage, path + ": no such file");
  for (Entry& e : store().entries)
    if (e.plugin.path == file || (e.device == info.st_dev && e.inode == info.st_ino)) return e;
  Entry e{info.st_dev, info.st_ino, {}, Entry::fresh, {}};
  e.plugin.path = file;
  try {
    e.plugin.note = read_note(file);
    const std::string libtorch = e.plugin.note.torch.empty() ? "" : find_libtorch().version;
    if (const std::string why = refusal(e.plugin.note, libtorch); !why.empty())
      throw Failure(Exit::plugin, why);
    if (!libtorch.empty()) load_libtorch();  // refusal() has held the note against DT_NEEDED
    const SharedObject& object = open_shared_object(file);
    void* entry = find_symbol(object, "lh_plugin_v1");
    if (!entry) throw Failure(Exit::plugin, "its note is there, but the symbol lh_plugin_v1 is missing");
    read_plugin_table(reinterpret_cast<PluginEntry>(entry), e.plugin);
  } catch (const Failure& f) {
    throw Failure(f.code, file + ": " + f.what());
  }
  return store().entries.emplace_back(std::move(e));
}

// One name may serve several kinds (the csv data and the csv logger); the same component from two files may
// not.
bool share_a_component(const Note& a, const Note& b) {
  for (const NotedComponent& x : a.components)
    for (const NotedComponent& y : b.components)
      if (x.kind == y.kind && x.name == y.name) return true;
  return false;
}

// Two copies of one plugin in one process would share names, registrations and locks without knowing it.
void check_twin(const Entry& wanted) {
  for (const Entry& e : store().entries)
    if (&e != &wanted && e.state == Entry::initialised && e.plugin.note.name == wanted.plugin.note.name &&
        share_a_component(e.plugin.note, wanted.plugin.note))
      refuse(wanted.plugin.path, "the plugin \"" + e.plugin.note.name + "\" is already loaded from " +
                                     e.plugin.path + "; name one file only");
}

std::string failure_of_init(const LoadedPlugin& p) {
  if (!p.table.init) return {};
  try {
    const lh_status status = p.table.init(&host_table());
    return status ? "its init failed: " + take(status).message : "";
  } catch (const std::exception& e) {
    return std::string("an exception left init: ") + e.what() + "; this is a bug in the plugin";
  } catch (...) {
    return "an exception left init; this is a bug in the plugin";
  }
}

}  // namespace

const LoadedPlugin& load_plugin_table(const std::string& path) {
  const std::lock_guard<std::mutex> lock(store().mutex);
  return loaded(path).plugin;
}

const LoadedPlugin& load_plugin(const std::string& path) {
  const std::lock_guard<std::mutex> lock(store().mutex);
  Entry& e = loaded(path);
  if (e.state == Entry::fresh) {
    check_twin(e);
    e.failure = failure_of_init(e.plugin);
    e.state = e.failure.empty() ? Entry::initialised : Entry::failed;
  }
  if (e.state == Entry::failed) refuse(e.plugin.path, e.failure);
  return e.plugin;
}

}  // namespace lhost
