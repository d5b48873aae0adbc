// The transport "gloo": meeting, networks, processes that die.
#include "model.hpp"
#include "support/process_memory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

namespace {
using namespace lhost_test;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

int64_t free_port() {
  int64_t port = 0;
  close(listen_somewhere(port));
  return port;
}

// A rank in a process of its own.
class Peer {
 public:
  Peer(int64_t rank, int64_t size, int64_t port, const std::string& job, const std::string& what,
       const std::string& seconds, bool cross_memory) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    std::vector<std::string> words{
        LHOST_TEST_PEER, std::to_string(rank),    std::to_string(size), std::to_string(port), job, what,
        seconds,         cross_memory ? "1" : "0"};
    std::vector<char*> argv;
    for (std::string& s : words) argv.push_back(s.data());
    argv.push_back(nullptr);
    if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0)
      throw std::runtime_error("cannot start " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = ends[0];
  }
  ~Peer() {
    end(SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    close(out_);
  }
  Peer(const Peer&) = delete;
  void end(int signal) const { kill(pid_, signal); }

  // The next line that it prints, "" when it prints no more.
  std::string line(std::chrono::seconds limit = std::chrono::seconds(20)) {
    const auto until = Clock::now() + limit;
    for (;;) {
      if (const size_t end = buffer_.find('\n'); end != buffer_.npos) {
        std::string s = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return s;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd p{out_, POLLIN, 0};
      if (left <= 0 || poll(&p, 1, static_cast<int>(left)) != 1) return "(nothing)";
      char text[1024];
      const ssize_t n = read(out_, text, sizeof text);
      if (n <= 0) return "";
      buffer_.append(text, static_cast<size_t>(n));
    }
  }

 private:
  pid_t pid_ = 0;
  int out_ = -1;
  std::string buffer_;
};

// Reductions of 400 kB by processes that read each other's memory, or do not.
struct GlooProcesses : testing::TestWithParam<bool> {
  void SetUp() override {
    if (GetParam() && !process_memory_can_be_read()) GTEST_SKIP() << kNoProcessMemory;
  }
  static std::vector<std::unique_ptr<Peer>> peers(const std::vector<bool>& cross_memory,
                                                  const std::string& last, const std::string& seconds) {
    const int64_t port = free_port(), n = static_cast<int64_t>(cross_memory.size());
    const std::string job = a_new_job();
    std::vector<std::unique_ptr<Peer>> out;
    for (int64_t r = 0; r < n; ++r)
      out.push_back(std::make_unique<Peer>(r, n, port, job, r + 1 == n ? last : "reduce", seconds,
                                           cross_memory[static_cast<size_t>(r)]));
    return out;
  }
  // What each has logged at the start; afterwards all are at work.
  static std::vector<std::string> start(const std::vector<std::unique_ptr<Peer>>& all) {
    std::vector<std::string> logs;
    for (auto& p : all) {
      logs.emplace_back();
      for (std::string s = p->line(); s != "met" && !s.empty(); s = p->line()) logs.back() += s + "\n";
    }
    for (auto& p : all) EXPECT_EQ(p->line(), "round 5");
    return logs;
  }
  static auto started(size_t n, const std::string& last, const std::string& seconds) {
    auto all = peers(std::vector<bool>(n, GetParam()), last, seconds);
    for (const std::string& log : start(all))
      EXPECT_EQ(log.find("read each other's memory") != log.npos, GetParam()) << log;
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(By, GlooProcesses, testing::Bool(),
                         [](const auto& x) { return std::string(x.param ? "Memory" : "Tcp"); });

TEST_P(GlooProcesses, WhoIsKilledIsMissedWithinSeconds) {
  for (const size_t victim : {2, 0}) {
    auto all = started(3, "reduce", "20");
    const auto start = Clock::now();
    all[victim]->end(SIGKILL);
    for (size_t r = 0; r < 3; ++r)
      if (r != victim) {
        EXPECT_THAT(all[r]->line(), AllOf(StartsWith("error 34 all_reduce "),
                                          HasSubstr("rank " + std::to_string(victim) + " is gone")));
      }
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  }
}

TEST_P(GlooProcesses, WhoHangsIsNamedAtTheTimeLimit) {
  auto all = started(3, "stop", "1");
  for (size_t r = 0; r < 2; ++r)
    EXPECT_THAT(all[r]->line(), StartsWith("error 4 all_reduce (average) of 100000 float32 (call 11) got no "
                                           "answer from rank(s) [2] within 1 s"));
}

TEST_P(GlooProcesses, WhoIsStoppedIsNamedAtTheTimeLimit) {
  auto all = started(2, "reduce", "1");
  all[1]->end(SIGSTOP);
  EXPECT_THAT(all[0]->line(),
              AllOf(StartsWith("error 4 "), HasSubstr("no answer from rank(s) [1] within 1 s")));
}

TEST(GlooMemory, OneThatIsNotReadHasAllOfItOverTcpAndTheOthersDoNot) {
  if (!process_memory_can_be_read()) GTEST_SKIP() << kNoProcessMemory;
  const auto all = GlooProcesses::peers({true, false, true}, "reduce", "20");
  EXPECT_THAT(GlooProcesses::start(all), testing::ElementsAre("ranks [0, 2] read each other's memory\n", "",
                                                              "ranks [0, 2] read each other's memory\n"));
}

TEST(GlooMeeting, OneRankNeedsNoNetwork) {
  World w(1);
  w.init();
  const Tensor t(kFloat32, std::vector<float>{1, 2});
  w.ranks[0]->all_reduce(t, t, LH_REDUCE_AVG);
  EXPECT_EQ(t.values<float>(), (std::vector<float>{1, 2}));
}

TEST(GlooMeeting, WithoutASocketRank0ListensItself) {
  World w(2);
  close(w.ranks[0]->where.listen_fd);
  w.ranks[0]->where.listen_fd = -1;
  w.init();
  w.run([](Rank& r) { r.barrier(); });
}

TEST(GlooMeeting, ABusyPortIsNamedWithAWayOut) {
  int64_t port = 0;
  const int fd = listen_somewhere(port);
  World w(2);
  w.ranks[0]->where.listen_fd = -1;
  w.ranks[0]->where.port = port;
  const auto errors = w.outcomes([](Rank& r) {
    if (r.where.rank == 0) r.init();
  });
  EXPECT_EQ(w.codes[0], LH_ALREADY_EXISTS);
  EXPECT_THAT(errors[0], AllOf(HasSubstr("port " + std::to_string(port)), HasSubstr("another MASTER_PORT")));
  close(fd);
}

TEST(GlooMeeting, TwoRunsOnOnePortNoticeIt) {
  Where like;
  like.connect_timeout_ns = 1'000'000'000;
  World w(2, {}, like);
  w.ranks[1]->where.job = "another";
  auto errors = w.outcomes([](Rank& r) { r.init(); });
  EXPECT_THAT(errors[1],
              AllOf(HasSubstr("belongs to another run"), HasSubstr("another"), HasSubstr("MASTER_PORT")));
  EXPECT_EQ(w.codes[0], LH_DEADLINE);
  EXPECT_THAT(errors[0], HasSubstr("processes of another run came to this port instead"));

  World late(2, {}, like);
  late.ranks[0]->where.restart = 1;
  errors = late.outcomes([](Rank& r) { r.init(); });
  EXPECT_THAT(errors[1], HasSubstr("is at restart 1 with 2 ranks, this process at restart 0"));
}

TEST(GlooMeeting, WhatIsWaitedForIsSaidEvery10Seconds) {
  logged().clear();
  Where like;
  like.connect_timeout_ns = 11'000'000'000;
  World w(4, {}, like);
  w.ranks[3]->where.port = free_port();  // the wrong one
  const auto errors = w.outcomes([](Rank& r) {
    if (r.where.rank != 2) r.init();
  });
  const std::string at = "127.0.0.1:" + std::to_string(w.ranks[0]->where.port);
  EXPECT_THAT(logged(),
              Contains("waiting for ranks [2, 3] at " + at +
                       ", 10 s of 11 s (the master address can be wrong, or those processes did not start)"));
  EXPECT_THAT(logged(), Contains(AllOf(StartsWith("cannot connect to 127.0.0.1:"),
                                       HasSubstr(" yet: Connection refused"))));
  EXPECT_THAT(errors[0], StartsWith("waited in vain for ranks [2, 3] at " + at));
  EXPECT_THAT(errors[3],
              AllOf(StartsWith("cannot connect to 127.0.0.1:"), HasSubstr("for 11 s: Connection refused")));
  EXPECT_EQ(w.codes[3], LH_DEADLINE);
}

TEST(GlooMeeting, AHostThatNobodyKnowsIsNamed) {
  Where like;
  like.connect_timeout_ns = 100'000'000;
  World w(2, {}, like);
  w.ranks[1]->where.host = "no-such-host.invalid";
  const auto errors = w.outcomes([](Rank& r) {
    if (r.where.rank == 1) r.init();
  });
  EXPECT_THAT(errors[1], HasSubstr("\"no-such-host.invalid\" is not known"));
  close(w.ranks[0]->where.listen_fd);
}

TEST(GlooMeeting, AnInterfaceThatIsNotThereIsRefusedWithThoseThatAre) {
  World w(2, {{"interface", std::string("eth77")}});
  const auto errors = w.outcomes([](Rank& r) { r.init(); });
  for (const std::string& e : errors)
    EXPECT_THAT(e, AllOf(HasSubstr("no network interface \"eth77\""), HasSubstr("lo (127.0.0.1")));
}

TEST(GlooMeeting, AnInterfaceCanBeChosen) {
  World w(2, {{"interface", std::string("lo")}});
  w.init();
  w.run([](Rank& r) { r.barrier(); });
}

TEST(GlooMeeting, AbortEndsTheMeeting) {
  World w(2);
  std::thread aborter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    w.ranks[0]->plugin->abort(w.ranks[0]->plugin.self, LH_CANCELLED);
  });
  const auto start = Clock::now();
  w.outcomes([](Rank& r) {
    if (r.where.rank == 0) r.init();
  });
  aborter.join();
  EXPECT_EQ(w.codes[0], LH_ABORTED);
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(700));
}

TEST(GlooMeeting, TwentyPairsAtOnceDoNotCollide) {
  std::vector<std::unique_ptr<World>> pairs;
  for (int i = 0; i < 20; ++i) pairs.push_back(std::make_unique<World>(2));
  std::vector<std::thread> threads;
  for (auto& p : pairs)
    threads.emplace_back([&p] {
      p->init();
      p->run([](Rank& r) { r.barrier(); });
    });
  for (std::thread& t : threads) t.join();
}

TEST(GlooOrder, BackendGivesTheSameIntegersAndAlmostTheSameFloats) {
  for (const int64_t n : {2, 3}) {
    World w(n, {{"order", std::string("backend")}});
    w.init();
    w.run([&](Rank& r) {
      for (const int64_t size : {1, 17, 100003}) {
        const Tensor i = numbers(kInt64, size, r.where.rank, 1), f = numbers(kFloat32, size, r.where.rank, 2);
        const Tensor h = numbers(kBfloat16, size, r.where.rank, 3), out(kFloat32, size),
                     all(kFloat32, n * size);
        r.all_reduce(i, i, LH_REDUCE_SUM);
        EXPECT_TRUE(i.bytes() == reduced(kInt64, size, n, 1, LH_REDUCE_SUM));
        r.all_reduce(f, out, LH_REDUCE_AVG);
        std::vector<float> want(static_cast<size_t>(size));
        std::memcpy(want.data(), reduced(kFloat32, size, n, 2, LH_REDUCE_AVG).data(), want.size() * 4);
        const auto got = out.values<float>();
        for (size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-5);
        r.all_reduce(h, h, LH_REDUCE_SUM);  // 16 bits stay with the rank order
        EXPECT_TRUE(h.bytes() == reduced(kBfloat16, size, n, 3, LH_REDUCE_SUM));
        r.start(r.plugin->all_gather, &f, &all, {}).wait();
        EXPECT_TRUE(all.part(r.where.rank, n).bytes() == f.bytes());
        r.start(r.plugin->broadcast, r.where.rank == 1 ? &f : nullptr, &out, {.root = 1}).wait();
        EXPECT_TRUE(out.bytes() == numbers(kFloat32, size, 1, 2).bytes());
      }
    });
  }
}

TEST(GlooOrder, BackendHasTimeLimitsAndAbortToo) {
  World w(2, {{"order", std::string("backend")}});
  w.init();
  const Tensor t(kFloat32, 10);
  w.outcomes([&](Rank& r) {
    if (r.where.rank == 0) r.start(r.plugin->all_reduce, &t, &t, {.timeout_ns = 200'000'000}).wait();
  });
  EXPECT_EQ(w.codes[0], LH_DEADLINE);

  World other(2, {{"order", std::string("backend")}});
  other.init();
  Rank& r = *other.ranks[0];
  const Work work = r.start(r.plugin->all_reduce, &t, &t, {});
  std::thread aborter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    r.plugin->abort(r.plugin.self, LH_CANCELLED);
  });
  const auto start = Clock::now();
  EXPECT_THROW(work.wait(), StatusError);
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(300));
  aborter.join();
}

}  // namespace
