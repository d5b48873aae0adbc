// host/plugin/loader.hpp - from a path to a running plugin. The only user of dlopen, through Boost.DLL.
// Loaded objects are never unloaded. [main]
#pragma once
#include "plugin/note.hpp"

#include <lhost/abi.h>

#include <memory>

namespace lhost {

// A foreign table is never read in place: copied once, cut to the shorter size, zero-filled.
void copy_table(void* own, uint32_t own_size, const void* foreign);
template <class T>
T copy_table(const void* foreign) {
  T t{};
  copy_table(&t, sizeof t, foreign);
  return t;
}

struct LoadedPlugin {
  std::string path;
  Note note;
  lh_plugin table{};
  std::vector<lh_component> components;  // own copies; addresses of the originals in `originals`
  std::vector<const lh_component*> originals;
};

// Loads LibTorch itself first when the note wants it, so that plugins need no RPATH to it.
// Throws Failure(Exit::plugin) with the reason; the same file again gives the same object.
const LoadedPlugin& load_plugin(const std::string& path);
// The table only, without init: for describe_child_main.
const LoadedPlugin& load_plugin_table(const std::string& path);

// The entry function of an engine library: same loading rules, but another symbol and no plugin table.
void* load_engine_entry(const std::string& path, const char* symbol);

// LibTorch: $LHOST_LIBTORCH, else <prefix>/lib/lhost/libtorch, else the build tree's.
struct LibTorch {
  std::string root;     // holds lib/ and include/
  std::string version;  // "2.11.0"
};
LibTorch find_libtorch();  // throws Failure(Exit::environment) with what was looked for
std::string libtorch_version_or_empty();
void load_libtorch();

// Where this installation keeps its files; from the path of the running executable, or set by an embedding
// program.
struct Installation {
  std::string plugins;   // .../lib/lhost/plugins/1
  std::string engine;    // .../lib/lhost/liblhost_engine.so
  std::string defaults;  // .../share/lhost/defaults.toml
  std::string host;      // .../bin/lhost: what describe_plugins executes
  std::string libtorch;  // may not exist
};
const Installation& installation();
void set_installation(Installation);

}  // namespace lhost
