// host/plugin/registry.hpp - which plugins are installed where. Reads notes only.
#pragma once
#include "plugin/note.hpp"

#include <optional>

namespace lhost {

// The folders in which `use = "name"` is looked for, best first: --plugin-dir, $LHOST_PLUGIN_PATH (ignored in
// set-uid processes), the user's and the installation's folder. Each holds <kind>/<file>.so or <file>.so
// directly. Failure(Exit::usage): a --plugin-dir that is no folder, a relative one in $LHOST_PLUGIN_PATH.
struct SearchPath {
  struct Folder {
    std::string path, origin;  // origin: "--plugin-dir", "LHOST_PLUGIN_PATH", "user", "installation"
  };
  std::vector<Folder> folders;
};
SearchPath search_path(const std::vector<std::string>& plugin_dirs);

struct Installed {
  std::string path;     // canonical
  std::string origin;   // of its folder
  Note note;            // empty when refused before it could be read
  std::string refused;  // why this host does not load it; empty = it does
};

class Registry {
 public:
  Registry(const SearchPath&, std::string libtorch);
  const std::vector<Installed>& all() const { return all_; }
  std::vector<std::string> names(std::string_view kind) const;  // loadable ones, sorted, each once
  // First folder that has it wins. Two files of one folder with the same component: Failure naming both.
  // NULL: not installed. A result with `refused` set: found, but cannot be loaded (for a file whose note
  // cannot be read, its place <kind>/<name>.so counts).
  const Installed* find(std::string_view kind, std::string_view name) const;
  // A plugin named by path, which this host accepts; else Failure(Exit::usage): no such file, or
  // Exit::plugin.
  Installed read(const std::string& path) const;

 private:
  std::vector<Installed> all_;
  std::vector<size_t> folder_;  // parallel to all_: index into the search path
  std::string libtorch_;
};

}  // namespace lhost
