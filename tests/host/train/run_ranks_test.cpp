// tests/host/train/run_ranks_test.cpp - runs on several ranks: the numbers of one rank on the same global batches, one
// writer, what the ranks agree on. Expected values are computed by hand (ByHand) or are those of a run on one rank.
#include "run_support.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

using namespace run_test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

struct RunRanks : RanksRun {
  // SGD on 8 samples in their order, by hand: global batches of `global` rows.
  static std::vector<double> by_hand(int64_t samples, int64_t global, int epochs = 1) {
    ByHand h;
    for (int e = 0; e < epochs; ++e)
      for (int64_t i = 0; i < samples; i += global) h.step(h.gradient(i, std::min(global, samples - i)), 0.1);
    return h.weights();
  }
};

TEST_F(RunRanks, F065_ddParity_TheSameGlobalBatchGivesTheSameWeights) {
  for (int ranks : {1, 2, 4}) {
    const auto o = done_on(ranks, {"data.batch_size=" + std::to_string(8 / ranks), "trainer.max_epochs=10"});
    expect_near(o.weights(), by_hand(8, 8, 10));
    ByHand start;
    EXPECT_NEAR(o.series("loss").front(), start.gradient(0, 8).loss, 1e-6) << "the loss in the log, too";
  }
}

// 7 samples: the last global batch is uneven, and with 3 and 4 ranks some of them have no row at all.
TEST_F(RunRanks, F055_ddUneven_AnUnevenLastBatchIsTheMeanOfItsRows) {
  for (int ranks : {2, 3, 4}) {
    const auto o = done_on(ranks, {"data.samples=7", "data.batch_size=2", "trainer.max_epochs=3"});
    expect_near(o.weights(), by_hand(7, 2 * ranks, 3));
    EXPECT_EQ(o.result("/stages/fit/samples"), "21");
    EXPECT_EQ(o.records.back().samples, 21);
  }
}

// F-003: rank 0 micro gradients 1 then 3, rank 1: 2 then 5 must give 2.75 on both; here by the regression.
TEST_F(RunRanks, F003_accNosync_AnAccumulationWindowIsReducedOnceAndIsTheMeanOfAllItsRows) {
  const auto o = done_on(2, {"data.samples=12", "data.batch_size=2", "trainer.accumulate_grad_batches=2"});
  expect_near(o.weights(), by_hand(12, 8));  // 8 rows, then the short window of 4
  EXPECT_EQ(o.result("/stages/fit/global_step"), "2");
}

TEST_F(RunRanks, ClippingIsThatOfTheJoinedBatch) {
  const Overrides clip = {"trainer.gradient_clip_val=0.05", "trainer.max_epochs=3"};
  Overrides one = clip, two = clip;
  one.emplace_back("data.batch_size=4");
  two.emplace_back("data.batch_size=2");
  expect_near(done_on(2, two).weights(), done(one).weights());
}

TEST_F(RunRanks, F066_ddWeight_AWeightGivenByTheModelIsSharedOverRanks) {
  expect_near(done_on(2, {"model.weight=3", "data.samples=6"}).weights(),
              by_hand(6, 4));  // rank 1 has no row at last
}

TEST_F(RunRanks, F162_cxTied_F165_cxZerograd_TiedAndUnusedParameters) {
  const Overrides o = {"model.tied=true",
                       "model.unused=true",
                       "strategy.find_unused_parameters=true",
                       "optimizer.weight_decay=0.1",
                       "optimizer.momentum=0.9",
                       "trainer.max_epochs=4"};
  const auto two = done_on(2, o);
  Overrides alone = o;
  std::erase(alone, "strategy.find_unused_parameters=true");
  alone.emplace_back("data.batch_size=4");
  const auto one = done(alone);
  expect_near(two.weights(), one.weights());
  EXPECT_EQ(two.tree().at("state_dict/unused.weight"), one.tree().at("state_dict/unused.weight"))
      << "no rank used it: neither decay nor momentum moved it";
  EXPECT_EQ(two.tree().at("state_dict/tied.weight"), two.tree().at("state_dict/linear.weight"));
}

