// What every transport does when something goes wrong; compiled once for each transport.
#include "model.hpp"

#include <gmock/gmock.h>

namespace {
using namespace lhost_test;
using testing::AllOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// The code and text of what f throws.
template <class F>
std::pair<lh_code, std::string> failure_of(F f) {
  try {
    f();
  } catch (const StatusError& e) {
    return {e.code, e.what()};
  }
  return {LH_OK, ""};
}

TEST(LHOST_SUITE(Failures), ACallWithoutAnAnswerEndsAtItsTimeLimitAndNamesWhoIsMissing) {
  World w(3);
  w.init();
  w.run([](Rank& r) {
    if (r.where.rank == 2) return std::this_thread::sleep_for(std::chrono::milliseconds(900));
    const Tensor t(kFloat32, 10);
    const Work work = r.start(r.plugin->all_reduce, &t, &t, {.timeout_ns = 400'000'000});
    const auto start = Clock::now();
    const auto [code, text] = failure_of([&] { work.wait(); });
    EXPECT_GT(seconds_since(start), 0.3);
    EXPECT_LT(seconds_since(start), 0.8);
    EXPECT_EQ(code, LH_DEADLINE);
    EXPECT_EQ(text, "all_reduce of 10 float32 (call 1) got no answer from rank(s) [2] within 0.4 s");
  });
}

TEST(LHOST_SUITE(Failures), AnErrorComesOutOfItsWaitOnceAndLaterCallsFailWithTheFirst) {
  World w(2);
  w.init();
  Rank& r = *w.ranks[0];
  const Tensor t(kFloat32, 10), large(kFloat32, 100000);
  const Work first = r.start(r.plugin->all_reduce, &t, &t, {.timeout_ns = 100'000'000});
  EXPECT_EQ(failure_of([&] { first.wait(); }).first, LH_DEADLINE);
  EXPECT_EQ(failure_of([&] { first.wait(); }).first, LH_OK);
  const auto start = Clock::now();
  const auto [code, text] = failure_of([&] { r.start(r.plugin->all_reduce, &large, &large, {}).wait(); });
  EXPECT_EQ(code, LH_DEADLINE);
  EXPECT_THAT(text, HasSubstr("a call before it failed: all_reduce of 10 float32"));
  EXPECT_LT(seconds_since(start), 0.05);
}

TEST(LHOST_SUITE(Failures), AWaitThatIsLeftEarlyDoesNotEndTheCall) {
  World w(2);
  w.init();
  w.run([](Rank& r) {
    for (const int64_t size : {10, 100000}) {
      const Tensor t = numbers(kFloat32, size, r.where.rank, 1);
      if (r.where.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const Work work = r.start(r.plugin->all_reduce, &t, &t, {});
      if (r.where.rank == 0) {
        const auto [code, text] = failure_of([&] { work.wait(50'000'000); });
        EXPECT_EQ(code, LH_DEADLINE);
        EXPECT_THAT(text, HasSubstr("is not complete after 0.05 s"));
      }
      work.wait();
      EXPECT_TRUE(t.bytes() == reduced(kFloat32, size, 2, 1, LH_REDUCE_SUM));
    }
  });
}

// Rank 0 aborts from another thread while it waits for rank 1, in one way after the other.
TEST(LHOST_SUITE(Failures), AbortEndsEveryWaiterWithin200Milliseconds) {
  for (const int64_t size : {4, 1 << 20}) {
    World w(2);
    w.init();
    Rank& r = *w.ranks[0];
    const Tensor a(kFloat32, size), b(kFloat32, size), c(kFloat32, size);
    std::vector<Work> works{
        r.start(r.plugin->all_reduce, &a, &a, {}), r.start(r.plugin->all_reduce, &b, &b, {}),
        r.start(r.plugin->recv, nullptr, &c, {.root = 1}), r.start(r.plugin->barrier, nullptr, nullptr, {})};
    std::atomic<int> ended{0};
    std::vector<std::thread> waiters;
    for (const Work& work : works)
      waiters.emplace_back([&ended, &work] {
        const auto [code, text] = failure_of([&] { work.wait(); });
        EXPECT_EQ(code, LH_ABORTED) << text;
        ++ended;
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(ended, 0);
    const auto start = Clock::now();
    r.plugin->abort(r.plugin.self, LH_PEER_LOST);
    for (std::thread& t : waiters) t.join();
    EXPECT_LT(seconds_since(start), 0.2);
    const auto again = Clock::now();
    EXPECT_EQ(failure_of([&] { r.barrier(); }).first, LH_ABORTED);
    EXPECT_LT(seconds_since(again), 0.2);
  }
}

TEST(LHOST_SUITE(Failures), TheOthersLearnOfAnAbort) {
  World w(3);
  w.init();
  const auto errors = w.outcomes([](Rank& r) {
    r.barrier();
    if (r.where.rank != 1) return r.barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    r.plugin->abort(r.plugin.self, LH_CANCELLED);
  });
  EXPECT_EQ(w.codes, (std::vector<lh_code>{LH_PEER_LOST, LH_OK, LH_PEER_LOST}));
  for (const size_t r : {0, 2}) EXPECT_THAT(errors[r], HasSubstr("has aborted")) << r;
}

TEST(LHOST_SUITE(Failures), ARankThatLeavesIsLost) {
  World w(2);
  w.init();
  const auto start = Clock::now();
  const auto errors = w.outcomes([&](Rank& r) {
    r.barrier();
    if (r.where.rank == 0) return r.barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    w.ranks[1].reset();
  });
  EXPECT_LT(seconds_since(start), 1);
  EXPECT_EQ(w.codes[0], LH_PEER_LOST);
  EXPECT_THAT(errors[0], HasSubstr("rank 1 is gone"));
}

TEST(LHOST_SUITE(Failures), DestroyIsBoundedWhateverIsOnItsWay) {
  for (const int64_t size : {4, 1 << 20}) {
    World w(2);
    w.init();
    const Tensor t(kFloat32, size);
    w.ranks[0]->start(w.ranks[0]->plugin->all_reduce, &t, &t, {});  // nobody answers, nobody waits
    const auto start = Clock::now();
    w.ranks[0].reset();
    w.ranks[1].reset();
    EXPECT_LT(seconds_since(start), 3);
  }
}

TEST(LHOST_SUITE(Failures), AMissingRankIsNamedWhenTheMeetingEnds) {
  Where like;
  like.connect_timeout_ns = 300'000'000;
  World w(4, {}, like);
  const auto errors = w.outcomes([](Rank& r) {
    if (r.where.rank != 2) r.init();
  });
  for (const size_t r : {0, 1, 3}) {
    EXPECT_EQ(w.codes[r], LH_DEADLINE);
    EXPECT_THAT(errors[r], AllOf(HasSubstr("in vain for ranks [2]"), HasSubstr("0.3 s")));
  }
}

TEST(LHOST_SUITE(Failures), TwoProcessesOfOneRankAreNamed) {
  World w(3, {}, [] {
    Where like;
    like.connect_timeout_ns = 1'000'000'000;
    return like;
  }());
  w.ranks[2]->where.rank = 1;
  const auto errors = w.outcomes([](Rank& r) { r.init(); });
  EXPECT_THAT(w.codes, testing::Contains(LH_ALREADY_EXISTS));
  EXPECT_THAT(errors, testing::Contains(HasSubstr("have rank 1")));
}

}  // namespace
