// What reaches loggers and callbacks, under which name, at which place; loggers that fail or are slow.
#include "run_support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct RunLogging : Run {
  static std::vector<int64_t> steps(const std::vector<Record>& records) {
    std::vector<int64_t> list;
    for (const Record& r : records) list.push_back(r.step);
    return list;
  }
  static std::string logs(const std::string& event, int flags, const std::string& rest) {
    return meddler("event = \"" + event + "\", act = \"log\", flags = " + std::to_string(flags) + ", " +
                   rest);
  }
  static std::string memory(const Outcome& o) { return o.read("memory_c.txt"); }
};

TEST_F(RunLogging, B062_OneRecordPerIntervalOfOptimizerSteps) {
  // batch values 1..8, one window of two batches a step: the value of the window's last batch is logged
  const Outcome o =
      done({"trainer.max_epochs=2", "trainer.log_every_n_steps=2", "trainer.accumulate_grad_batches=2",
            logs("fit.batch_start", 1, R"(values = ["0", "1", "2", "3", "4", "5", "6", "7"])")});
  EXPECT_THAT(steps(o.records), ElementsAre(2, 4));
  EXPECT_THAT(o.series("m"), ElementsAre(3, 7));
  EXPECT_EQ(o.records.at(0).samples, 8);
  EXPECT_EQ(o.records.at(1).epoch, 1);
}

TEST_F(RunLogging, B063_AnIntervalLongerThanTheRunLeavesTheEpochsRecordOnly) {
  const Outcome o =
      done({"trainer.log_every_n_steps=50", logs("fit.batch_start", 2, R"(values = ["1", "2", "3", "4"])")});
  ASSERT_THAT(o.records, SizeIs(1));
  EXPECT_EQ(o.records.at(0).step, 4);
  EXPECT_THAT(o.series("m"), ElementsAre(2.5));
}

TEST_F(RunLogging, ZeroMeansNoRecordsOfSteps) {
  EXPECT_THAT(done({"trainer.log_every_n_steps=0"}).records, IsEmpty());
}

TEST_F(RunLogging, B059_TheEpochsMeanIsWeighted) {
  const Outcome o =
      done({"trainer.log_every_n_steps=0",
            logs("fit.batch_start", 2, R"(values = ["0", "1", "2", "3"], weights = [3, 3, 3, 1])")});
  EXPECT_THAT(o.series("m"), ElementsAre(testing::DoubleEq(1.2)));
}

TEST_F(RunLogging, B059_AValidationWithAShortLastBatchIsTheMeanOverSamples) {
  // 10 samples in batches of 3, 3, 3, 1
  const Outcome o =
      done({"data.val_samples=10", "data.batch_size=3", "optimizer.lr=0", "trainer.log_every_n_steps=0"});
  expect_near(o.series("val_loss"), {ByHand().gradient(0, 10).loss});
}

