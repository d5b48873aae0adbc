// host/assembly/execute.hpp - from a plan to a finished run: loads plugins, creates components, drives the trainer.
#pragma once
#include "assembly/resolve.hpp"
#include "kinds/components.hpp"
#include "train/engine.hpp"
#include "train/result.hpp"
#include "train/settings.hpp"

namespace lhost {

struct ExecuteOptions {
  std::string engine;  // path of the engine library; empty = the installation's
};

// Never throws for what goes wrong in the run: it is in the result (and in result.json once the run folder exists).
// Throws Failure for what is wrong before there is a run folder.
RunResult execute(const Plan&, const ExecuteOptions&);

Settings settings_of(const Plan&);

// Loads the plugins of a plan and creates its components; the run exists already (its seed is set).
void create_components(const Plan&, Components&, lh_run*);
Created create_component(const Selection&, lh_run*);
lh_engine_config engine_config(const Settings&);

// The engine of this installation, with the host's services offered before it.
Engine start_engine(const std::string& path);

}  // namespace lhost
