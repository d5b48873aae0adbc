// Signals to the supervisor, to a rank, and the death of the supervisor.
#include "support.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

namespace lhost_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SuperviseSignals : public Supervise {
 protected:
  // The supervisor itself, so that its number is known.
  void start(const std::string& flags, const std::string& behaviours) {
    const std::string line = "exec " LHOST_TEST_LAUNCH_PROGRAM " --folder " + dir_.path() + " " + flags +
                             " " + behaviours + " >" + dir_ / "output" + " 2>&1";
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
  }
  // They know what to do, and have their signal handlers.
  bool ranks_run(int n) {
    const auto ready = [&] {
      for (int r = 0; r < n; ++r)
        if (!std::filesystem::exists(dir_ / ("ready_" + std::to_string(r)))) return false;
      return true;
    };
    const bool run = within(30, ready);
    for (int r = 0; r < n; ++r) std::filesystem::remove(dir_ / ("ready_" + std::to_string(r)));
    return run;
  }
  int wait_for_end() {
    int status = 0;
    if (!within(40, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) {
      ADD_FAILURE() << "it does not end\n" << output();
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void TearDown() override {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    EXPECT_TRUE(within(kSoon, [&] { return processes_of(dir_.path()).empty(); }));
  }
  std::string output() const { return dir_.read("output"); }
  pid_t pid_ = -1;
};

class SuperviseSignal : public SuperviseSignals, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Each, SuperviseSignal, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_P(SuperviseSignal, EndsTheRanksInOrder) {
  start("--ranks 3", "train:50");
  ASSERT_TRUE(ranks_run(3));
  kill(pid_, GetParam());
  EXPECT_EQ(wait_for_end(), 128 + GetParam());
  EXPECT_THAT(output(), HasSubstr("asked 1"));
  EXPECT_THAT(output(), Not(HasSubstr("error")));
}

TEST_P(SuperviseSignal, F058_ddZombie_TwiceEndsAllAtOnce) {
  start("--ranks 3", "train:20000");
  ASSERT_TRUE(ranks_run(3));
  kill(pid_, SIGINT);
  usleep(200000);
  EXPECT_EQ(waitpid(pid_, nullptr, WNOHANG), 0);
  kill(pid_, GetParam());
  const double start = now_s();
  EXPECT_EQ(wait_for_end(), 128 + GetParam());
  EXPECT_LT(now_s() - start, kSoon);
  EXPECT_THAT(output(), HasSubstr("ended at once by a second signal; nothing more was saved"));
}

TEST_F(SuperviseSignals, ARankThatSavesIsWaitedForTheOthersAreNot) {
  start("--ranks 3 --settle 200", "train:1500 train:0 hang");
  ASSERT_TRUE(ranks_run(3));
  kill(pid_, SIGTERM);
  const double start = now_s();
  EXPECT_EQ(wait_for_end(), 143);
  EXPECT_GT(now_s() - start, 1.4);
  EXPECT_LT(now_s() - start, kSoon);
}

TEST_F(SuperviseSignals, TheTerminalsReachesTheSupervisorAlone) {
  start("--ranks 2", "train:0");
  ASSERT_TRUE(ranks_run(2));
  for (int p : processes_of(dir_.path()))
    if (p != pid_) {
      EXPECT_NE(getpgid(p), getpgid(pid_));
      EXPECT_EQ(getsid(p), getsid(pid_));
    }
  kill(-pid_, SIGINT);  // what Ctrl-C does
  EXPECT_EQ(wait_for_end(), 130);
}

TEST_F(SuperviseSignals, AllRanksAreOneGroup) {
  start("--ranks 3", "train:0");
  ASSERT_TRUE(ranks_run(3));
  std::vector<int> groups;
  for (int p : processes_of(dir_.path()))
    if (p != pid_) groups.push_back(getpgid(p));
  EXPECT_EQ(groups, std::vector<int>(3, groups.at(0)));
  kill(pid_, SIGTERM);
  wait_for_end();
}

TEST_F(SuperviseSignals, F195_sgWorker_ASchedulerThatSignalsEveryProcessAsksOnce) {
  start("--ranks 3 --tail", "train:400");
  ASSERT_TRUE(ranks_run(3));
  for (int p : processes_of(dir_.path()))
    if (p != pid_) kill(p, SIGTERM);
  usleep(100000);  // they hear it a second time, from their supervisor, while they save
  kill(pid_, SIGTERM);
  EXPECT_EQ(wait_for_end(), 143);
  for (const char* line : {"saved\n", "[rank 1] saved\n", "[rank 2] saved\n"})
    EXPECT_THAT(output(), HasSubstr(line));
}

TEST_F(SuperviseSignals, TheTerminalsStopStopsAll) {
  const auto stopped = [](int p) {
    std::ifstream in("/proc/" + std::to_string(p) + "/stat");
    std::string line;
    std::getline(in, line);
    return line.find(") T") != line.npos;
  };
  start("--ranks 2", "train:0");
  ASSERT_TRUE(ranks_run(2));
  const auto all = processes_of(dir_.path());
  kill(-pid_, SIGTSTP);
  EXPECT_TRUE(within(kSoon, [&] { return std::all_of(all.begin(), all.end(), stopped); }));
  kill(-pid_, SIGCONT);
  EXPECT_TRUE(within(kSoon, [&] { return std::none_of(all.begin(), all.end(), stopped); }));
  kill(pid_, SIGTERM);
  EXPECT_EQ(wait_for_end(), 143);
}

TEST_F(SuperviseSignals, AFailureWhileEndingIsToldButTheCodeIsTheSignals) {
  start("--ranks 2", "train:0 fails_when_told");
  ASSERT_TRUE(ranks_run(2));
  kill(pid_, SIGTERM);
  EXPECT_EQ(wait_for_end(), 143);
  EXPECT_THAT(
      output(),
      HasSubstr("error: rank 1 failed in model:fake (training_step): no room for the last checkpoint"));
}

TEST_F(SuperviseSignals, WhoDoesNotEndIsNamed) {
  start("--ranks 3 --settle 100 --terminate 100", "train:0 hang deaf");
  ASSERT_TRUE(ranks_run(3));
  kill(pid_, SIGINT);
  EXPECT_EQ(wait_for_end(), 130);
  EXPECT_THAT(output(),
              HasSubstr("error: rank 1, rank 2 did not end by itself after the signal, and was ended"));
}

TEST_F(SuperviseSignals, OneRankThatIsToldToEndIsNoFailure) {
  start("--ranks 2", "train:0 train:0");
  ASSERT_TRUE(ranks_run(2));
  for (int p : processes_of(dir_.path()))  // all vote for it in a real run
    if (p != pid_) kill(p, SIGTERM);
  EXPECT_EQ(wait_for_end(), 143);
  EXPECT_THAT(output(), HasSubstr("asked 1"));
}

TEST_F(SuperviseSignals, F058_ddZombie_KilledItTakesItsRanksWithIt) {
  for (const char* launcher : {"exec", "spawn"}) {
    if (!kForksWork && launcher == std::string("spawn")) continue;
    start(std::string("--ranks 3 --launcher ") + launcher, "hang deaf busy");
    ASSERT_TRUE(ranks_run(3));
    kill(pid_, SIGKILL);
    EXPECT_EQ(wait_for_end(), 137);
    EXPECT_TRUE(within(kSoon, [&] { return processes_of(dir_.path()).empty(); }));
  }
}

TEST_F(SuperviseSignals, ARankKilledFromOutsideIsNamed) {
  start("--ranks 2 --settle 200", "hang hang");
  ASSERT_TRUE(ranks_run(2));
  const auto all = processes_of(dir_.path());
  kill(*std::max_element(all.begin(), all.end()), SIGKILL);
  EXPECT_EQ(wait_for_end(), 137);
  EXPECT_THAT(output(), HasSubstr("was ended by SIGKILL"));
}

TEST_F(SuperviseSignals, WhatTheyShareHasNoName) {
  start("--ranks 2 --settle 200", "hang hang");
  ASSERT_TRUE(ranks_run(2));
  for (int p : processes_of(dir_.path())) {
    std::ifstream in("/proc/" + std::to_string(p) + "/maps");
    std::string maps;
    for (std::string line; std::getline(in, line);) maps += line + "\n";
    EXPECT_THAT(maps, HasSubstr("/memfd:lhost-ranks"));
    EXPECT_THAT(maps, Not(HasSubstr("/dev/shm")));
  }
  kill(pid_, SIGKILL);
  wait_for_end();
}

}  // namespace
}  // namespace lhost_test
