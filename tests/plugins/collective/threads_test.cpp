// The transport "threads": calls that do not fit together.
#include "rig.hpp"

#include <gmock/gmock.h>

namespace {
using namespace lhost_test;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// Both ranks get the same text, and the code of an argument that cannot be.
template <class F>
void expect_disagreement(F f, const std::string& first, const std::string& second) {
  World w(2);
  w.init();
  const auto errors = w.outcomes(f);
  EXPECT_THAT(w.codes, Each(LH_INVALID_ARGUMENT));
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 0 has " + first), HasSubstr("rank 1 has " + second))));
}

TEST(Threads, ShapesThatDifferAreAnErrorOnAllRanks) {
  expect_disagreement(
      [](Rank& r) {
        const Tensor t(kFloat32, 10 + r.where.rank);
        r.all_reduce(t, t, LH_REDUCE_SUM);
      },
      "all_reduce of 10 float32", "all_reduce of 11 float32");
}

TEST(Threads, DtypesThatDifferAreAnErrorOnAllRanks) {
  expect_disagreement(
      [](Rank& r) {
        const Tensor t(r.where.rank ? kFloat64 : kFloat32, 10);
        r.all_reduce(t, t, LH_REDUCE_SUM);
      },
      "all_reduce of 10 float32", "all_reduce of 10 float64");
}

TEST(Threads, ReductionsThatDifferAreAnErrorOnAllRanks) {
  expect_disagreement(
      [](Rank& r) {
        const Tensor t(kFloat32, 10);
        r.all_reduce(t, t, r.where.rank ? LH_REDUCE_MAX : LH_REDUCE_AVG);
      },
      "all_reduce (average)", "all_reduce (maximum)");
}

TEST(Threads, CallsThatDifferAreAnErrorOnAllRanks) {
  expect_disagreement(
      [](Rank& r) {
        const Tensor t(kFloat32, 10);
        if (r.where.rank) r.barrier();
        else r.all_reduce(t, t, LH_REDUCE_SUM);
      },
      "all_reduce", "barrier");
}

TEST(Threads, RootsThatDifferAreAnErrorOnAllRanks) {
  expect_disagreement(
      [](Rank& r) {
        const Tensor t(kFloat32, 10);
        r.start(r.plugin->broadcast, &t, &t, {.root = r.where.rank}).wait();
      },
      "broadcast of 10 float32 with root 0", "broadcast of 10 float32 with root 1");
}

TEST(Threads, ASendAndAReceiveOfDifferentSizesAreAnErrorOnBoth) {
  expect_disagreement(
      [](Rank& r) {
        const Tensor t(kFloat32, 10 + r.where.rank);
        if (r.where.rank) r.start(r.plugin->recv, nullptr, &t, {.root = 0}).wait();
        else r.start(r.plugin->send, &t, nullptr, {.root = 1}).wait();
      },
      "send of 10 float32 to rank 1", "recv of 11 float32 from rank 0");
}

TEST(Threads, GroupsThatDifferAreAnError) {
  World w(3);
  w.init();
  Rank& first = *w.ranks[0];
  lh_process_group* group = first.group({0, 1});
  EXPECT_NE(group, nullptr);
  first.plugin->group_free(first.plugin.self, group);
  try {
    w.ranks[1]->group({0, 2});
    FAIL();
  } catch (const StatusError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("[0, 1] elsewhere"), HasSubstr("[0, 2] on rank 1")));
  }
}

TEST(Threads, ARunThatEndedDoesNotStandInTheWayOfTheNext) {
  std::string job;
  for (int i = 0; i < 3; ++i) {
    World w(2);
    if (i == 0) job = w.ranks[0]->where.job;
    for (auto& r : w.ranks) r->where.job = job;
    w.init();
    w.run([](Rank& r) { r.barrier(); });
  }
}

}  // namespace