TEST_F(RunLogging, B061_BothStepAndEpochGiveThreeNames) {
  const Outcome o = done({logs("fit.batch_start", 3, R"(values = ["1", "2", "3", "6"])")});
  EXPECT_THAT(o.series("m_step"), ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(o.series("m_epoch"), ElementsAre(3));
  EXPECT_THAT(o.series("m"), IsEmpty());
  EXPECT_EQ(o.events.back().metrics.at("m"), 3) << "callbacks see the epoch's value under the plain name";
  EXPECT_EQ(o.report.metrics.at("m"), 3);
  EXPECT_EQ(o.report.metrics.at("m_step"), 6);
}

TEST_F(RunLogging, B065_TheValidationsRecordComesBeforeTheEpochsAtTheSamePlace) {
  const Outcome o = done({"data.val_samples=2", "trainer.log_every_n_steps=0", "trainer.max_epochs=2",
                          logs("fit.batch_start", 2, R"(values = ["1"])")});
  ASSERT_THAT(o.records, SizeIs(4));
  EXPECT_EQ(o.records.at(0).stage, "validate");
  EXPECT_EQ(o.records.at(1).stage, "fit");
  EXPECT_THAT(steps(o.records), ElementsAre(4, 4, 8, 8));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(o.records[static_cast<size_t>(i)].epoch, i / 2);
}

TEST_F(RunLogging, AllScalarsOfOneMomentAreInOneRecord) {
  const Outcome o = done({R"(model.log=["a", "b"])"});
  ASSERT_THAT(o.records, SizeIs(4));
  for (const Record& r : o.records) {
    EXPECT_THAT(r.values, SizeIs(3));
    EXPECT_EQ(r.values.at("a"), r.values.at("b"));
    EXPECT_NEAR(r.values.at("a"), r.values.at("loss"), 1e-7);
  }
}

TEST_F(RunLogging, ValidationMetricsOfTheTestStageAreCalledTest) {
  const Outcome o =
      done({R"(run.stages=["fit", "validate", "test"])", "data.val_samples=2", "data.test_samples=4"});
  EXPECT_EQ(o.of_stage("test").size(), 1u);
  EXPECT_THAT(o.of_stage("test").at(0).values,
              testing::UnorderedElementsAre(testing::Key("test_loss"), testing::Key("test_acc")));
  EXPECT_THAT(o.of_stage("validate").back().values,
              testing::UnorderedElementsAre(testing::Key("val_loss"), testing::Key("val_acc")));
  EXPECT_EQ(o.report.metrics.count("test_loss"), 1u);
  EXPECT_NE(o.result("/metrics/test/test_loss"), "(none)");
  EXPECT_EQ(o.result("/metrics/last/test_loss"), "(none)");
  EXPECT_NE(o.result("/metrics/last/val_loss"), "(none)");
}

TEST_F(RunLogging, B035_F178_rpSanity_TheCheckBeforeTrainingLeavesNothing) {
  const Overrides noisy = {"data.val_samples=8", "trainer.max_epochs=2", "model.noise=0.5"};
  auto with = [&](const std::string& steps) {
    Overrides o = noisy;
    o.push_back("trainer.num_sanity_val_steps=" + steps);
    return done(o);
  };
  const Outcome none = with("0"), two = with("2"), all = with("-1");
  const auto sane = [](const Outcome& o) {
    size_t n = 0;
    for (const Event& e : o.all("validate.batch_end")) n += e.sanity;
    return n;
  };
  EXPECT_EQ(sane(none), 0u);
  EXPECT_EQ(sane(two), 2u);
  EXPECT_EQ(sane(all), 4u);
  EXPECT_EQ(two.all("fit.start").at(0).metrics.size(), 0u) << "callbacks know no metric of it";
  for (const Outcome* o : {&two, &all}) {
    EXPECT_EQ(o->records.size(), none.records.size());
    for (size_t i = 0; i < none.records.size(); ++i) EXPECT_EQ(o->records[i].values, none.records[i].values);
    EXPECT_EQ(below(o->tree(), "state_dict/"), below(none.tree(), "state_dict/"));
  }
}

TEST_F(RunLogging, ANonFiniteLossIsLoggedAsSuchAndTrainingGoesOn) {
  const Outcome o = done({"model.nan_at=1"});
  const auto loss = o.series("loss");
  ASSERT_THAT(loss, SizeIs(4));
  EXPECT_TRUE(std::isfinite(loss[0]));
  EXPECT_TRUE(std::isnan(loss[1]));
  EXPECT_EQ(o.result("/metrics/last/loss"), "nan");
}

TEST_F(RunLogging, ALossThatDivergedIsSaidOnce) {
  const Outcome o = done({"model.nan_at=1", "trainer.max_epochs=3"});
  EXPECT_THAT(o.log_lines("the loss is nan at the end of epoch 0"), SizeIs(1));
  EXPECT_THAT(o.log_lines("the loss is nan"), SizeIs(1));
}

TEST_F(RunLogging, OneNameHasOneSetOfOptions) {
  const Outcome o =
      run({logs("fit.batch_start", 1, R"(values = ["1"])"), logs("fit.batch_end", 2, R"(values = ["1"])")});
  EXPECT_EQ(o.report.exit_code, 1);
  EXPECT_THAT(o.report.error, HasSubstr("\"m\""));
}

TEST_F(RunLogging, TheLearningRateOfEveryGroupCanBeRecorded) {
  manifest += "[[optimizer.group]]\nmatch = 'bias'\nname = \"biases\"\nlr = 0.5\n";
  const Outcome o = done({R"(callback+={use="lr_monitor"})"});
  EXPECT_THAT(o.series("lr"), ElementsAre(0.1, 0.1, 0.1, 0.1));
  EXPECT_THAT(o.series("lr/biases"), ElementsAre(0.5, 0.5, 0.5, 0.5));
}

TEST_F(RunLogging, EveryLoggerGetsTheSameRecords) {
  const Outcome o = done({"data.val_samples=2", R"(logger=[{use="jsonl"}, {use="csv"}, {use="memory_c"}])"});
  const std::string text = memory(o);
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), o.records.size());
  const std::string csv = o.read("metrics.csv");
  EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')), o.records.size() + 1);
  char line[100];
  std::snprintf(line, sizeof line, "step=1 epoch=0 loss=%.17g", o.records.at(0).values.at("loss"));
  EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(RunLogging, ALoggerThatFailsThreeTimesIsClosedAndTheRunGoesOn) {
  const Outcome o = done({R"(logger=[{use="failing"}, {use="memory_c"}])", "trainer.max_epochs=3"});
  EXPECT_THAT(o.log_lines("told to fail on the record"), SizeIs(3));
  EXPECT_THAT(o.log_lines("failed three times"), SizeIs(1));
  const std::string text = memory(o);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);
}

