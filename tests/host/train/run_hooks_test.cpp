// The order of events, modes, stopping, validation's cadence, schedules, parameter groups.
#include "run_support.hpp"

#include <cmath>

namespace run_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct RunHooks : Run {
  static std::vector<double> rates(const Outcome& o) {  // the rate that each batch is trained with
    std::vector<double> list;
    for (const Event& e : o.all("fit.batch_start")) list.push_back(e.lr);
    return list;
  }
  void schedule(const std::string& keys) { manifest += "[scheduler]\n" + keys; }
  std::string group(const std::string& keys) const { return "[[optimizer.group]]\n" + keys + "\n"; }
};

TEST_F(RunHooks, B050_TheOrderOfAWholeRun) {
  const Outcome o =
      done({"data.samples=4", "data.val_samples=2", "data.test_samples=2", "data.predict_samples=2",
            "trainer.num_sanity_val_steps=2", R"(run.stages=["fit", "validate", "test", "predict"])"});
  const std::vector<std::string> validation = {"validate.start", "validate.batch_start", "validate.batch_end",
                                               "validate.end"};
  std::vector<std::string> expected = validation;  // the check
  const auto add = [&](const std::vector<std::string>& more) {
    expected.insert(expected.end(), more.begin(), more.end());
  };
  add({"fit.start", "fit.epoch_start"});
  for (int batch = 0; batch < 2; ++batch) add({"fit.batch_start", "fit.before_step", "fit.batch_end"});
  add(validation);
  add({"fit.epoch_end", "fit.checkpoint", "fit.end"});
  add(validation);
  add({"test.start", "test.batch_start", "test.batch_end", "test.end"});
  add({"predict.start", "predict.batch_start", "predict.batch_end", "predict.end"});
  EXPECT_EQ(o.names(), expected);
}

TEST_F(RunHooks, TheModelHearsAnEventBeforeCallbacksAndSwitchesModesAroundEvaluation) {
  const Outcome o = done({"data.samples=2", "data.val_samples=2", "model.trace=true"});
  std::vector<std::string> lines;
  for (const std::string& line : o.log_lines("mock_linear")) {
    for (const char* what :
         {"mode train", "mode eval", "training_step 0 1", "validation_step 0 1", "event fit.epoch_end"})
      if (line.find(what) != line.npos) lines.push_back(what);
  }
  EXPECT_THAT(lines, ElementsAre("mode train", "training_step 0 1", "mode eval", "validation_step 0 1",
                                 "mode train", "event fit.epoch_end"));
}

TEST_F(RunHooks, ModesComeBackAlsoAfterAnEvaluationThatFails) {
  const Outcome o = run(
      {"data.val_samples=2", "model.trace=true", meddler(R"(event = "validate.batch_end", act = "throw")")});
  EXPECT_EQ(o.report.exit_code, 1);
  EXPECT_THAT(o.log_lines("mode ").back(), HasSubstr("mode train"));
}

TEST_F(RunHooks, B055_CallbacksAreCalledInTheOrderOfTheManifest) {
  // what the second callback logs is known to the first at the next event only
  const Outcome o =
      done({meddler(R"(event = "fit.batch_start", act = "log", metric = "late", values = ["1"])")});
  EXPECT_EQ(o.all("fit.batch_start").at(0).metrics.count("late"), 0u);
  EXPECT_EQ(o.all("fit.batch_end").at(0).metrics.count("late"), 1u);
}

TEST_F(RunHooks, B045_ValidationEveryNEpochs) {
  for (auto [epochs, runs] : {std::pair<int, size_t>{1, 0}, {4, 2}, {5, 2}}) {
    const Outcome o = done({"data.val_samples=2", "trainer.check_val_every_n_epoch=2",
                            "trainer.max_epochs=" + std::to_string(epochs)});
    EXPECT_EQ(o.all("validate.end").size(), runs) << epochs;
  }
}

TEST_F(RunHooks, ValidationLeavesTheRandomStreamAlone) {
  const Overrides noisy = {"model.noise=0.5", "trainer.max_epochs=3", "data.val_samples=4"};
  Overrides quiet = noisy, drawing = noisy, never = noisy;
  drawing.push_back(meddler(R"(event = "validate.batch_end", act = "draw")"));
  never.push_back("trainer.limit_val_batches=0");
  const Tree a = below(done(quiet).tree(), "state_dict/");
  EXPECT_EQ(a, below(done(drawing).tree(), "state_dict/"));
  EXPECT_EQ(a, below(done(never).tree(), "state_dict/"));
  Overrides training = noisy;
  training.push_back(meddler(R"(event = "fit.batch_end", act = "draw")"));
  EXPECT_NE(a, below(done(training).tree(), "state_dict/")) << "the callback does draw";
}