TEST_F(RunRanks, F086_fsDiverge_AParameterWithoutGradientIsAnErrorThatNamesIt) {
  const auto o = run_on(2, {"model.unused=true"});
  EXPECT_NE(o.report.exit_code, 0);
  bool named = false;
  for (const auto& r : o.ranks)
    named |= r.error.find("\"unused.weight\"") != r.error.npos &&
             r.error.find("find_unused_parameters = true") != r.error.npos;
  EXPECT_TRUE(named) << o.ranks[0].error << "\n" << o.ranks[1].error;
}

TEST_F(RunRanks, StaticGraphRemembersWhatTheFirstStepUsed) {
  const auto o = done_on(2, {"model.unused=true", "strategy.static_graph=true", "trainer.max_epochs=3",
                             "optimizer.weight_decay=0.5"});
  const std::string bytes = o.tree().at("state_dict/unused.weight");
  EXPECT_THAT(bytes, HasSubstr("0000803f0000803f")) << "1.0 and 1.0, as they began";
}

TEST_F(RunRanks, SmallBucketsChangeNothing) {
  const auto whole = done_on(3, {"trainer.max_epochs=3", "model.units=true"});
  const auto cut = done_on(
      3, {"trainer.max_epochs=3", "model.units=true", "strategy.bucket_cap=1", "strategy.first_bucket=1"});
  EXPECT_EQ(below(whole.tree(), "state_dict/"), below(cut.tree(), "state_dict/")) << "bit for bit";
}

TEST_F(RunRanks, F179_rpRankrng_EveryRankDrawsItsOwnNumbersFromTheSameWeights) {
  const Overrides noisy = {"model.noise=0.5", "trainer.max_epochs=2"};
  const auto a = done_on(2, noisy), b = done_on(2, noisy);
  EXPECT_EQ(below(a.tree(), "state_dict/"), below(b.tree(), "state_dict/"))
      << "the same manifest, the same run";
  EXPECT_NE(a.tree().at("lhost/rng"), a.tree().at("lhost/rank_rng/1"))
      << "F-179: no stream is another rank's";
}

// ---- evaluation and metrics

TEST_F(RunRanks, F054_lgIntfloor_EvaluationSeesEverySampleOnceAndWeighsItsRows) {
  for (int64_t n : {1, 2, 3, 5, 7, 13}) {
    const Overrides val = {"data.val_samples=" + std::to_string(n), "trainer.max_epochs=1"};
    Overrides alone = val;
    alone.emplace_back("data.batch_size=8");  // the weights are the same after one step of 8
    Overrides four = val;
    four.emplace_back("data.batch_size=2");
    const auto one = done(alone);
    const auto many = done_on(4, four);
    ASSERT_EQ(many.of_stage("validate").size(), 1u) << n;
    for (const char* metric : {"val_loss", "val_acc"})
      EXPECT_NEAR(many.of_stage("validate")[0].values.at(metric),
                  one.of_stage("validate")[0].values.at(metric), 1e-6)
          << metric << " of " << n;
  }
}

TEST_F(RunRanks, F037_lgKeys_AMetricThatOneRankDoesNotLogIsAnErrorOnAll) {
  const Overrides extra = {"model.log=[\"extra\"]", "model.only_rank=1"};
  done_on(2, extra);  // a value of a step is the rank's own
  Overrides epoch = extra;
  epoch.emplace_back("model.log_on_epoch=true");
  const auto o = run_on(2, epoch);
  for (const auto& r : o.ranks) {
    EXPECT_EQ(r.code, lhost::Exit::failed);
    EXPECT_THAT(r.error, AllOf(HasSubstr("\"extra\""), HasSubstr("not on rank 0"))) << "on every rank";
  }
  EXPECT_THAT(o.series("extra"), IsEmpty());
}

