// host/launch/supervisor.hpp - makes the ranks of this machine through a launcher and stands by them: output, signals,
// the first failure, the end of all, the one report, another attempt. It trains nothing and starts no thread.
//   * Nothing is left behind: processes, sockets, shared memory. Killed with -9, it takes its ranks with it.
//   * It has signal handlers of its own and waits for its children: one at a time in a process. [main]
#pragma once
#include "kinds/component.hpp"
#include "launch/rank_boot.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace lhost {

struct Patience {  // after the first rank that ended badly, or was asked to end and did
  std::chrono::milliseconds settle{2000};   // for the others to notice and to end by themselves; then SIGTERM
  std::chrono::milliseconds saving{20000};  // instead of settle, as long as a rank is saving
  std::chrono::milliseconds terminate{1000};  // from SIGTERM to SIGKILL
};

struct SuperviseResult {
  int exit_code = 0;   // the culprit's own; 128+n for a signal n
  bool asked = false;  // ended by a signal to the supervisor, or as ranks end at a time limit: no failure
  int64_t culprit = -1;
  std::string report;  // what was printed about the failure; empty: none
  std::vector<int64_t> secondary;
  int64_t global_step = 0;  // of the culprit
  int64_t restarts = 0;
};

struct SuperviseOptions {
  const Launcher* launcher = nullptr;  // has `start`
  RankEnv world;                       // what its env() said
  std::vector<std::string> argv;       // what a rank executes; it calls boot_rank()
  // Instead of argv, for a launcher that forks (LH_LAUNCHER_FORKS): runs in the child and gives its exit code.
  std::function<int(RankBoot&)> rank_main;
  std::string request;      // any bytes; every rank gets them
  std::string log_folder;   // rank_N.log of all ranks but 0, which has this process's stdout and stderr
  bool tail_ranks = false;  // also show their lines, as "[rank 1] ..."
  Patience patience;
  int64_t max_restarts =
      0;  // attempts after a failure; the same failure at the same step is not tried a third time
  // Before another attempt, which it may change (argv, request): false ends it.
  std::function<bool(const SuperviseResult& failed, SuperviseOptions& next)> prepare;
};

// Throws a Failure or ComponentFailure if the ranks cannot be started: a busy port, a program that is not there.
SuperviseResult supervise(SuperviseOptions);

}  // namespace lhost
