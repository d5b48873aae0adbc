#include "base/signals.hpp"

#include <unistd.h>

#include <iterator>

namespace lhost {

std::atomic<int> pending_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler writes it");
volatile std::sig_atomic_t second_signal_ends = 1;

namespace {

// SIGPIPE: `lhost run | head` goes on training, the write says EPIPE. SIGXFSZ: a file over the limit is an error of that
// write, with a name.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};

void on_signal(int sig) {
  if (pending_signal && second_signal_ends) {
    constexpr char text[] = "\nended at once by a second signal; nothing more was saved\n";
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(128 + sig);
  }
  pending_signal = sig;
}

}  // namespace

SignalGuard::SignalGuard() {
  pending_signal = 0;
  struct sigaction a {};
  sigemptyset(&a.sa_mask);
  a.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    a.sa_handler = kSignals[i] == SIGPIPE || kSignals[i] == SIGXFSZ ? SIG_IGN : on_signal;
    sigaction(kSignals[i], &a, &old_[i]);
    if (kSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &old_[i], nullptr);
  }
}

SignalGuard::~SignalGuard() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old_[i], nullptr);
}

}  // namespace lhost