TEST_F(RunRanks, F053_lgRace_OneFolderOneWriter) {
  const auto o = done_on(4, {"data.val_samples=4", "checkpoint[0].save_top_k=1"});
  for (const auto& r : o.ranks) EXPECT_EQ(r.run_folder, o.report.run_folder);
  EXPECT_THAT(o.files(), testing::SizeIs(2)) << "the best and the last, once";
  EXPECT_EQ(o.of_stage("fit").size() + o.of_stage("validate").size(), o.records.size());
  for (const auto& r : o.ranks) EXPECT_EQ(r.last.at("val_loss"), o.ranks[0].last.at("val_loss"));
}

// ---- agreement

TEST_F(RunRanks, F190_sgConsistent_OneRanksWishToStopStopsAllAfterTheSameStep) {
  for (int asks : {0, 1, 2}) {
    const auto o = done_on(3, {"model.stop_at=1", "model.only_rank=" + std::to_string(asks),
                               "data.samples=30", "trainer.max_epochs=3"});
    EXPECT_EQ(o.result("/stages/fit/global_step"), "2") << "rank " << asks;
    for (const auto& r : o.ranks) EXPECT_EQ(r.stages.at("fit").global_step, 2);
  }
}

TEST_F(RunRanks, ABatchThatOneRankSkipsIsSkippedByAll) {
  const auto o = done_on(2, {"model.skip_at=0", "model.only_rank=1"});
  ByHand h;
  h.step(h.gradient(4, 4), 0.1);  // the first global batch makes no step
  expect_near(o.weights(), h.weights());
  EXPECT_EQ(o.result("/stages/fit/global_step"), "1");
}

TEST_F(RunRanks, InALongerWindowTheSkippedRowsAreLeftOut) {
  const auto o = done_on(2, {"model.skip_at=0", "model.only_rank=1", "trainer.accumulate_grad_batches=2"});
  ByHand h;  // rows 0 1 | 4 5 6 7, of the window's eight
  const auto a = h.gradient(0, 2), b = h.gradient(4, 4);
  ByHand::Gradient mean;
  for (int j = 0; j < 2; ++j) mean.w[j] = (2 * a.w[j] + 4 * b.w[j]) / 6;
  mean.b = (2 * a.b + 4 * b.b) / 6;
  h.step(mean, 0.1);
  expect_near(o.weights(), h.weights());
}

// ---- failure

TEST_F(RunRanks, F057_ddDie_AnErrorOnOneRankEndsTheOthersWithAnErrorOfTheirOwn) {
  for (int culprit : {0, 2}) {
    const auto o = run_on(3, {"model.throw_at=1", "model.only_rank=" + std::to_string(culprit)});
    for (int r = 0; r < 3; ++r) {
      const auto& x = o.ranks[static_cast<size_t>(r)];
      EXPECT_EQ(x.code, r == culprit ? lhost::Exit::failed : lhost::Exit::peer)
          << "rank " << r << ": " << x.error;
      EXPECT_THAT(x.where, HasSubstr("rank " + std::to_string(r)));
    }
    EXPECT_THAT(o.ranks[static_cast<size_t>(culprit)].error, HasSubstr("told to throw"));
  }
}

TEST_F(RunRanks, F067_ddInit_RanksWithDifferentModelsAreRefusedBeforeTheFirstStep) {
  const auto o = run_on(2, {"model.classes=1", "model.unused=true", "model.only_rank=1"});
  for (const auto& r : o.ranks) {
    EXPECT_EQ(r.code, lhost::Exit::failed);
    EXPECT_THAT(r.error, AllOf(HasSubstr("rank 0 has nothing more"),
                               HasSubstr("rank 1 has the model's \"unused.weight\"")));
  }
}

