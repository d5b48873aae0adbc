#include "launch/signal_pipe.hpp"

#include "base/failure.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

namespace lhost {
namespace {

constexpr int kPipedSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGPIPE, SIGXFSZ, SIGCHLD};
volatile std::sig_atomic_t signal_pipe_end = -1;

void into_signal_pipe(int sig) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(sig);
  const ssize_t written = write(signal_pipe_end, &byte, 1);
  (void)written;
  errno = before;
}

auto handler_of(int sig) {
  if (sig == SIGCHLD) return SIG_DFL;
  return sig == SIGPIPE || sig == SIGXFSZ ? SIG_IGN : into_signal_pipe;
}

}  // namespace

SignalPipe::SignalPipe() {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Failure(Exit::environment, std::string("cannot make a pipe: ") + std::strerror(errno));
  signal_pipe_end = ends_[1];
  struct sigaction a {};
  sigemptyset(&a.sa_mask);
  a.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kPipedSignals); ++i) {
    a.sa_handler = handler_of(kPipedSignals[i]);
    sigaction(kPipedSignals[i], &a, &old_[i]);
    if (kPipedSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &old_[i], nullptr);
  }
}

SignalPipe::~SignalPipe() {
  for (size_t i = 0; i < std::size(kPipedSignals); ++i) sigaction(kPipedSignals[i], &old_[i], nullptr);
  signal_pipe_end = -1;
  close(ends_[0]);
  close(ends_[1]);
}

int SignalPipe::next() {
  unsigned char sig = 0;
  return read(ends_[0], &sig, 1) == 1 ? sig : 0;
}

}  // namespace lhost
