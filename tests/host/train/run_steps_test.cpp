// Counters, accumulation windows, limits: what one step is, and how many there are.
#include "run_support.hpp"

#include <algorithm>
#include <cmath>

namespace run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct RunSteps : Run {
  // batch numbers (from 0) whose end saw a new optimizer step
  static std::vector<int64_t> stepping_batches(const Outcome& o) {
    std::vector<int64_t> batches;
    int64_t last = 0;
    for (const Event& e : o.all("fit.batch_end")) {
      if (e.step > last) batches.push_back(e.batch - 1);
      last = e.step;
    }
    return batches;
  }
};

const std::string kTenBatches = "data.samples=20";

TEST_F(RunSteps, B001_AccumulateThreeOfTenBatchesStepsAt2_5_8_9OfEachEpoch) {
  const Outcome o = done({kTenBatches, "trainer.accumulate_grad_batches=3", "trainer.max_epochs=2"});
  EXPECT_THAT(stepping_batches(o), ElementsAre(2, 5, 8, 9, 2, 5, 8, 9));
  EXPECT_EQ(o.result("/stages/fit/global_step"), "8");
  EXPECT_EQ(o.result("/stages/fit/epochs"), "2");
  EXPECT_EQ(o.result("/stages/fit/samples"), "40");
}

TEST_F(RunSteps, B003_F010_AWindowLongerThanTheEpochStepsOnItsLastBatch) {
  const Outcome o = done({"data.samples=6", "trainer.accumulate_grad_batches=4", "trainer.max_epochs=3"});
  EXPECT_THAT(stepping_batches(o), ElementsAre(2, 2, 2));
  ByHand hand;
  for (int i = 0; i < 3; ++i) hand.step(hand.gradient(0, 6), 0.1);
  expect_near(o.weights(), hand.weights());
}

TEST_F(RunSteps, F001_AShortLastWindowIsDividedByItsOwnRows) {
  ByHand hand;  // 10 batches of 2: windows of 8, 8 and 4 rows
  for (auto [first, n] : {std::pair<int64_t, int64_t>{0, 8}, {8, 8}, {16, 4}})
    hand.step(hand.gradient(first, n), 0.1);
  const Outcome o = done({kTenBatches, "trainer.accumulate_grad_batches=4"});
  expect_near(o.weights(), hand.weights());
  expect_near(done({kTenBatches, "data.batch_size=8"}).weights(), o.weights());  // the joined batches
}

TEST_F(RunSteps, RowsOfAShortLastBatchCountAsMuchAsAllOthers) {
  ByHand hand;  // 4 + 4 + 1 rows in one window
  hand.step(hand.gradient(0, 9), 0.1);
  expect_near(done({"data.samples=9", "data.batch_size=4", "trainer.accumulate_grad_batches=3"}).weights(),
              hand.weights());
}

TEST_F(RunSteps, TheMicroBatchPlaceInItsWindowIsShown) {
  const Outcome o = done({"data.samples=6", "trainer.accumulate_grad_batches=2"});
  std::vector<std::string> places;
  for (const Event& e : o.all("fit.batch_start")) places.push_back(e.micro);
  EXPECT_THAT(places, ElementsAre("0/2", "1/2", "0/1"));
}

TEST_F(RunSteps, F009_TheLoggedLossDoesNotDependOnTheWindow) {
  const Outcome one = done({"optimizer.lr=0"}),
                four = done({"optimizer.lr=0", "trainer.accumulate_grad_batches=4"});
  const ByHand hand;
  expect_near(four.series("loss"), {hand.gradient(6, 2).loss});  // of the batch that ended the window
  ASSERT_EQ(one.series("loss").size(), 4u);
  EXPECT_EQ(one.series("loss").back(), four.series("loss").back());
}

TEST_F(RunSteps, F002_WeightsGivenByTheModelAverageTheWindow) {
  // The same weight everywhere: then micro-batches count alike, whatever their rows: (g(0..3) + g(4)) / 2.
  ByHand hand;
  const auto a = hand.gradient(0, 4), b = hand.gradient(4, 1);
  ByHand::Gradient mean;
  for (int j = 0; j < 2; ++j) mean.w[j] = (a.w[j] + b.w[j]) / 2;
  mean.b = (a.b + b.b) / 2;
  hand.step(mean, 0.1);
  for (const char* weight : {"1", "7", "0.25"})
    expect_near(done({"data.samples=5", "data.batch_size=4", "trainer.accumulate_grad_batches=2",
                      std::string("model.weight=") + weight})
                    .weights(),
                hand.weights());
}

TEST_F(RunSteps, ASkippedBatchCountsForNothingInItsWindow) {
  ByHand hand;  // batch 1 of windows {0, 1}, {2, 3} is skipped
  hand.step(hand.gradient(0, 2), 0.1);
  hand.step(hand.gradient(4, 4), 0.1);
  const Outcome o = done({"trainer.accumulate_grad_batches=2", "model.skip_at=1"});
  expect_near(o.weights(), hand.weights());
  EXPECT_EQ(o.result("/stages/fit/global_step"), "2");
}

