// tests/host/assembly/embed_test.cpp - lhost inside another program: what lhost/runtime.hpp promises.
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <lhost/runtime.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

struct Embedded : testing::Test {
  Embedded() {
    setenv("XDG_CACHE_HOME", LHOST_TEST_BIN "/../tests/cache", 1);
    unsetenv("LHOST_SET");
    o.manifest = dir.write(
        "t.toml",
        "[run]\nname = \"t\"\ndir = \"runs\"\n[trainer]\nmax_epochs = 5\nnum_sanity_val_steps = 0\nthreads = "
        "1\n"
        "[model]\nuse = \"mock_linear\"\ninputs = 2\nclasses = 1\nloss = \"mse\"\n"
        "[data]\nuse = \"mock_data\"\nsamples = 8\nval_samples = 4\ntest_samples = 4\nbatch_size = 2\n"
        "[optimizer]\nuse = \"sgd\"\nlr = 0.1\n[[checkpoint]]\nuse = \"torch\"\nmonitor = \"val_loss\"\n");
    o.overrides = {"trainer.max_epochs=3"};
    o.plugin_dirs = {LHOST_TEST_MOCK "/plugins"};
    o.prefix = LHOST_TEST_BIN "/..";
    o.engine = LHOST_TEST_MOCK "/lib/mock_engine.so";
  }
  bool started() const { return fs::exists(dir / "runs"); }
  lhost_test::TempDir dir;
  lhost::RunOptions o;
};

TEST_F(Embedded, ARunReportsWhatItCameTo) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const lhost::RunReport r = lhost::run_manifest(o);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "") << "quiet is the default";
  EXPECT_EQ(r.exit_code, 0) << r.error;
  EXPECT_EQ(r.outcome, "done");
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.run_folder, dir / "runs/t/version_0");
  EXPECT_EQ(r.metrics.count("loss"), 1u);
  EXPECT_EQ(r.metrics.count("val_loss"), 1u);
  EXPECT_THAT(r.best_checkpoint, testing::StartsWith(r.run_folder + "/checkpoints/"));
  EXPECT_TRUE(fs::exists(r.best_checkpoint));
  EXPECT_THAT(dir.read("runs/t/version_0/result.json"), HasSubstr("\"epochs\": 3")) << "the override holds";
}

TEST_F(Embedded, MetricsOfATestHaveTheirTestNames) {
  o.overrides = {"run.stages=[\"fit\", \"test\"]"};
  const lhost::RunReport r = lhost::run_manifest(o);
  EXPECT_EQ(r.exit_code, 0) << r.error;
  EXPECT_EQ(r.metrics.count("test_loss"), 1u);
  EXPECT_EQ(r.metrics.count("val_loss"), 1u);
}

TEST_F(Embedded, OneProcessMayRunAgainAndAgain) {
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(lhost::run_manifest(o).run_folder, dir / ("runs/t/version_" + std::to_string(n)));
}

TEST_F(Embedded, ItMayTalk) {
  o.quiet = false;
  testing::internal::CaptureStdout();
  lhost::run_manifest(o);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("into  " + (dir / "runs/t/version_0")));
}

TEST_F(Embedded, AManifestsErrorsComeTogetherAndNothingIsStarted) {
  o.overrides = {"trainer.max_epoch=1", "optimizer.lr=fast"};
  for (const auto& call : {lhost::run_manifest, lhost::check_manifest}) {
    const lhost::RunReport r = call(o);
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_EQ(r.outcome, "refused");
    EXPECT_THAT(r.error, AllOf(HasSubstr("did you mean \"max_epochs\""), HasSubstr("optimizer.lr")));
    EXPECT_EQ(r.run_folder, "");
  }
  EXPECT_FALSE(started());
}

TEST_F(Embedded, CheckingStartsNothing) {
  const lhost::RunReport r = lhost::check_manifest(o);
  EXPECT_EQ(r.exit_code, 0) << r.error;
  EXPECT_EQ(r.outcome, "done");
  EXPECT_FALSE(started());
}

TEST_F(Embedded, AFailureOfTheRunIsInTheReport) {
  o.overrides = {"data.fail_at=3"};
  testing::internal::CaptureStderr();
  const lhost::RunReport r = lhost::run_manifest(o);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(r.outcome, "failed");
  EXPECT_THAT(r.error, HasSubstr("sample 3"));
  EXPECT_TRUE(fs::exists(r.run_folder + "/result.json"));
}

TEST_F(Embedded, AMissingEngineIsTheEnvironmentsFailure) {
  o.engine = dir / "none.so";
  testing::internal::CaptureStderr();
  const lhost::RunReport r = lhost::run_manifest(o);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.outcome, "failed");
  EXPECT_THAT(r.error, HasSubstr("none.so"));
}

TEST_F(Embedded, AFileThatIsNotThereIsTheUsersError) {
  o.manifest = dir / "none.toml";
  EXPECT_EQ(lhost::run_manifest(o).exit_code, 2);
  EXPECT_EQ(lhost::run_manifest({}).exit_code, 2);
}

volatile std::sig_atomic_t heard = 0;

TEST_F(Embedded, SignalsAreTheProgramsAgainAfterTheRun) {
  const auto before = std::signal(SIGINT, [](int s) { heard = s; });
  lhost::run_manifest(o);
  std::raise(SIGINT);
  EXPECT_EQ(heard, SIGINT);
  std::signal(SIGINT, before);
}

}  // namespace
