#include "base/signals.hpp"

#include <unistd.h>

namespace lhost {

volatile std::sig_atomic_t pending_signal = 0;

namespace {
void on_signal(int sig) {
  if (pending_signal) _exit(128 + sig);
  pending_signal = sig;
}
}  // namespace

SignalGuard::SignalGuard() {
  pending_signal = 0;
  struct sigaction a {};
  a.sa_handler = on_signal;
  sigemptyset(&a.sa_mask);
  a.sa_flags = SA_RESTART;
  sigaction(SIGINT, &a, &old_int_);
  sigaction(SIGTERM, &a, &old_term_);
  a.sa_handler = SIG_IGN;  // `lhost run | head` goes on training; the write says EPIPE
  sigaction(SIGPIPE, &a, &old_pipe_);
  sigaction(SIGXFSZ, &a, &old_size_);  // a file over the limit is an error of that write, with a name
}

SignalGuard::~SignalGuard() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGPIPE, &old_pipe_, nullptr);
  sigaction(SIGXFSZ, &old_size_, nullptr);
}

}  // namespace lhost