TEST_F(RunSteps, AWindowOfSkippedBatchesMakesNoStep) {
  ByHand hand;
  for (int64_t first : {0, 4, 6}) hand.step(hand.gradient(first, 2), 0.1);
  const Outcome o = done({"model.skip_at=1", "optimizer.momentum=0"});
  expect_near(o.weights(), hand.weights());
  EXPECT_THAT(stepping_batches(o), ElementsAre(0, 2, 3));
  EXPECT_EQ(o.all("fit.before_step").size(), 3u);
  EXPECT_EQ(o.records.size(), 3u) << "a batch that was skipped has no record";
}

TEST_F(RunSteps, ASkippedWindowSavesNothing) {
  const Outcome o = done({"model.skip_at=2", R"(checkpoint=[{use="torch",every_n_steps=2,save_top_k=-1}])"});
  EXPECT_THAT(o.files(), ElementsAre("epoch=0-step=2.ckpt"));
  const Outcome first =
      done({"model.skip_at=0", R"(checkpoint=[{use="torch",every_n_steps=3,save_top_k=-1}])"});
  EXPECT_THAT(first.files(), ElementsAre("epoch=0-step=3.ckpt"));
}

TEST_F(RunSteps, F165_cxZerograd_AParameterWithoutGradientIsNotTouched) {
  const Outcome o = done({"model.unused=true", "optimizer.momentum=0.9", "optimizer.weight_decay=0.1"});
  EXPECT_EQ(o.tree().at("state_dict/unused.weight"), "tensor2:32[2,]0000803f0000803f");  // still 1, 1
}

TEST_F(RunSteps, B139_ClippingByNormScalesAllGradientsAlike) {
  const ByHand::Gradient g = ByHand().gradient(0, 2);
  const double norm = std::sqrt(g.w[0] * g.w[0] + g.w[1] * g.w[1] + g.b * g.b), limit = norm / 3;
  ByHand hand;
  hand.step(g, 0.1 / 3);
  expect_near(
      done({"trainer.limit_train_batches=1", "trainer.gradient_clip_val=" + std::to_string(limit)}).weights(),
      hand.weights());
  ByHand free;
  free.step(g, 0.1);
  expect_near(done({"trainer.limit_train_batches=1", "trainer.gradient_clip_val=" + std::to_string(norm * 2)})
                  .weights(),
              free.weights());
}

TEST_F(RunSteps, B139_ClippingByValueCutsEachElement) {
  ByHand hand;
  ByHand::Gradient g = hand.gradient(0, 2);
  const double limit = 0.2;
  for (double* v : {&g.w[0], &g.w[1], &g.b}) *v = std::clamp(*v, -limit, limit);
  hand.step(g, 0.1);
  expect_near(done({"trainer.limit_train_batches=1", "trainer.gradient_clip_val=0.2",
                    R"(trainer.gradient_clip_algorithm="value")"})
                  .weights(),
              hand.weights());
}

TEST_F(RunSteps, ClippingSeesTheWholeWindow) {
  ByHand hand;  // the mean of all eight rows, then clipped
  const ByHand::Gradient g = hand.gradient(0, 8);
  const double norm = std::sqrt(g.w[0] * g.w[0] + g.w[1] * g.w[1] + g.b * g.b);
  hand.step(g, 0.1 / 2);
  expect_near(
      done({"trainer.accumulate_grad_batches=4", "trainer.gradient_clip_val=" + std::to_string(norm / 2)})
          .weights(),
      hand.weights());
}

// ---- length

TEST_F(RunSteps, B009_MaxStepsInMidEpochEndsTheBatchLoopOnly) {
  const Outcome o = done({"trainer.max_steps=6", "trainer.max_epochs=-1", "data.val_samples=2"});
  EXPECT_EQ(o.result("/stages/fit/global_step"), "6");
  EXPECT_EQ(o.result("/stages/fit/epochs"), "1") << "the cut epoch does not count";
  EXPECT_EQ(o.all("validate.end").size(), 1u) << "only after epoch 0";
  EXPECT_EQ(o.all("fit.epoch_end").size(), 2u);
  EXPECT_EQ(o.names().back(), "fit.end");
}

TEST_F(RunSteps, B010_OneStepAndNoValidation) {
  const Outcome o = done({"trainer.max_steps=1", "data.val_samples=2"});
  EXPECT_EQ(o.result("/stages/fit/global_step"), "1");
  EXPECT_TRUE(o.all("validate.start").empty());
}

TEST_F(RunSteps, MaxStepsAtAnEpochsEndCompletesIt) {
  const Outcome o = done({"trainer.max_steps=8", "trainer.max_epochs=-1", "data.val_samples=2"});
  EXPECT_EQ(o.result("/stages/fit/epochs"), "2");
  EXPECT_EQ(o.all("validate.end").size(), 2u);
  EXPECT_EQ(o.all("fit.epoch_start").size(), 2u);
}

