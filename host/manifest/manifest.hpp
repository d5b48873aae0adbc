// host/manifest/manifest.hpp - from a file, overrides and environment to one merged tree.
#pragma once
#include "manifest/diagnostics.hpp"

#include <map>
#include <optional>

namespace lhost {

struct ManifestInput {
  std::string path;                      // as the user wrote it; "-" is standard input
  std::vector<std::string> overrides;    // "trainer.max_epochs=3", "logger+={use=\"csv\"}"
  std::optional<std::string> lhost_set;  // the environment variable's text
  std::string defaults_path;             // share/lhost/defaults.toml
  // What files held when another process read them (Manifest::files); used instead of the files.
  std::map<std::string, std::string> snapshot;
};
struct Manifest {
  Node root;
  Texts texts;
  std::string path;                          // absolute, of the main file; "-" for standard input
  std::map<std::string, std::string> files;  // all that were read, by absolute path; "-" too
  bool complete =
      true;  // false: a text could not be read or parsed, so checking further would only add noise
};

// Precedence: command line, LHOST_SET, file, `extends`, defaults file. Tables merge, arrays of tables replace; a
// table that selects another component (`use` or `plugin`) than the one below it drops the lower one's options.
// Entries of the defaults file marked `always = true` follow the user's list unless it names the same
// component. What is known to be a table (or a list of tables) is one afterwards. Problems go into the diagnostics; an
// unreadable main file is a Failure with Exit::usage, unreadable defaults one with Exit::environment. texts[0] is the
// main file. An empty defaults_path means no defaults.
Manifest load_manifest(const ManifestInput&, Diagnostics&);

}  // namespace lhost
