// host/assembly/resolve.hpp - from a manifest and the installed plugins to a complete, checked plan of a run.
//
// Nothing is started: no device, data or run folder is touched, and no plugin code runs in this process. All errors of
// the manifest come together.
#pragma once
#include "base/failure.hpp"
#include "manifest/host_keys.hpp"
#include "manifest/manifest.hpp"
#include "manifest/option.hpp"
#include "plugin/registry.hpp"

#include <string>
#include <vector>

namespace lhost {

struct Selection {           // one component of the run
  std::string kind;          // "checkpointer"
  std::string instance;      // its place in the manifest: "checkpoint[0]", "model"
  std::string label;         // what checkpoints call its state: `name`, else the place
  std::string path, origin;  // of the plugin; origin: "installation", "--plugin-dir", "manifest"...
  std::string name, version;
  Values host;                 // use, plugin... and the host's keys of this kind's table
  Values options;              // the component's own
  std::vector<size_t> hyper;   // optimizer: indices of its LH_O_HYPER options
  std::vector<Values> groups;  // optimizer: [[optimizer.group]] host keys, then hyper-parameters
  std::vector<Values> group_hyper;
};

struct Plan {
  ManifestInput input;
  Manifest manifest;
  Values run, trainer, resume;
  std::vector<Selection> selections;  // in the order of kind_tables()
  std::vector<Selection> launchers;   // launcher.use = "auto": all that are installed, with their defaults
  Node resolved;                      // every key with its value, as manifest.resolved.toml shows it
  std::string warnings;               // rendered; empty = none

  const Selection* find(std::string_view kind) const;  // NULL also for a launcher that is still to be chosen
  std::vector<const Selection*> all(std::string_view kind) const;
  std::vector<std::string> stages() const;
  std::string name() const;
  std::string run_dir() const;  // [run] dir; by default "runs" in the current folder
};

struct ResolveInput {
  ManifestInput manifest;
  std::vector<std::string> plugin_dirs;
};
// With the installation's defaults file and the environment's LHOST_SET.
ResolveInput input_for(std::string manifest, std::vector<std::string> overrides,
                       std::vector<std::string> plugin_dirs);

// Failure(Exit::usage) with all diagnostics rendered; Failure(Exit::plugin) if the only trouble is a refused plugin.
Plan resolve(const ResolveInput&, bool colour);

}  // namespace lhost
