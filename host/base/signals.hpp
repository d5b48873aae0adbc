// host/base/signals.hpp - SIGINT and SIGTERM as a request that the loop sees at its next step boundary.
// A second signal ends the process at once.
#pragma once
#include <csignal>

namespace lhost {

extern volatile std::sig_atomic_t pending_signal;  // 0, SIGINT or SIGTERM; read by the loop without a call

// Handlers are installed while an object lives, and the old ones brought back after it. [main]
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;

 private:
  struct sigaction old_int_, old_term_, old_pipe_, old_size_;
};

}  // namespace lhost
