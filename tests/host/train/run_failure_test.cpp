// How runs end that do not end well: exit code, result.json, the message, what is left in place.
#include "run_support.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

namespace run_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct RunFailure : Run {
  static void expect_result(const Outcome& o, const char* outcome, int code) {
    EXPECT_EQ(o.report.exit_code, code) << o.report.error;
    EXPECT_EQ(o.report.outcome, outcome);
    EXPECT_EQ(o.result("/schema"), "1");
    EXPECT_EQ(o.result("/outcome"), outcome);
    EXPECT_EQ(o.result("/exit_code"), std::to_string(code));
    EXPECT_EQ(o.result("/error/message"), code == 0 ? "(none)" : o.report.error);
  }
};

TEST_F(RunFailure, AGoodRunsResultHoldsEverything) {
  const Outcome o = done({"trainer.max_epochs=2", "data.test_samples=4", R"(run.stages=["fit", "test"])"});
  expect_result(o, "done", 0);
  EXPECT_EQ(o.result("/error"), "(none)");
  EXPECT_EQ(o.result("/stages/fit/epochs"), "2");
  EXPECT_EQ(o.result("/stages/fit/samples"), "16");
  EXPECT_EQ(o.result("/stages/test/samples"), "4");
  EXPECT_GT(std::stod(o.result("/stages/fit/samples_per_s")), 0);
  for (const char* v : {"/versions/lhost", "/versions/abi", "/versions/plugins/model:mock_linear",
                        "/versions/plugins/strategy:single"})
    EXPECT_NE(o.result(v), "(none)") << v;
  EXPECT_THAT(o.files(""), testing::IsSupersetOf({"checkpoints", "checkpoints.json", "host.log",
                                                  "manifest.resolved.toml", "metrics.jsonl", "result.json"}));
}

TEST_F(RunFailure, AModelThatThrowsEndsTheRunWithPlaceAndText) {
  const Outcome o = run({"model.throw_at=5", "trainer.max_epochs=3"});
  expect_result(o, "failed", 1);
  EXPECT_THAT(o.report.error, HasSubstr("told to throw in training step 5"));
  EXPECT_THAT(o.result("/error/where"),
              AllOf(HasSubstr("model:mock_linear (training_step)"), HasSubstr("epoch 1, batch 1, step 5")));
  EXPECT_EQ(o.result("/stages/fit/global_step"), "5");
  ASSERT_THAT(o.all("fit.exception"), SizeIs(1));
  EXPECT_EQ(o.all("fit.exception").at(0).failure, o.report.error);
  EXPECT_THAT(o.records, SizeIs(5)) << "loggers are finished";
}

TEST_F(RunFailure, ASampleThatCannotBeReadIsNamed) {
  for (const char* threads : {"0", "1", "4"}) {
    const Outcome o = run({"data.fail_at=5", std::string("data.threads=") + threads});
    expect_result(o, "failed", 1);
    EXPECT_THAT(o.report.error, HasSubstr("sample 5"));
    EXPECT_EQ(o.result("/error/code"), "DATA_LOSS");
    EXPECT_EQ(o.result("/stages/fit/global_step"), "2") << "batches before it were trained";
  }
}

TEST_F(RunFailure, DataThatCannotDescribeItselfFailsBeforeTraining) {
  const Outcome o = run({"data.describe_fails=true"});
  expect_result(o, "failed", 1);
  EXPECT_THAT(o.report.error, HasSubstr("told to fail in describe"));
  EXPECT_THAT(o.all("fit.start"), IsEmpty());
}

TEST_F(RunFailure, ALossThatIsNoScalarIsRefused) {
  const Outcome o = run({"model.bad_shape_loss=true"});
  expect_result(o, "failed", 1);
  EXPECT_THAT(o.report.error, HasSubstr("2 elements"));
}

TEST_F(RunFailure, ACallbacksFailureEndsTheRunUnlessItOnlyWarns) {
  const Outcome stop = run({meddler(R"(event = "fit.batch_end", act = "throw", at = 1)")});
  expect_result(stop, "failed", 1);
  EXPECT_THAT(stop.result("/error/where"), HasSubstr("callback:meddler"));
  const Outcome warn = done({meddler(R"(event = "fit.batch_end", act = "throw", on_error = "warn")")});
  EXPECT_THAT(warn.log_lines("not called any more"), SizeIs(1));
  EXPECT_EQ(warn.result("/stages/fit/global_step"), "4");
}

TEST_F(RunFailure, AFailureWhileFailingDoesNotHideTheFirst) {
  const Outcome o = run({"model.throw_at=1", meddler(R"(event = "fit.exception", act = "throw")")});
  expect_result(o, "failed", 1);
  EXPECT_THAT(o.report.error, HasSubstr("told to throw in training step 1"));
}

