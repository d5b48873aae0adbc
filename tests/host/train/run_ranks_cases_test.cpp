// tests/host/train/run_ranks_cases_test.cpp - cases of tests/cases.md on several ranks: what ranks could get wrong without
// anybody noticing. In each the ranks differ on purpose, and the expected number is none that a rank alone would give.
#include "run_support.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace run_test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

namespace {

struct RanksCases : RanksRun {
  static ByHand::Gradient mean(const ByHand::Gradient& a, double of_a, const ByHand::Gradient& b,
                               double of_b) {
    ByHand::Gradient m;
    for (int j = 0; j < 2; ++j) m.w[j] = (of_a * a.w[j] + of_b * b.w[j]) / (of_a + of_b);
    m.b = (of_a * a.b + of_b * b.b) / (of_a + of_b);
    return m;
  }
  static std::vector<double> after(const ByHand::Gradient& g) {
    ByHand h;
    h.step(g, 0.1);
    return h.weights();
  }
  // A callback that logs one value of an epoch at the first batch; its weight is the number of samples.
  static std::string logs(const std::string& metric, const std::string& value, const std::string& weight) {
    return meddler("event = \"fit.batch_start\", act = \"log\", at = 0, flags = 2, metric = \"" + metric +
                   "\", values = [\"" + value + "\"], weights = [" + weight + "]");
  }
  // The samples of each epoch as the model saw them, of both ranks. They share this process's log, which is the file that
  // was opened last.
  static std::vector<std::vector<int64_t>> epochs(const Outcome& o, size_t steps_of_epoch) {
    std::vector<std::vector<int64_t>> list;
    std::istringstream log(o.read("host.log") + o.read("rank_1.log"));
    size_t n = 0;
    for (std::string line; std::getline(log, line);) {
      const size_t at = line.find("training_step");
      if (at == line.npos) continue;
      if (n++ % steps_of_epoch == 0) list.emplace_back();
      std::istringstream words(line.substr(at + 13));
      for (int64_t i = 0; words >> i;) list.back().push_back(i);
    }
    return list;
  }
};

// ---- gradients

// Rank 0 has three rows and rank 1 has one: rows count alike, not ranks.
TEST_F(RanksCases, F066_ddWeight_RowsAreAveragedNotRanks) {
  const auto three = ByHand().gradient(0, 3), one = ByHand().gradient(3, 1);
  const auto o = done_on(2, {"data.samples=4", "data.batch_size=3"});
  expect_near(o.weights(), after(mean(three, 3, one, 1)));
  const double of_ranks = after(mean(three, 1, one, 1)).at(2);
  EXPECT_GT(std::abs(o.weights().at(2) - of_ranks), 1e-3) << "the mean of the ranks' means is another number";
}

// The targets of a step: 10 on rank 0, 100 on rank 1.
TEST_F(RanksCases, F002_accWeight_WeightsThatModelsGiveAreOfAllRanks) {
  const auto a = ByHand().gradient(0, 2), b = ByHand().gradient(2, 2);
  const auto o = done_on(2, {"model.weight=10", "model.by_rank=9", "data.samples=4"});
  expect_near(o.weights(), after(mean(a, 10, b, 100)));
}

// Rank 1 builds a model that is ten times as large; both must go on from rank 0's.
TEST_F(RanksCases, F067_ddInit_EveryRankStartsFromTheValuesOfRankZero) {
  ByHand h;
  for (int64_t i : {0, 4}) h.step(h.gradient(i, 4), 0.1);
  expect_near(done_on(2, {"model.by_rank=9"}).weights(), h.weights());
}

// ---- buffers

// A step adds 1 to the buffer of rank 0 and 4 to that of rank 1. Each step and each evaluation starts from rank 0's.
TEST_F(RanksCases, F063_ddBn_AnEvaluationSeesTheBuffersOfRankZeroOnEveryRank) {
  for (const char* also_steps : {"true", "false"}) {
    const auto o = done_on(2, {"model.count=true", "model.by_rank=3", "data.val_samples=8",
                               "strategy.broadcast_buffers=" + std::string(also_steps)});
    EXPECT_THAT(o.series("val_count"), ElementsAre(2)) << "two steps; rank 1 alone would be at 5 or 8";
    EXPECT_THAT(o.tree().at("state_dict/count"), HasSubstr("[]0200000000000000"));
  }
}

// ---- data

TEST_F(RanksCases, F061_ddEpochseed_EveryEpochHasItsOwnOrderThatTheRanksShareOut) {
  // The first global batch of each epoch, sorted: which rank writes its line first is chance.
  const auto first_batches = [&] {
    const auto o =
        done_on(2, {"data.shuffle=true", "data.samples=16", "trainer.max_epochs=3", "model.trace=true"});
    std::vector<std::vector<int64_t>> batches;
    for (std::vector<int64_t> epoch : epochs(o, 8)) {
      batches.emplace_back(epoch.begin(), epoch.begin() + 4);
      std::sort(batches.back().begin(), batches.back().end());
      std::sort(epoch.begin(), epoch.end());
      for (size_t i = 0; i < 16; ++i)
        EXPECT_EQ(epoch.at(i), static_cast<int64_t>(i)) << "each sample once, on one of the ranks";
    }
    return batches;
  };
  const auto first = first_batches();
  ASSERT_THAT(first, SizeIs(3));
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[1], first[2]);
  EXPECT_EQ(first_batches(), first) << "the same seed, the same order";
}

