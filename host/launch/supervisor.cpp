#include "launch/supervisor.hpp"

#include "base/failure.hpp"
#include "base/terminal.hpp"
#include "launch/attempt.hpp"
#include "launch/signal_pipe.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace lhost {
namespace {

// Why a failed run is not started again; empty: it is.
std::string no_other_attempt(const SuperviseOptions& o, int64_t attempts, const AttemptResult& now,
                             const AttemptResult& before) {
  if (o.max_restarts == 0) return "none wanted";
  if (attempts > 1 && now.kind == before.kind && now.result.global_step == before.result.global_step)
    return "the same failure twice at step " + std::to_string(now.result.global_step) + ": not started again";
  if (attempts > o.max_restarts)
    return "not started again: " + std::to_string(o.max_restarts) + " restarts were all that was allowed";
  return {};
}

void print_report(const std::string& report) {
  Terminal& t = Terminal::get();
  t.error(red("error:", t.error_colour()) + " " + report);
}

void check_options(const SuperviseOptions& o) {
  if (!o.launcher || !*o.launcher || !(*o.launcher)->start)
    throw Failure(Exit::internal, "a supervisor without a launcher that starts ranks");
  const bool forks = (o.launcher->identity().flags & LH_LAUNCHER_FORKS) != 0;
  if (forks ? !o.rank_main : o.argv.empty())
    throw Failure(Exit::internal, "the launcher \"" + o.launcher->identity().name + "\" was given no " +
                                      (forks ? "function" : "program") + " for its ranks");
  const RankEnv& w = o.world;
  if (w.local_world_size < 1 || w.num_nodes < 1 || w.world_size != w.num_nodes * w.local_world_size ||
      w.node_rank < 0 || w.node_rank >= w.num_nodes)
    throw Failure(Exit::plugin, "the launcher \"" + o.launcher->identity().name + "\" wants node " +
                                    std::to_string(w.node_rank) + " of " + std::to_string(w.num_nodes) +
                                    " with " + std::to_string(w.local_world_size) + " ranks each and " +
                                    std::to_string(w.world_size) + " in all, which is no world");
}

// Else a rank's page could become what the rank takes for its stdout.
void open_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)  // NOLINT: ranks shall inherit it
      throw Failure(Exit::environment, std::string("cannot open /dev/null: ") + std::strerror(errno));
}

}  // namespace

SuperviseResult supervise(SuperviseOptions options) {
  check_options(options);
  open_standard_descriptors();
  SignalPipe signals;
  AttemptResult before;
  for (int64_t attempts = 1;; ++attempts) {
    AttemptResult now = Attempt(options, signals).run();
    SuperviseResult& r = now.result;
    r.restarts = attempts - 1;
    if (r.exit_code == 0 || r.asked) {
      if (!r.report.empty()) print_report(r.report);
      return r;
    }
    std::string no = no_other_attempt(options, attempts, now, before);
    if (no.empty() && options.prepare && !options.prepare(r, options))
      no = "not started again: there is nothing to go on from";
    if (!no.empty()) {
      if (options.max_restarts > 0) r.report += "\n  " + no;
      print_report(r.report);
      return r;
    }
    print_report(r.report + "\n  started again (" + std::to_string(attempts) + " of " +
                 std::to_string(options.max_restarts) + ")");
    ++options.world.restart;
    before = std::move(now);
  }
}

}  // namespace lhost