TEST_F(RunFailure, AnExceptionThatLeavesAPluginIsThePluginsFault) {
  const Outcome o = run({meddler(R"(event = "fit.batch_end", act = "escape", at = 1)")});
  expect_result(o, "failed", 4);
  EXPECT_THAT(o.report.error, AllOf(HasSubstr("told to escape"), HasSubstr("fault of the plugin")));
  EXPECT_THAT(o.read("result.json"), HasSubstr("callback:meddler"));
}

TEST_F(RunFailure, AFailureInEvaluationSavesNoTrainingState) {
  // the weights are those of the best checkpoint then
  const Outcome o = run({"data.val_samples=2", "data.test_samples=2", "trainer.max_epochs=3",
                         R"(run.stages=["fit", "test"])",
                         R"(checkpoint=[{use="torch",monitor="val_loss",save_on_exception=true}])",
                         meddler(R"(event = "test.batch_end", act = "throw")")});
  expect_result(o, "failed", 1);
  EXPECT_THAT(o.files(), testing::Not(testing::Contains("exception.ckpt")));
}

// ---- signals

TEST_F(RunFailure, B134_B135_SignalsSaveAndExitWithTheirCode) {
  for (auto [act, code] : {std::pair<const char*, int>{"sigint", 130}, {"sigterm", 143}, {"sighup", 129}}) {
    const Outcome o = run({"trainer.max_epochs=100",
                           meddler("event = \"fit.batch_end\", at = 5, act = \"" + std::string(act) + "\"")});
    expect_result(o, "interrupted", code);
    EXPECT_EQ(o.result("/error/code"), "CANCELLED");
    EXPECT_EQ(o.tree().at("lhost/counters/global_step"), "6");
    EXPECT_EQ(o.result("/checkpoints/last"), o.report.run_folder + "/checkpoints/last.ckpt");
    EXPECT_EQ(std::count_if(o.events.begin(), o.events.end(),
                            [](const Event& e) { return e.name == "fit.checkpoint"; }),
              2)
        << "epoch 0's and the signal's";
  }
}

TEST_F(RunFailure, AHangUpThatIsIgnoredStaysIgnored) {  // nohup
  std::signal(SIGHUP, SIG_IGN);
  const Outcome o = run({meddler(R"(event = "fit.batch_end", at = 1, act = "sighup")")});
  std::signal(SIGHUP, SIG_DFL);
  expect_result(o, "done", 0);
}

TEST_F(RunFailure, MoreSamplesThanMemoryIsTheEnvironmentsFault) {
  const Outcome o = run({"data.samples=9223372036854775807"});
  EXPECT_EQ(o.report.exit_code, 3);
  EXPECT_THAT(o.report.error, HasSubstr("out of memory"));
}

TEST_F(RunFailure, AMonitorThatNoValidationWillLogIsRefusedBeforeTraining) {
  for (const char* none : {"data.val_samples=0", "trainer.limit_val_batches=0"}) {
    const Outcome o = run({"data.val_samples=2", none, R"(checkpoint=[{use="torch",monitor="val_loss"}])"});
    EXPECT_EQ(o.report.exit_code, 2) << none;
    EXPECT_THAT(o.report.error, AllOf(HasSubstr("checkpoint[0].monitor"), HasSubstr("no validation data")));
    EXPECT_TRUE(o.all("fit.start").empty());
  }
}

TEST_F(RunFailure, SaveOnSignalCanBeSwitchedOff) {
  const Outcome o =
      run({R"(checkpoint=[{use="torch",save_on_signal=false}])", meddler(R"(act = "sigint", at = 1)")});
  expect_result(o, "interrupted", 130);
  EXPECT_THAT(o.files(), IsEmpty());
}

