// host/plugin/describe.hpp - a plugin's components and option schemas, asked for in a throw-away process and
// cached.
#pragma once
#include "base/failure.hpp"
#include "manifest/option.hpp"

namespace lhost {

struct ComponentDescription {
  std::string kind, revision, name, version, summary;
  uint64_t flags = 0;
  Schema options;
  std::vector<std::string> defaults;  // manifest lines for other tables: launcher.use = "spawn"
};
struct PluginDescription {
  std::string path, name, version, license, torch;
  std::vector<ComponentDescription> components;
  const ComponentDescription* find(std::string_view kind,
                                   std::string_view name) const;  // name empty: the only one
};

// Descriptions of these files, in order; throws Failure(Exit::plugin) naming the file that crashed, hung or
// lied. A child process (`lhost __describe FILE...`) loads what the cache
// ($XDG_CACHE_HOME/lhost/plugins-1.json; key: path, device, inode, size, mtime, ctime, host version) does not
// have. Deleting the cache is always safe.
std::vector<PluginDescription> describe_plugins(const std::vector<std::string>& paths);

// The same without throwing, for whoever reports all faults together.
struct Described {
  PluginDescription plugin;
  std::string broken;  // "<path>: <reason>"; empty = described
  Exit code = Exit::done;
};
std::vector<Described> try_describe_plugins(const std::vector<std::string>& paths);

int describe_child_main(const std::vector<std::string>& paths);  // the child's side: JSON lines on stdout

}  // namespace lhost
