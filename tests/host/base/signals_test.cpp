#include "base/signals.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>

namespace lhost {
namespace {

volatile std::sig_atomic_t heard_by_others = 0;

void send(int sig) {
  raise(sig);
  usleep(1000);  // under the thread sanitizer a signal may wait for the next call into the system
}

class Signals : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Both, Signals, testing::Values(SIGINT, SIGTERM));

TEST_P(Signals, AreARequestWhileAGuardLives) {
  const SignalGuard guard;
  EXPECT_EQ(pending_signal, 0);
  send(GetParam());
  EXPECT_EQ(pending_signal, GetParam());
}

TEST_P(Signals, ANewGuardForgetsWhatCameBefore) {
  {
    const SignalGuard guard;
    send(GetParam());
  }
  const SignalGuard guard;
  EXPECT_EQ(pending_signal, 0);
}

TEST_P(Signals, GoBackToWhoeverHandledThemBefore) {
  const auto before = std::signal(GetParam(), [](int s) { heard_by_others = s; });
  { const SignalGuard guard; }
  heard_by_others = 0;
  send(GetParam());
  EXPECT_EQ(heard_by_others, GetParam());
  std::signal(GetParam(), before);
}

TEST_P(Signals, ASecondOneEndsTheProcessAtOnce) {
  EXPECT_EXIT(
      {
        const SignalGuard guard;
        send(SIGINT);
        send(GetParam());
      },
      testing::ExitedWithCode(128 + GetParam()), "");
}

TEST_P(Signals, ASecondOneIsNothingNewToARank) {
  second_signal_ends = 0;
  {
    const SignalGuard guard;
    send(SIGINT);
    send(GetParam());
    EXPECT_EQ(pending_signal, GetParam());
  }
  second_signal_ends = 1;
}

TEST(SignalGuardOf, AClosedPipeIsAnErrorOfTheWrite) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  {
    const SignalGuard guard;
    EXPECT_EQ(write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  EXPECT_EXIT((void)!write(ends[1], "x", 1), testing::KilledBySignal(SIGPIPE), "");
  close(ends[1]);
}

}  // namespace
}  // namespace lhost
