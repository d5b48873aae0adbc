// host/assembly/launch.hpp - a run whose ranks this host makes: the supervisor's side, and the side of a rank that was
// executed. What the manifest's files held travels with the request, so that all ranks resolve the same text.
#pragma once
#include "assembly/execute.hpp"
#include "launch/supervisor.hpp"

namespace lhost {

// Makes the run's folder, starts the ranks, waits for their end. `why`: how the launcher was chosen.
RunResult run_ranks(const Plan&, const Settings&, const ExecuteOptions&, const Launcher&, const lh_env& world,
                    const std::string& why);

int executed_rank(RankBoot&);  // what a process does that a supervisor has executed: gives its exit code

}  // namespace lhost
