// exec and spawn: the world that they make, and what a new process finds. Whole runs are in tests/host/launch.
#include "environment.hpp"
#include "support/component.hpp"
#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <lhost/launcher.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

using namespace lhost_test;

namespace {

using testing::HasSubstr;
using testing::Not;
using Launcher = Component<lh_launcher, lh_launcher_v0>;

class Local : public testing::TestWithParam<std::string> {
 protected:
  // The world, or the error's text in master_addr.
  struct World {
    lh_env env{};
    std::string master, job, error;
  };
  World world(const lh_launch_spec& spec, const Environment& e, const Options& o = {}) const {
    const EnvironmentIs scope(e);
    const Launcher l("launcher", GetParam(), o);
    World w;
    w.env.size = sizeof w.env;
    if (lh_status s = l->env(l.self, &spec, &w.env)) w.error = failure(s);
    else w.master = text(w.env.master_addr), w.job = text(w.env.job);
    return w;
  }
};
INSTANTIATE_TEST_SUITE_P(Both, Local, testing::Values("exec", "spawn"),
                         [](const auto& i) { return i.param; });

TEST_P(Local, OneNodeIsMetOnItself) {
  const World w = world(wanted(1, 4), {});
  EXPECT_EQ(w.error, "");
  EXPECT_EQ(w.env.world_size, 4);
  EXPECT_EQ(w.env.local_world_size, 4);
  EXPECT_EQ(w.env.rank, -1);
  EXPECT_EQ(w.env.local_rank, -1);
  EXPECT_EQ(w.env.num_nodes, 1);
  EXPECT_EQ(w.env.node_rank, 0);
  EXPECT_EQ(w.env.master_port, 0);
  EXPECT_EQ(w.master, "127.0.0.1");
}
TEST_P(Local, AutoIsOneRank) { EXPECT_EQ(world(wanted(1, 0), {}).env.world_size, 1); }
TEST_P(Local, F173_clStale_LeftOverRanksAreNotRead) {
  const World w =
      world(wanted(1, 2), {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"NODE_RANK", "5"}, {"MASTER_ADDR", "x"}});
  EXPECT_EQ(w.error, "");
  EXPECT_EQ(w.env.world_size, 2);
  EXPECT_EQ(w.env.node_rank, 0);
  EXPECT_EQ(w.master, "127.0.0.1");
}
TEST_P(Local, EachRunHasItsOwnName) {
  const std::string one = world(wanted(1, 2), {}).job, other = world(wanted(1, 2), {}).job;
  EXPECT_THAT(one, testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(one.size(), 32u);
  EXPECT_NE(one, other);
}
TEST_P(Local, APortMayBeGiven) {
  EXPECT_EQ(world(wanted(1, 2), {{"MASTER_PORT", "29500"}}).env.master_port, 29500);
  EXPECT_EQ(world(wanted(1, 2), {{"MASTER_PORT", "29500"}}, {{"master_port", int64_t{5000}}}).env.master_port,
            5000);
  EXPECT_THAT(world(wanted(1, 2), {{"MASTER_PORT", "0"}}).error, HasSubstr("MASTER_PORT = 0"));
  EXPECT_THAT(world(wanted(1, 2), {{"MASTER_PORT", "http"}}).error, HasSubstr("MASTER_PORT=http"));
}
TEST_P(Local, SeveralNodesNeedToFindEachOther) {
  EXPECT_THAT(
      world(wanted(2, 2), {}).error,
      HasSubstr("trainer.num_nodes = 2 needs launcher.node_rank (or NODE_RANK), launcher.master_addr (or "
                "MASTER_ADDR), launcher.master_port (or MASTER_PORT)"));
  EXPECT_THAT(world(wanted(2, 2), {{"NODE_RANK", "1"}, {"MASTER_ADDR", "a"}}).error,
              HasSubstr("needs launcher.master_port (or MASTER_PORT); "));
  EXPECT_THAT(world(wanted(2, 2), {{"NODE_RANK", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}).error,
              HasSubstr("found node_rank 2, expected 0 to 1"));
}
TEST_P(Local, SeveralNodesShareAName) {
  const Environment e = {{"NODE_RANK", "1"}, {"MASTER_ADDR", "node-a"}, {"MASTER_PORT", "29500"}};
  const World w = world(wanted(2, 4), e);
  EXPECT_EQ(w.error, "");
  EXPECT_EQ(w.env.world_size, 8);
  EXPECT_EQ(w.env.node_rank, 1);
  EXPECT_EQ(w.master, "node-a");
  EXPECT_EQ(w.job, "node-a:29500");
  EXPECT_EQ(world(wanted(2, 4), e, {{"job", std::string("mine")}}).job, "mine");
  const World o = world(wanted(2, 4), e, {{"node_rank", int64_t{0}}, {"master_addr", std::string("b")}});
  EXPECT_EQ(o.env.node_rank, 0);
  EXPECT_EQ(o.master, "b");
}

TEST(SpawnLauncher, IsNeverChosenByItself) {
  const Launcher l("launcher", "spawn");
  const auto spec = wanted(1, 4);
  lh_str why{};
  EXPECT_EQ(l->detect(l.self, &spec, &why), 0);
}

// ---- processes

class Start : public testing::Test {
 protected:
  Start() { out_ = open((dir_ / "out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); }
  ~Start() override { close(out_); }

  lh_rank_start rank(int64_t local_rank = 0) {
    env_.size = sizeof env_;
    env_.local_rank = local_rank;
    lh_rank_start s{};
    s.size = sizeof s;
    s.env = &env_;
    s.out_fd = s.err_fd = out_;
    return s;
  }
  // What a shell command line prints as a rank of exec.
  std::string shell_as_rank(const std::string& line, lh_rank_start s) {
    const lh_str argv[] = {LH_STR("/bin/sh"), LH_STR("-c"), str(line)};
    s.argv = argv;
    s.n_argv = 3;
    const Launcher l("launcher", "exec");
    int64_t pid = 0;
    call(l->start(l.self, &s, &pid));
    EXPECT_EQ(wait_for(pid), 0);
    return dir_.read("out");
  }
  static int wait_for(int64_t pid) {
    int status = 0;
    waitpid(static_cast<pid_t>(pid), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  TempDir dir_;
  int out_ = -1;
  lh_env env_{};
};

TEST_F(Start, VariablesReplaceOnesOfTheSameName) {
  const EnvironmentIs scope({{"RANK", "9"}, {"RANKING", "first"}, {"PATH", "/bin:/usr/bin"}});
  const lh_str given[] = {LH_STR("RANK=1"), LH_STR("NEW=x=y")};
  lh_rank_start s = rank();
  s.environment = given;
  s.n_environment = 2;
  EXPECT_EQ(shell_as_rank("echo $RANK $RANKING $NEW; env | grep -c ^RANK=", s), "1 first x=y\n1\n");
}

TEST_F(Start, OnlyKeptDescriptorsStayOpen) {
  const int kept = open("/dev/null", O_RDONLY | O_CLOEXEC), other = open("/dev/null", O_RDONLY);
  const int32_t keep[] = {kept};
  lh_rank_start s = rank();
  s.keep = keep;
  s.n_keep = 1;
  const std::string shown = shell_as_rank("for f in /proc/$$/fd/*; do echo ${f##*/}; done", s);
  EXPECT_THAT(shown, HasSubstr("\n" + std::to_string(kept) + "\n"));
  EXPECT_THAT(shown, Not(HasSubstr("\n" + std::to_string(other) + "\n")));
  close(kept);
  close(other);
}

TEST_F(Start, StreamsMayBeExchanged) {
  // the rank's stdout is this process's stderr, and the other way round: neither is lost on the way
  const int one = dup(1), two = dup(2);
  const int a = open((dir_ / "a").c_str(), O_RDWR | O_CREAT, 0600),
            b = open((dir_ / "b").c_str(), O_RDWR | O_CREAT, 0600);
  dup2(a, 1), dup2(b, 2);
  lh_rank_start s = rank();
  s.out_fd = 2, s.err_fd = 1;
  shell_as_rank("echo out; echo err >&2", s);
  dup2(one, 1), dup2(two, 2);
  for (int fd : {one, two, a, b}) close(fd);
  EXPECT_EQ(dir_.read("b"), "out\n");
  EXPECT_EQ(dir_.read("a"), "err\n");
}

TEST_F(Start, SignalsAreAsUsualInARank) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, [](int) {});
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, &old);
  const std::string status = shell_as_rank("grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status", rank());
  sigprocmask(SIG_SETMASK, &old, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  EXPECT_THAT(status, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("SigIgn:\t0000000000200000"));  // SIGTTOU alone: 22
}

TEST_F(Start, WhatIgnoresAHangUpGoesOnDoingSo) {
  signal(SIGHUP, SIG_IGN);
  const std::string status = shell_as_rank("grep SigIgn /proc/self/status", rank());
  signal(SIGHUP, SIG_DFL);
  EXPECT_THAT(status, HasSubstr("0000000000200001"));
}

TEST_F(Start, AMissingProgramIsAnErrorOfTheStart) {
  const lh_str argv[] = {LH_STR("/no/such/program")};
  lh_rank_start s = rank();
  s.argv = argv;
  s.n_argv = 1;
  const Launcher l("launcher", "exec");
  int64_t pid = 0;
  EXPECT_THAT(failure(l->start(l.self, &s, &pid)), HasSubstr("/no/such/program: No such file or directory"));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // nothing to wait for
}

TEST_F(Start, ForksRunAFunction) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
  const lh_str given[] = {LH_STR("RANK=7")};
  lh_rank_start s = rank();
  s.environment = given;
  s.n_environment = 1;
  int number = 5;
  s.context = &number;
  s.main = [](void* context) -> int32_t {
    std::printf("rank %s\n", std::getenv("RANK"));
    return 10 + *static_cast<int*>(context);
  };
  const Launcher l("launcher", "spawn");
  int64_t pid = 0;
  call(l->start(l.self, &s, &pid));
  EXPECT_EQ(getpgid(static_cast<pid_t>(pid)), pid);
  EXPECT_EQ(wait_for(pid), 15);
  EXPECT_EQ(dir_.read("out"), "rank 7\n");
}

TEST_F(Start, F070_ddFork_NoForkOfAProcessWithThreads) {
  std::atomic<bool> go{false};
  std::thread other([&] {
    while (!go) std::this_thread::yield();
  });
  lh_rank_start s = rank();
  s.main = [](void*) -> int32_t { return 0; };
  const Launcher l("launcher", "spawn");
  int64_t pid = 0;
  const std::string message = failure(l->start(l.self, &s, &pid));
  go = true;
  other.join();
  EXPECT_THAT(message, HasSubstr(" threads in this process, expected one"));
  EXPECT_THAT(message, HasSubstr("launcher.use = \"exec\""));
}

TEST_F(Start, WithoutAProgramOrAFunctionThereIsNoRank) {
  const lh_rank_start s = rank();
  int64_t pid = 0;
  for (const char* name : {"exec", "spawn"}) {
    const Launcher l("launcher", name);
    EXPECT_THAT(failure(l->start(l.self, &s, &pid)), HasSubstr("a rank without a"));
  }
}

}  // namespace