// Each rank reads its own manifest only here and on several machines.
TEST_F(RunRanks, F067_ddInit_RanksWithDifferentSettingsAreRefusedBeforeTheFirstStep) {
  other_on_rank_1 = {"optimizer.lr=0.2"};
  for (const auto& r : run_on(2, {}).ranks) {
    EXPECT_EQ(r.code, lhost::Exit::failed);
    EXPECT_THAT(r.error, AllOf(HasSubstr("rank 0 has [optimizer] lr = 0.1"),
                               HasSubstr("rank 1 has [optimizer] lr = 0.2")));
  }
  other_on_rank_1 = {"run.seed=7"};
  for (const auto& r : run_on(2, {}).ranks) EXPECT_THAT(r.error, HasSubstr("rank 1 has [run] seed = 7"));
  const std::string group = "optimizer.group=[{match=\"linear.bias\",lr=";
  other_on_rank_1 = {group + "0.3}]"};
  for (const auto& r : run_on(2, {group + "0.2}]"}).ranks)
    EXPECT_THAT(r.error, HasSubstr("rank 1 has [[optimizer.group]] lr = 0.3"));
}

TEST_F(RunRanks, WhatDependsOnTheMachineMayDiffer) {
  other_on_rank_1 = {"trainer.threads=2", "trainer.devices=\"auto\"", "collective.connect_timeout=\"1m\""};
  for (const auto& r : run_on(2, {}).ranks) EXPECT_EQ(r.code, lhost::Exit::done) << r.error;
}

TEST_F(RunRanks, CheckedCollectivesChangeNothing) {
  EXPECT_EQ(below(done_on(3, {"collective.check=true", "data.val_samples=5"}).tree(), "state_dict/"),
            below(done_on(3, {"data.val_samples=5"}).tree(), "state_dict/"));
}

// ---- resume

TEST_F(RunRanks, F174_rpRng_ResumedWithTheSameRanksItIsTheUninterruptedRun) {
  const Overrides rich = {"model.noise=0.2",        "model.count=true", "data.shuffle=true",
                          "optimizer.momentum=0.9", "data.samples=20",  "data.batch_size=3"};
  Overrides whole = rich, first = rich, second = rich;
  whole.emplace_back("trainer.max_epochs=4");
  first.emplace_back("trainer.max_epochs=2");
  second.emplace_back("trainer.max_epochs=4");
  second.emplace_back("resume.from=\"last\"");
  const auto a = done_on(2, whole).tree();
  folder.clear();
  done_on(2, first);
  const auto b = done_on(2, second).tree();
  for (const char* part : {"state_dict/", "optimizer/", "lhost/rng", "lhost/rank_rng/"})
    EXPECT_EQ(below(a, part), below(b, part)) << part;
}

// F-015: 96 samples, 2 ranks x 4, stopped after 48; 4 ranks x 4 finish the epoch in 3 steps.
TEST_F(RunRanks, F015_ckWorld_ResumedWithOtherRanksItGoesOnBySampleCount) {
  const Overrides same = {"data.samples=96", "trainer.max_epochs=1"};
  Overrides first = same, second = same;
  first.insert(first.end(), {"data.batch_size=4", "trainer.max_steps=6"});
  second.insert(second.end(), {"data.batch_size=4", "resume.from=\"last\""});
  done_on(2, first);
  testing::internal::CaptureStderr();
  const auto o = done_on(4, second);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("goes on after 48 samples: batch 3 of 6 now"));
  EXPECT_EQ(o.result("/stages/fit/global_step"), "9");
  EXPECT_EQ(o.result("/stages/fit/samples"), "48");
  ByHand h;
  for (int64_t i = 0; i < 48; i += 8) h.step(h.gradient(i, 8), 0.1);
  for (int64_t i = 48; i < 96; i += 16) h.step(h.gradient(i, 16), 0.1);
  expect_near(o.weights(), h.weights(), 1e-5);
  folder.clear();
  done_on(2, first);
  Overrides odd = same;
  odd.insert(odd.end(), {"data.batch_size=5", "resume.from=\"last\""});
  const auto refused = run_on(2, odd);
  EXPECT_EQ(refused.report.exit_code, 2);
  EXPECT_THAT(refused.report.error, HasSubstr("48 samples"));
}

}  // namespace
