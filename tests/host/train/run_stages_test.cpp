// Stages other than fit, where their weights come from, and what must not change a run: loader threads, strategies.
#include <algorithm>
#include <filesystem>

#include "run_support.hpp"

namespace run_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct RunStages : Run {
  // batches as the model saw them: "training_step 3 1"
  static std::vector<std::string> batches(const Outcome& o, const std::string& step) {
    std::vector<std::string> list;
    for (const std::string& line : o.log_lines(step)) list.push_back(line.substr(line.find(step)));
    return list;
  }
  std::string weights_file(std::vector<float> w, std::vector<float> b) {
    write_state_dict(folder / "w.ckpt", {{"linear.weight", std::move(w)}, {"linear.bias", std::move(b)}});
    return "resume.from=" + (folder / "w.ckpt");
  }
  static Tree weights_bits(const Outcome& o) { return below(o.tree(), "state_dict/"); }
};

TEST_F(RunStages, EvaluationUsesTheWeightsOfTheNamedFile) {
  // w x + b with w = 0: the output is b; labels 0 1 0 1 -> mean of (b - label)^2
  for (const char* stage : {"validate", "test"}) {
    const Outcome o = done({std::string("run.stages=[\"") + stage + "\"]", "data.val_samples=4",
                            "data.test_samples=4", weights_file({0, 0}, {2})});
    const std::string name = *stage == 'v' ? "val_loss" : "test_loss";
    EXPECT_NEAR(o.report.metrics.at(name), (4 + 1 + 4 + 1) / 4.0, 1e-6);
    ASSERT_THAT(o.of_stage(stage), SizeIs(1));
    EXPECT_THAT(o.all("fit.start"), IsEmpty());
    EXPECT_EQ(o.result(std::string("/stages/") + stage + "/samples"), "4");
  }
}

TEST_F(RunStages, EvaluationOfAFitsCheckpointHasItsOwnFolder) {
  const Outcome fit = done({"optimizer.lr=0", "data.val_samples=4"});
  const Outcome o = done({R"(run.stages=["validate"])", "data.val_samples=4",
                          "resume.from=" + fit.report.run_folder + "/checkpoints/last.ckpt"});
  EXPECT_NE(o.report.run_folder, fit.report.run_folder);
  EXPECT_EQ(o.report.metrics.at("val_loss"), fit.report.metrics.at("val_loss"));
}

TEST_F(RunStages, AFileThatDoesNotFitIsRefusedForEvaluationToo) {
  const Outcome o = run({R"(run.stages=["test"])", "data.test_samples=4", weights_file({0, 0, 0}, {2})});
  EXPECT_EQ(o.report.exit_code, 1);
  EXPECT_THAT(o.report.error, HasSubstr("mismatched  linear.weight"));
}

TEST_F(RunStages, WithoutAFileTheInitialWeightsAreEvaluated) {
  const Outcome o = done({R"(run.stages=["test"])", "data.test_samples=6"});
  EXPECT_NEAR(o.report.metrics.at("test_loss"), ByHand().gradient(0, 6).loss, 1e-6);
}

TEST_F(RunStages, EvaluationNeedsNoOptimizerAndNoCheckpoint) {
  manifest.erase(manifest.find("[optimizer]"), manifest.find("[[logger]]") - manifest.find("[optimizer]"));
  EXPECT_EQ(done({R"(run.stages=["test"])", "data.test_samples=2", "checkpoint=[]"}).all("test.end").size(),
            1u);
  const Outcome fit = run();
  EXPECT_EQ(fit.report.exit_code, 2);
  EXPECT_THAT(fit.report.error, HasSubstr("[optimizer]"));
}

