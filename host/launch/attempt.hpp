// host/launch/attempt.hpp - one life of a run's ranks on this machine, from the first process to the last. [main]
#pragma once
#include "launch/cgroup.hpp"
#include "launch/rank_group.hpp"
#include "launch/rank_output.hpp"
#include "launch/rendezvous_socket.hpp"
#include "launch/signal_pipe.hpp"
#include "launch/supervisor.hpp"

#include <optional>

namespace lhost {

struct AttemptResult {
  SuperviseResult result;
  std::string kind;  // Blame::kind
};

class Attempt {
 public:
  Attempt(const SuperviseOptions&, SignalPipe&);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  AttemptResult run();

 private:
  using Clock = std::chrono::steady_clock;
  // What is next when the deadline is over.
  enum class Step { none, terminate, kill, leave };

  void start_all();
  void start_one(int64_t local_rank);
  void wait();
  void read_signals();
  void look_at_ended();
  void trouble();   // the first bad end
  void escalate();  // the deadline is over
  bool somebody_saves() const;
  std::vector<RankEnd> ends();
  AttemptResult judge();

  const SuperviseOptions& o_;
  SignalPipe& signals_;
  RankEnv world_;  // with the port that is really taken
  Cgroup cgroup_;
  int64_t oom_kills_before_;
  RankPages pages_;
  int request_fd_ = -1;
  std::optional<RendezvousSocket> socket_;
  std::vector<RankOutput> outputs_;
  RankGroup group_;  // destroyed first: ends what still runs

  Step next_ = Step::none;
  Clock::time_point trouble_at_, deadline_;
  int asked_ = 0, asked_again_ = 0;  // signals to this process
};

}  // namespace lhost
