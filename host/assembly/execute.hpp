// host/assembly/execute.hpp - from a plan to a finished run: loads plugins, creates components, drives the trainer.
#pragma once
#include "assembly/resolve.hpp"
#include "kinds/components.hpp"
#include "train/engine.hpp"
#include "train/result.hpp"
#include "train/settings.hpp"
#include "train/watch.hpp"

namespace lhost {

struct ExecuteOptions {
  std::string engine;                    // path of the engine library; empty = the installation's
  std::vector<std::string> plugin_dirs;  // as given to resolve: ranks that are executed look there too
  bool tail_ranks = false;               // show what all ranks print, not only rank 0
};

// Where a run writes, and what it goes on from.
struct Place {
  std::string run_folder, resume_file;
  bool continues = false;  // the folder has an earlier life
};

// Never throws for what goes wrong in the run: it is in the result (and in result.json once the run folder exists).
// Throws Failure for what is wrong before there is a run folder.
RunResult execute(const Plan&, const ExecuteOptions&);

Settings settings_of(const Plan&);

// The launcher that the manifest names, or the one that recognises the environment; `why`: what it saw.
Launcher choose_launcher(const Plan&, const lh_launch_spec&, std::string& why);

// One rank of a run.
struct Member {
  lh_env env{};
  int listen_fd = -1;          // a socket that listens on the rendezvous port, for rank 0
  std::optional<Place> place;  // chosen and locked by a supervisor; else rank 0 chooses
  mutable Watch watch;         // a page is written by whoever has it
};
RunResult run_rank(const Plan&, const ExecuteOptions&, Launcher, const Member&);

// Loads the plugins of a plan and creates its components; the run exists already (its seed is set).
void create_components(const Plan&, Components&, lh_run*, const lh_env&);
Created create_component(const Selection&, lh_run*);
lh_engine_config engine_config(const Settings&, int32_t local_ranks = 1);

// The engine of this installation, with the host's services offered before it.
Engine start_engine(const std::string& path);

}  // namespace lhost