TEST_F(RunHooks, CountersAreThoseOfTrainingAfterAValidation) {
  const Outcome o = done({"data.val_samples=6", "trainer.max_epochs=2"});
  EXPECT_EQ(o.all("validate.batch_end").at(1).batch, 2);
  EXPECT_EQ(o.all("fit.epoch_end").at(0).batch, 4);
  EXPECT_EQ(o.all("fit.epoch_end").at(0).samples, 8);
  EXPECT_EQ(o.all("fit.batch_start").at(4).batch, 0);
  EXPECT_EQ(o.all("fit.batch_start").at(4).epoch, 1);
}

// ---- stopping

TEST_F(RunHooks, B014_AStopIsHonouredAtTheNextBatchOnceTheMinimaAreMet) {
  const Outcome now = done({"trainer.max_epochs=-1", meddler(R"(act = "stop", at = 5)")});
  EXPECT_EQ(now.result("/stages/fit/global_step"), "6");
  EXPECT_EQ(now.result("/stop_reason"), "the meddler says so");
  const Outcome later =
      done({"trainer.max_epochs=-1", "trainer.min_steps=10", meddler(R"(act = "stop", at = 5)")});
  EXPECT_EQ(later.result("/stages/fit/global_step"), "10");
}

TEST_F(RunHooks, B047_AStopInMidEpochIsFollowedByOneValidation) {
  const Outcome o = done({"data.val_samples=2", "trainer.max_epochs=-1", "trainer.check_val_every_n_epoch=10",
                          meddler(R"(act = "stop", at = 5)")});
  EXPECT_EQ(o.all("validate.end").size(), 1u);
  EXPECT_EQ(o.names().back(), "fit.end");
}

TEST_F(RunHooks, AStopWaitsForTheWindowsEnd) {
  const Outcome o = done({"trainer.accumulate_grad_batches=2", meddler(R"(act = "stop", at = 0)")});
  EXPECT_EQ(o.result("/stages/fit/global_step"), "1");
  EXPECT_EQ(o.all("fit.batch_end").size(), 2u);
}

TEST_F(RunHooks, B023_MinEpochsHoldAgainstAStop) {
  const Outcome o =
      done({"data.val_samples=2", "optimizer.lr=0", "trainer.max_epochs=50", "trainer.min_epochs=5",
            R"(callback+={use="early_stopping", monitor="val_loss", patience=1})"});
  EXPECT_EQ(o.result("/stages/fit/epochs"), "5");
}

TEST_F(RunHooks, B113_EarlyStoppingEndsTheRunWithItsReason) {
  const Outcome o = done(
      {"data.val_samples=2", "trainer.max_epochs=50",
       meddler(
           R"(event = "validate.start", act = "log", metric = "val_m", values = ["6", "5", "4", "4", "3", "3"])"),
       R"(callback+={use="early_stopping", monitor="val_m", mode="min", patience=1})"});
  EXPECT_EQ(o.result("/stages/fit/epochs"), "4") << "epoch 3 does not improve";
  EXPECT_THAT(o.result("/stop_reason"), HasSubstr("early_stopping: val_m did not improve"));
  EXPECT_EQ(o.report.exit_code, 0);
}

TEST_F(RunHooks, StagesAfterAStoppedFitStillRun) {
  EXPECT_EQ(done({"data.test_samples=2", R"(run.stages=["fit", "test"])", meddler(R"(act = "stop", at = 1)")})
                .all("test.end")
                .size(),
            1u);
}

// ---- schedules: base rate 1, halved at every tick

TEST_F(RunHooks, B077_TicksOfStepsCountOptimizerSteps) {
  schedule("use = \"step\"\nstep_size = 1\ngamma = 0.5\ninterval = \"step\"\n");
  const Outcome o = done(
      {"optimizer.lr=1", "data.samples=20", "trainer.accumulate_grad_batches=3", "trainer.max_epochs=2"});
  std::vector<double> expected;
  for (int step = 0; step < 8; ++step)
    for (int i = 0; i < (step % 4 == 3 ? 1 : 3); ++i) expected.push_back(std::pow(0.5, step));
  EXPECT_EQ(rates(o), expected);
  EXPECT_EQ(o.events.back().lr, 1.0 / 256);
}

TEST_F(RunHooks, B078_B079_AFrequencyGoesOnOverEpochs) {
  schedule("use = \"step\"\nstep_size = 1\ngamma = 0.5\ninterval = \"step\"\n");
  const Outcome three =
      done({"optimizer.lr=1", "data.samples=20", "trainer.max_epochs=2", "scheduler.frequency=3"});
  std::vector<double> expected;
  for (int step = 0; step < 20; ++step) expected.push_back(std::pow(0.5, step / 3));
  EXPECT_EQ(rates(three), expected);
  EXPECT_EQ(three.events.back().lr, 1.0 / 64);
  const Outcome twelve =
      done({"optimizer.lr=1", "data.samples=20", "trainer.max_epochs=2", "scheduler.frequency=12"});
  EXPECT_EQ(rates(twelve).at(11), 1);
  EXPECT_EQ(rates(twelve).at(12), 0.5) << "longer than an epoch works";
}