TEST_F(RunFailure, ASignalFromOutsideEndsAnEndlessRun) {
  std::thread sender([this] {
    while (!std::filesystem::exists(folder / "events.txt"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(getpid(), SIGTERM);
  });
  const Outcome o = run({"trainer.max_epochs=-1", "checkpoint=[{use=\"torch\",save_top_k=0}]"});
  sender.join();
  expect_result(o, "interrupted", 143);
  EXPECT_THAT(o.files(), ElementsAre("last.ckpt"));
}

TEST_F(RunFailure, ASignalInAnEvaluationEndsItAndSavesNoOtherWeights) {
  const Overrides test = {"data.val_samples=2",
                          "data.test_samples=20",
                          "trainer.max_epochs=3",
                          R"(run.stages=["fit", "test"])",
                          R"(checkpoint=[{use="torch",monitor="val_loss",save_last=true}])",
                          meddler(R"(event = "test.batch_end", act = "sigint", at = 2)")};
  const Outcome o = run(test);
  expect_result(o, "interrupted", 130);
  EXPECT_THAT(o.result("/error/where"), HasSubstr("test, batch 3"));
  EXPECT_EQ(o.all("test.batch_end").size(), 3u);
  EXPECT_EQ(o.tree().at("lhost/counters/epoch"), "3") << "last.ckpt is still the one that fit wrote";
  EXPECT_THAT(o.all("fit.checkpoint"), SizeIs(testing::Le(6)));
}

TEST_F(RunFailure, F191_sgEverywhere_ASignalDuringTheCheckBeforeTrainingLeavesNoCheckpoint) {
  // the recorder writes its first line in the check: by then the signal can be seen
  const Outcome o =
      run({"data.val_samples=8", "trainer.num_sanity_val_steps=-1", "checkpoint=[{use=\"torch\"}]",
           R"(callback+={use="early_stopping", monitor="val_loss"})",
           meddler(R"(event = "fit.start", act = "sigint")")});
  expect_result(o, "interrupted", 130);
  EXPECT_EQ(o.result("/stages/fit/global_step"), "1") << "seen at the end of the first step";
}

TEST_F(RunFailure, HandlersAreGivenBackAfterTheRun) {
  static volatile int seen;
  seen = 0;
  const auto old = std::signal(SIGINT, [](int) { seen = 1; });
  done();
  std::raise(SIGINT);
  EXPECT_EQ(seen, 1);
  std::signal(SIGINT, old);
}

// ---- refused before anything is touched

TEST_F(RunFailure, AllErrorsOfTheManifestComeTogetherAndNothingIsMade) {
  const Outcome o = run({"trainer.max_epoch=3", "model.inputs=-1", "data.batch_size=0", "optimizer.use=sdg"});
  EXPECT_EQ(o.report.exit_code, 2);
  EXPECT_EQ(o.report.outcome, "refused");
  for (const char* part : {"max_epoch", "model.inputs", "data.batch_size", "sgd"})
    EXPECT_THAT(o.report.error, HasSubstr(part));
  EXPECT_FALSE(started());
  EXPECT_EQ(o.report.run_folder, "");
}

TEST_F(RunFailure, AStrategyOfOneRankRefusesMoreBeforeAnythingStarts) {
  for (const char* devices : {"trainer.devices=2", "trainer.devices=[0, 1]", "trainer.num_nodes=2"}) {
    const Outcome o = run({devices});
    EXPECT_EQ(o.report.exit_code, 2) << devices;
    EXPECT_THAT(o.report.error, HasSubstr("\"single\" trains on one rank"));
    EXPECT_FALSE(started());
  }
  for (const char* devices :
       {"trainer.devices=1", "trainer.devices=\"auto\"", "trainer.devices=[0]", "trainer.threads=3"})
    EXPECT_EQ(done({devices}).report.exit_code, 0) << devices;
}

TEST_F(RunFailure, ARefusedPluginIsCode4) {
  manifest.replace(manifest.find("use = \"mock_linear\""), 19,
                   "plugin = \"" LHOST_TEST_FIXTURES "/other_major.so\"");
  const Outcome o = run({"model={plugin=\"" LHOST_TEST_FIXTURES "/other_major.so\"}"});
  EXPECT_EQ(o.report.exit_code, 4);
  EXPECT_THAT(o.report.error, HasSubstr("Nothing was started"));
  EXPECT_FALSE(started());
}

TEST_F(RunFailure, AFileNamePatternThatCannotBeReadIsRefusedFirst) {
  for (const char* pattern : {"{epoch", "epoch}", "{}", "{epoch:xyz}"}) {
    EXPECT_EQ(
        run({std::string("checkpoint=[{use=\"torch\",filename=\"") + pattern + "\"}]"}).report.exit_code, 2)
        << pattern;
    EXPECT_FALSE(started()) << pattern;
  }
}

TEST_F(RunFailure, ARunFolderThatCannotBeMadeIsTheEnvironments) {
  folder.write("file", "");
  const Outcome o = run({"run.dir=\"" + (folder / "file") + "\""});
  EXPECT_EQ(o.report.exit_code, 3);
  EXPECT_THAT(o.report.error, HasSubstr("Not a directory"));
}

TEST_F(RunFailure, ACheckpointThatCannotBeWrittenIsTheEnvironments) {
  const Outcome o = run({R"(checkpoint=[{use="torch",filename="events.txt/x",dir="../../.."}])"});
  expect_result(o, "failed", 3);
  EXPECT_THAT(o.report.error, HasSubstr("Not a directory"));
}

TEST_F(RunFailure, AStageThatTheModelOrTheDataLacksIsNamed) {
  const Outcome data = run({R"(run.stages=["test"])"});
  EXPECT_EQ(data.report.exit_code, 1);
  EXPECT_THAT(data.report.error, AllOf(HasSubstr("\"test\""), HasSubstr("0 samples")));
}

TEST_F(RunFailure, EveryRunHasItsOwnFolder) {
  EXPECT_EQ(done().report.run_folder, folder / "runs/t/version_0");
  std::filesystem::create_directories(folder / "runs/t/version_4");
  std::filesystem::create_directories(folder / "runs/t/version_x");
  EXPECT_EQ(done().report.run_folder, folder / "runs/t/version_5");  // B074
}

}  // namespace
}  // namespace run_test