TEST_F(RunSteps, F005_MaxStepsCountsOptimizerStepsNotBatches) {
  const Outcome o = done(
      {kTenBatches, "trainer.accumulate_grad_batches=4", "trainer.max_steps=4", "trainer.max_epochs=-1"});
  EXPECT_THAT(stepping_batches(o), ElementsAre(3, 7, 9, 3));
}

TEST_F(RunSteps, B011_NoEpochsOrStepsMeansNoLoop) {
  for (const char* none : {"trainer.max_epochs=0", "trainer.max_steps=0"}) {
    const Outcome o = done({none, "data.val_samples=2"});
    EXPECT_THAT(o.names(), testing::IsEmpty());
    EXPECT_EQ(o.result("/stages/fit/global_step"), "(none)");
    EXPECT_EQ(o.result("/outcome"), "done");
  }
}

TEST_F(RunSteps, B013_WithoutALimitThereAre1000EpochsAndAWarning) {
  manifest.replace(manifest.find("max_epochs = 1\n"), 15, "");
  const Outcome o = done({"data.samples=1", "callback=[]", "logger=[]", "checkpoint=[]"});
  EXPECT_EQ(o.result("/stages/fit/epochs"), "1000");
  EXPECT_EQ(o.log_lines("1000 epochs").size(), 1u);
  const Outcome limited =
      done({"data.samples=1", "trainer.max_steps=1500", "callback=[]", "logger=[]", "checkpoint=[]"});
  EXPECT_EQ(limited.result("/stages/fit/epochs"), "1500");
  EXPECT_TRUE(limited.log_lines("1000 epochs").empty());
}

TEST_F(RunSteps, B027_ALimitIsANumberOrAShareRoundedDown) {
  const std::pair<const char*, const char*> cases[] = {
      {"0.1", "6"}, {"7", "7"}, {"1", "1"}, {"1.0", "64"}, {"100", "64"}};
  for (auto [limit, steps] : cases)
    EXPECT_EQ(
        done({"data.samples=64", "data.batch_size=1", std::string("trainer.limit_train_batches=") + limit})
            .result("/stages/fit/global_step"),
        steps)
        << limit;
  EXPECT_EQ(done({kTenBatches, "trainer.limit_train_batches=0.25"}).result("/stages/fit/global_step"), "2");
  EXPECT_EQ(done({kTenBatches, "trainer.limit_train_batches=0.3"}).result("/stages/fit/global_step"), "3")
      << "0.3 * 10 is 3, not 2.999";
}

TEST_F(RunSteps, B029_AShareThatIsNoBatchProposesTheSmallestOne) {
  const Outcome o = run({kTenBatches, "trainer.limit_train_batches=0.05"});
  EXPECT_EQ(o.report.exit_code, 2);
  EXPECT_THAT(o.report.error, testing::AllOf(HasSubstr("limit_train_batches"), HasSubstr("0.1")));
}

TEST_F(RunSteps, B030_AShareAboveOneOrANegativeLimitIsRefused) {
  for (const char* limit : {"1.5", "-1", "-0.5"}) {
    const Outcome o = run({std::string("trainer.limit_train_batches=") + limit});
    EXPECT_EQ(o.report.exit_code, 2) << limit;
    EXPECT_FALSE(started()) << limit;
  }
}

TEST_F(RunSteps, LimitsOfValidationAndTestHoldForThem) {
  const Outcome o = done({"data.val_samples=8", "trainer.limit_val_batches=3", "data.test_samples=8",
                          "trainer.limit_test_batches=0.5", R"(run.stages=["fit","test"])"});
  EXPECT_EQ(o.all("validate.batch_end").size(), 3u);
  EXPECT_EQ(o.all("test.batch_end").size(), 2u);
}

TEST_F(RunSteps, DropLastLeavesOutTheShortBatchOfTrainingOnly) {
  const Outcome o = done({"data.samples=7", "data.val_samples=3", "data.drop_last=true"});
  EXPECT_EQ(o.all("fit.batch_end").size(), 3u);
  EXPECT_EQ(o.all("validate.batch_end").size(), 2u);
  EXPECT_EQ(o.result("/stages/fit/samples"), "6");
}

TEST_F(RunSteps, ASplitWithoutABatchIsAnErrorThatNamesIt) {
  const Outcome o = run({"data.samples=1", "data.drop_last=true"});
  EXPECT_EQ(o.report.exit_code, 1);
  EXPECT_THAT(o.report.error, testing::AllOf(HasSubstr("train"), HasSubstr("1 samples")));
  EXPECT_EQ(o.result("/outcome"), "failed");
}

TEST_F(RunSteps, TheSameSeedGivesTheSameBitsAndAnotherSeedOthers) {
  const Overrides noisy = {"data.shuffle=true", "model.noise=0.5", "optimizer.momentum=0.9",
                           "trainer.max_epochs=3"};
  auto with = [&](const char* seed) {
    Overrides o = noisy;
    o.push_back(seed);
    return below(done(o).tree(), "state_dict/");
  };
  EXPECT_EQ(with("run.seed=1"), with("run.seed=1"));
  EXPECT_NE(with("run.seed=1"), with("run.seed=2"));
}

}  // namespace
}  // namespace run_test