TEST_F(RunHooks, TicksOfEpochsChangeAtTheirEnds) {
  schedule("use = \"step\"\nstep_size = 1\ngamma = 0.5\n");
  EXPECT_THAT(rates(done({"optimizer.lr=1", "data.samples=4", "trainer.max_epochs=3"})),
              ElementsAre(1, 1, 0.5, 0.5, 0.25, 0.25));
  EXPECT_THAT(
      rates(done({"optimizer.lr=1", "data.samples=2", "trainer.max_epochs=5", "scheduler.frequency=2"})),
      ElementsAre(1, 1, 0.5, 0.5, 0.25));
}

TEST_F(RunHooks, F018_TenTimesLessFromTheFourthEpochOn) {
  schedule("use = \"step\"\nstep_size = 4\ngamma = 0.1\n");
  const auto r = rates(done({"optimizer.lr=100", "data.samples=2", "trainer.max_epochs=6"}));
  expect_near(r, {100, 100, 100, 100, 10, 10}, 1e-12);
}

TEST_F(RunHooks, WarmUpRisesInEqualStepsAndThenTheScheduleStarts) {
  schedule("use = \"cosine\"\ninterval = \"step\"\nwarmup = 3\n");
  const auto r = rates(done({"optimizer.lr=1", "data.samples=14"}));  // 7 steps, 4 of them cosine
  expect_near(r, {0.25, 0.5, 0.75, 1, (1 + std::cos(M_PI / 4)) / 2, 0.5, (1 + std::cos(3 * M_PI / 4)) / 2},
              1e-8);
}

TEST_F(RunHooks, WarmUpAsAShareIsOfAllTicks) {
  schedule("use = \"constant\"\ninterval = \"step\"\nwarmup = \"50%\"\n");
  expect_near(rates(done({"optimizer.lr=1", "trainer.max_epochs=2"})), {0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1},
              1e-8);
  const Outcome endless = run({"trainer.max_epochs=-1"});
  EXPECT_EQ(endless.report.exit_code, 1);
  EXPECT_THAT(endless.report.error, HasSubstr("trainer.max_steps"));
}

// ---- parameter groups

TEST_F(RunHooks, TheFirstGroupThatMatchesAParameterHasIt) {
  manifest += group("match = 'bias'\nlr = 0.0") + group("match = 'linear'\nlr = 0.2");
  ByHand hand;
  const auto g = hand.gradient(0, 2);
  for (int j = 0; j < 2; ++j) hand.w[j] -= 0.2 * g.w[j];
  expect_near(done({"trainer.limit_train_batches=1"}).weights(), hand.weights());
}

TEST_F(RunHooks, AGroupKeepsWhatItDoesNotSet) {
  manifest += group("match = 'bias'\nweight_decay = 0.5");
  ByHand hand;
  hand.step(hand.gradient(0, 2), 0.1);  // the bias is 0: decay adds nothing yet
  ByHand::Gradient g = hand.gradient(2, 2);
  g.b += 0.5 * hand.b;
  hand.step(g, 0.1);
  expect_near(done({"trainer.limit_train_batches=2"}).weights(), hand.weights());
}

TEST_F(RunHooks, AGroupWithoutParametersIsRefusedAndListsThem) {
  manifest += group("match = 'linear'\nlr = 0.2") + group("match = 'bias'\nlr = 0.3");
  const Outcome o = run();
  EXPECT_EQ(o.report.exit_code, 2);
  EXPECT_THAT(o.report.error,
              testing::AllOf(HasSubstr("optimizer.group[1].match"), HasSubstr("linear.weight, linear.bias")));
}

TEST_F(RunHooks, ASchedulesFactorHoldsForEveryGroup) {
  schedule("use = \"step\"\nstep_size = 1\ngamma = 0.5\ninterval = \"step\"\n");
  manifest += group("match = 'bias'\nname = \"b\"\nlr = 0.8");
  const Outcome o = done({"optimizer.lr=0.4", R"(callback+={use="lr_monitor"})"});
  EXPECT_THAT(o.series("lr"), ElementsAre(0.4, 0.2, 0.1, 0.05));
  EXPECT_THAT(o.series("lr/b"), ElementsAre(0.8, 0.4, 0.2, 0.1));
}

}  // namespace
}  // namespace run_test