// ---- metrics

TEST_F(RanksCases, F037_lgKeys_TheOrderOfNamesMayDifferBetweenRanks) {
  other_on_rank_1 = {R"(callback[1].metric="b")", R"(callback[1].values=["11"])", R"(callback[2].metric="a")",
                     R"(callback[2].values=["1"])"};
  const auto o = done_on(2, {logs("a", "0", "1"), logs("b", "10", "1")});
  EXPECT_THAT(o.series("a"), ElementsAre(0.5));
  EXPECT_THAT(o.series("b"), ElementsAre(10.5));
}

// Every value is 1: with 3 samples on one rank and 4 on the other, a count cut to an integer would give 7 / 6.
TEST_F(RanksCases, F054_lgIntfloor_CountsOfRanksAreAddedBeforeTheDivision) {
  for (const char* other : {"4", "0"}) {
    other_on_rank_1 = {"callback[1].weights=[" + std::string(other) + "]"};
    EXPECT_THAT(done_on(2, {logs("m", "1", "3")}).series("m"), ElementsAre(1.0)) << other;
  }
  other_on_rank_1 = {"callback[1].weights=[1]", R"(callback[1].values=["6"])"};
  EXPECT_THAT(done_on(2, {logs("m", "2", "3")}).series("m"), ElementsAre(3.0)) << "(3 * 2 + 6) / 4";
}

// A value of a step is the rank's own: a decision on it would not be that of all ranks.
TEST_F(RanksCases, F038_lgRank0_AMonitorThatOneRankLogsIsAnErrorOnAll) {
  for (const char* rank : {"0", "1"}) {
    const auto o =
        run_on(2, {"model.log=[\"extra\"]", std::string("model.only_rank=") + rank, "data.val_samples=4",
                   "trainer.max_epochs=20",
                   R"(callback+={use="early_stopping", monitor="extra", mode="min", patience=1})"});
    bool named = false;
    for (const auto& r : o.ranks) {
      EXPECT_NE(r.code, lhost::Exit::done) << "logged on rank " << rank;
      EXPECT_LE(r.stages.at("fit").epochs, 1) << "at the first look, not later";
      named |= r.error.find("no metric \"extra\"") != r.error.npos;
    }
    EXPECT_TRUE(named) << o.ranks[0].error << "\n" << o.ranks[1].error;
  }
}

// ---- files

// What it would say of other ranks is much the same, and no file may have two writers.
TEST_F(RanksCases, F130_pfRank_OnlyRankZeroWritesAProfile) {
  const auto o = done_on(4, {"profiler.use=simple", "data.batch_size=1"});
  std::vector<std::string> profiles;
  for (const std::string& name : o.files(""))
    if (name.rfind("profile", 0) == 0) profiles.push_back(name);
  EXPECT_THAT(profiles, ElementsAre("profile.txt"));
  EXPECT_THAT(o.read("profile.txt"), HasSubstr("\nstep               2 "));
}

// The check before training is of validation only, on every rank, and leaves nothing.
TEST_F(RanksCases, F178_rpSanity_TheCheckBeforeTrainingLeavesNothingOnAnyRank) {
  const auto with = [&](const char* steps) {
    return done_on(2, {"data.val_samples=8", "model.noise=0.5", "trainer.max_epochs=2",
                       std::string("trainer.num_sanity_val_steps=") + steps});
  };
  const auto none = with("0"), two = with("2");
  EXPECT_EQ(below(two.tree(), "state_dict/"), below(none.tree(), "state_dict/"));
  ASSERT_EQ(two.records.size(), none.records.size());
  for (size_t i = 0; i < none.records.size(); ++i) EXPECT_EQ(two.records[i].values, none.records[i].values);
}

}  // namespace