TEST_F(RunStages, AfterFitTheTestUsesTheBestCheckpoint) {
  const Overrides base = {"trainer.max_epochs=3", "data.val_samples=2", "data.test_samples=6"};
  Overrides fit = base;
  fit.insert(
      fit.end(),
      {R"(run.stages=["fit", "test"])",
       meddler(R"(event = "validate.start", act = "log", metric = "val_m", values = ["3", "1", "2"])"),
       R"(checkpoint=[{use="torch",monitor="val_m",mode="min",filename="best"},{use="torch",filename="newest"}])"});
  const Outcome o = done(fit);
  Overrides test = base;
  test.push_back(R"(run.stages=["test"])");
  const auto loss_of = [&](const std::string& file) {
    test.push_back("resume.from=" + o.report.run_folder + "/checkpoints/" + file);
    const double loss = done(test).report.metrics.at("test_loss");
    test.pop_back();
    return loss;
  };
  EXPECT_EQ(o.report.metrics.at("test_loss"), loss_of("best.ckpt"));
  EXPECT_NE(o.report.metrics.at("test_loss"), loss_of("newest.ckpt"));
}

TEST_F(RunStages, AfterFitWithoutFilesTheTestUsesTheLastWeights) {
  ByHand hand;
  for (int64_t first : {0, 2, 4, 6}) hand.step(hand.gradient(first, 2), 0.1);
  const Outcome o = done({R"(run.stages=["fit", "test"])", "data.test_samples=6", "checkpoint=[]"});
  EXPECT_NEAR(o.report.metrics.at("test_loss"), hand.gradient(0, 6).loss, 1e-6);
}

TEST_F(RunStages, PredictVisitsEverySampleInOrderAndShowsTheOutputs) {
  const Outcome o =
      done({R"(run.stages=["predict"])", "data.predict_samples=5", "model.trace=true", "data.shuffle=true"});
  EXPECT_THAT(batches(o, "predict_step"),
              ElementsAre("predict_step 0 1", "predict_step 2 3", "predict_step 4"));
  ASSERT_THAT(o.all("predict.batch_end"), SizeIs(3));
  for (const Event& e : o.all("predict.batch_end")) EXPECT_EQ(e.metrics.at("predictions"), 1);
  EXPECT_EQ(o.result("/stages/predict/samples"), "5");
  EXPECT_THAT(o.records, IsEmpty());
}

// ---- data

TEST_F(RunStages, ASplitCutsValidationFromTrainingWithoutOverlap) {
  const Outcome o =
      done({"data.samples=10", "data.split.val=\"30%\"", "model.trace=true", "data.batch_size=1"});
  std::vector<std::string> seen;
  for (const std::string& b : batches(o, "training_step")) seen.push_back(b.substr(b.rfind(' ')));
  EXPECT_THAT(seen, SizeIs(7));
  for (const std::string& b : batches(o, "validation_step")) seen.push_back(b.substr(b.rfind(' ')));
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre(" 0", " 1", " 2", " 3", " 4", " 5", " 6", " 7", " 8", " 9"));
}

TEST_F(RunStages, TheSplitDoesNotDependOnTheSeed) {
  const auto validated = [&](const char* seed) {
    return batches(done({"data.samples=20", "data.split.val=0.25", "model.trace=true", seed}),
                   "validation_step");
  };
  EXPECT_EQ(validated("run.seed=1"), validated("run.seed=2"));
}

TEST_F(RunStages, ASplitOfDataThatHasValidationIsRefused) {
  const Outcome o = run({"data.val_samples=4", "data.split.val=0.5"});
  EXPECT_EQ(o.report.exit_code, 2);
  EXPECT_THAT(o.report.error, HasSubstr("data.split"));
}

TEST_F(RunStages, F061_ddEpochseed_ShufflingVisitsEverySampleOnceInAnotherOrderEachEpoch) {
  const Outcome o = done({"data.samples=16", "data.batch_size=16", "data.shuffle=true",
                          "trainer.max_epochs=2", "model.trace=true"});
  const auto orders = batches(o, "training_step");
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_NE(orders[0], orders[1]);
  for (const std::string& order : orders)
    for (int i = 0; i < 16; ++i) EXPECT_THAT(order + " ", HasSubstr(" " + std::to_string(i) + " "));
}