TEST_F(RunLogging, ALoggerThatCannotOpenIsLeftOut) {
  const Outcome o = done({R"(logger=[{use="failing", fail_open=true}])"});
  EXPECT_THAT(o.log_lines("told to fail when opened"), SizeIs(1));
  EXPECT_THAT(o.log_lines("on the record"), IsEmpty());
}

TEST_F(RunLogging, OnErrorStopMakesALoggersFailureTheRuns) {
  const Outcome record = run({R"(logger=[{use="failing", on_error="stop"}])"});
  EXPECT_EQ(record.report.exit_code, 1);
  EXPECT_THAT(record.report.error, HasSubstr("told to fail on the record"));
  EXPECT_THAT(record.result("/error/where"), HasSubstr("logger:failing"));
  const Outcome open = run({R"(logger=[{use="failing", fail_open=true, on_error="stop"}])"});
  EXPECT_EQ(open.report.exit_code, 3) << "a permission is the environment's";
  EXPECT_THAT(open.names(), testing::Not(testing::Contains("fit.batch_start")));
}

TEST_F(RunLogging, OnErrorStopHoldsForTheLastRecordToo) {
  const Outcome o = run({R"(logger=[{use="failing", on_error="stop"}])", "trainer.limit_train_batches=1"});
  EXPECT_EQ(o.report.exit_code, 1);
  EXPECT_EQ(o.result("/outcome"), "failed");
}

TEST_F(RunLogging, TrainingDoesNotWaitForASlowLogger) {
  // "patient" takes no record before it sees that training has ended: would training wait for it, both would for ever.
  const Outcome o = done({"logger=[{use=\"patient\", text=\"fit.end\", file=\"" + (folder / "events.txt") +
                              "\"}, {use=\"memory_c\"}]",
                          "checkpoint=[]", "trainer.max_epochs=3"});
  EXPECT_THAT(o.log_lines("logger:patient"), IsEmpty());
  const std::string text = memory(o);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);
}

}  // namespace
}  // namespace run_test
