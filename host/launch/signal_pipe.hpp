// host/launch/signal_pipe.hpp - SIGINT, SIGTERM, SIGHUP and SIGTSTP as something to poll, while an object lives. SIGPIPE and
// SIGXFSZ are errors of the write, SIGCHLD is not ignored: who does has no children to wait for. A hang-up that the process was started to ignore (nohup) stays ignored. One at a
// time in a process. [main]
#pragma once
#include <csignal>

namespace lhost {

class SignalPipe {
 public:
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  int fd() const { return ends_[0]; }
  int next();  // the next signal that came, 0: none

 private:
  int ends_[2] = {-1, -1};
  struct sigaction old_[7];
};

}  // namespace lhost