TEST_F(RunStages, LoaderThreadsChangeNothing) {
  const auto with = [&](const std::string& threads) {
    return done({"data.samples=23", "data.val_samples=7", "data.shuffle=true", "model.noise=0.5",
                 "optimizer.momentum=0.9", "trainer.max_epochs=3", "model.trace=true",
                 "data.threads=" + threads});
  };
  const Outcome none = with("0");
  for (const char* threads : {"1", "4"}) {
    const Outcome o = with(threads);
    EXPECT_EQ(weights_bits(o), weights_bits(none)) << threads;
    EXPECT_EQ(batches(o, "_step"), batches(none, "_step")) << threads;
    ASSERT_EQ(o.records.size(), none.records.size());
    for (size_t i = 0; i < o.records.size(); ++i) EXPECT_EQ(o.records[i].values, none.records[i].values);
  }
}

TEST_F(RunStages, MoreLoaderThreadsThanBatchesWork) {
  EXPECT_EQ(done({"data.samples=2", "data.threads=16"}).all("fit.batch_end").size(), 1u);
}

// ---- other components

TEST_F(RunStages, StrategiesOfOneProcessGiveTheSameBits) {
  const auto with = [&](const std::string& name) {
    return weights_bits(
        done({"strategy.use=" + name, "data.samples=22", "data.val_samples=4", "model.units=true",
              "model.unused=true", "trainer.accumulate_grad_batches=3", "trainer.gradient_clip_val=0.5",
              "optimizer.momentum=0.9", "trainer.max_epochs=2"}));
  };
  const Tree single = with("single");
  EXPECT_EQ(single.size(), 4u);
  for (const char* name : {"single_c", "c_ddp_like", "trace", "acme.periodic"})
    EXPECT_EQ(with(name), single) << name;
}

TEST_F(RunStages, AStrategySynchronisesOnceAWindow) {
  const Outcome o = done({"strategy.use=trace", "data.samples=10", "trainer.accumulate_grad_batches=2"});
  EXPECT_THAT(o.log_lines("begin_micro"), SizeIs(5));
  EXPECT_THAT(o.log_lines("sync_grads"), SizeIs(3));
  EXPECT_THAT(o.log_lines("after_step"), SizeIs(3));
  EXPECT_THAT(o.log_lines("teardown"), SizeIs(1));
}

TEST_F(RunStages, AStrategyIsTakenDownAlsoAfterAFailure) {
  EXPECT_THAT(run({"strategy.use=trace", "model.throw_at=1"}).log_lines("teardown"), SizeIs(1));
}

TEST_F(RunStages, AProfilerChangesNoWeights) {
  EXPECT_EQ(weights_bits(done({"profiler.use=simple", "data.val_samples=4"})),
            weights_bits(done({"data.val_samples=4"})));
}

TEST_F(RunStages, AProfilerTimesTheHooksThatAreHeard) {
  const auto calls = [&](const std::vector<std::string>& more) {
    const std::string table = done(more).read("profile.txt");
    const size_t at = table.find("\ncallback");
    return at == table.npos ? 0 : std::stol(table.substr(at + 9));
  };
  const long without = calls({"profiler.use=simple", "data.samples=8"});
  const long with = calls({"profiler.use=simple", "data.samples=8", meddler(R"(event = "fit.batch_end")")});
  EXPECT_GT(without, 0);             // the recorder's
  EXPECT_EQ(with - without, 8 / 2);  // batches of two
}

TEST_F(RunStages, TheResolvedManifestRunsAgainToTheSameBits) {
  const Outcome first = done({"optimizer.momentum=0.9", "data.shuffle=true", "run.seed=7"});
  manifest = first.read("manifest.resolved.toml");
  EXPECT_EQ(weights_bits(done()), weights_bits(first));
}

}  // namespace
}  // namespace run_test
