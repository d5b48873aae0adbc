// lhost/runtime.hpp - embed lhost in another C++ program. The only public header of the host.
//
//   lhost::RunOptions o;
//   o.manifest = "configs/digits.toml";
//   o.overrides = {"trainer.max_epochs=3"};
//   const lhost::RunReport r = lhost::run_manifest(o);
//   if (r.exit_code != 0) std::cerr << r.error << '\n';
//
// One run at a time per process, on the calling thread. Plugins stay loaded for the life of the process. While a run is
// going SIGINT, SIGTERM and SIGHUP are handled by it. Nothing is thrown.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace lhost {

struct RunOptions {
  std::string manifest;                  // path of a TOML file
  std::vector<std::string> overrides;    // "trainer.max_epochs=3"
  std::vector<std::string> plugin_dirs;  // searched before all others
  std::string
      prefix;  // installation: <prefix>/bin/lhost, <prefix>/lib/lhost...; empty = of the running program
  std::string engine;  // another engine library; empty = the installation's
  bool quiet = true;   // nothing on stdout; errors are in the report
};

struct RunReport {
  int exit_code = 0;                      // as the command's: 0 done, 1 failed, 2 manifest...
  std::string outcome;                    // "done", "failed", "interrupted", "refused"
  std::string error;                      // text of the failure; of a manifest all errors, with places
  std::string warnings;                   // about the manifest, with places; empty = none
  std::string run_folder;                 // empty: nothing was started
  std::map<std::string, double> metrics;  // last values; of a test stage under their test_ names
  std::string best_checkpoint;            // path; empty = none
};

// From here on malloc keeps freed memory for later steps (mallopt: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of this process).
RunReport run_manifest(const RunOptions&);

// Only the checks that run_manifest makes before anything is started.
RunReport check_manifest(const RunOptions&);

}  // namespace lhost
