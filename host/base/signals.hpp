// host/base/signals.hpp - SIGINT, SIGTERM and SIGHUP as a request that the loop sees at its next step boundary.
// A second signal ends the process at once. A hang-up that the process was started to ignore (nohup) stays ignored.
#pragma once
#include <atomic>
#include <csignal>

namespace lhost {

extern std::atomic<int> pending_signal;  // 0 or the signal; read by the loop without a call
// 0 in a rank: its supervisor ends it, and a scheduler that signals every process of a job asks twice this way.
extern volatile std::sig_atomic_t second_signal_ends;

// Handlers are installed while an object lives, and the old ones brought back after it. [main]
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;

 private:
  struct sigaction old_[5];
};

}  // namespace lhost
