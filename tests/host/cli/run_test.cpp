// tests/host/cli/run_test.cpp - run, validate and test from the command line, and the exit code of each way to end.
#include "support.hpp"

namespace cli_test {
namespace {

struct RunCommand : Cli {
  RunCommand() { file("t.toml", manifest()); }
  std::string result(int version) const {
    return prefix.read("work/runs/t/version_" + std::to_string(version) + "/result.json");
  }
};

TEST_F(RunCommand, TrainsIntoANewFolder) {
  const std::string text = screen("run t.toml" + mocks());
  EXPECT_THAT(text, HasSubstr("into  runs/t/version_0\n"));
  EXPECT_THAT(result(0), HasSubstr("\"outcome\": \"done\""));
  screen("run t.toml" + mocks());
  EXPECT_THAT(result(1), HasSubstr("\"exit_code\": 0"));
}

TEST_F(RunCommand, TheManifestMayComeFromStandardInput) {
  EXPECT_THAT(screen("run - trainer.max_epochs=2" + mocks() + " < t.toml"), HasSubstr("version_0"));
  EXPECT_THAT(result(0), HasSubstr("\"epochs\": 2"));
}

TEST_F(RunCommand, GoesOnWhereItStopped) {
  screen("run t.toml" + mocks());
  EXPECT_THAT(screen("run t.toml trainer.max_epochs=3 --resume last" + mocks()),
              HasSubstr("from  runs/t/version_0/"));
  EXPECT_THAT(result(0), AllOf(HasSubstr("\"epochs\": 3"), HasSubstr("\"global_step\": 12")));
  EXPECT_FALSE(fs::exists(work() + "/runs/t/version_1"));
}

TEST_F(RunCommand, AnEmptyCheckpointIsNotNone) {  // "$UNSET" in a script
  EXPECT_THAT(refused(2, "run t.toml --resume ''" + mocks()), HasSubstr("found an empty text"));
  EXPECT_THAT(refused(2, "test t.toml --checkpoint ''" + mocks()), HasSubstr("found an empty text"));
}

TEST_F(RunCommand, ClosedStreamsLeadNoOutputIntoTheRunsFiles) {
  EXPECT_EQ(lhost("run t.toml" + mocks() + " <&- >&- 2>&-").exit_code, 0);
  EXPECT_THAT(prefix.read("work/runs/t/version_0/host.log"), Not(HasSubstr("epoch")));
}

TEST_F(RunCommand, OutputThatIsLostIsAnErrorOfCommandsThatPrint) {
  EXPECT_EQ(lhost("list >/dev/full").exit_code, 3);
  EXPECT_EQ(lhost("--version >/dev/full").exit_code, 3);
  EXPECT_EQ(lhost("plan t.toml" + mocks() + " >/dev/full").exit_code, 3);
  EXPECT_EQ(lhost("run t.toml" + mocks() + " >/dev/full").exit_code, 0) << "a run is about its folder";
}

TEST_F(RunCommand, AutoStartsWhereThereIsNothingToGoOnFrom) {
  EXPECT_THAT(screen("run t.toml --resume auto" + mocks()), Not(HasSubstr("\nfrom ")));
  EXPECT_THAT(screen("run t.toml trainer.max_epochs=2 --resume auto" + mocks()), HasSubstr("\nfrom "));
  EXPECT_THAT(refused(2, "run t.toml run.name=other --resume last" + mocks()),
              HasSubstr("--resume last: no checkpoint"));
}

TEST_F(RunCommand, ValidateAndTestMeasureACheckpoint) {
  screen("run t.toml" + mocks());
  screen("test t.toml --checkpoint last" + mocks());
  EXPECT_THAT(result(1), AllOf(HasSubstr("\"test_loss\""), Not(HasSubstr("\"fit\""))));
  screen("validate t.toml --checkpoint best" + mocks());
  EXPECT_THAT(result(2), AllOf(HasSubstr("\"val_loss\""), Not(HasSubstr("\"test_loss\""))));
}

TEST_F(RunCommand, QuietSaysNothingUnlessSomethingIsWrong) {
  EXPECT_EQ(screen("-q run t.toml" + mocks()), "");
  EXPECT_THAT(result(0), HasSubstr("\"done\""));
  EXPECT_EQ(screen("run t.toml -q" + mocks()), "") << "wherever it stands";
  EXPECT_EQ(screen("-q list"), "");
  EXPECT_THAT(refused(1, "-q run t.toml data.fail_at=0" + mocks()), HasSubstr("sample 0"));
}

TEST_F(RunCommand, EveryEndHasItsCode) {
  EXPECT_THAT(refused(1, "run t.toml data.fail_at=5" + mocks()),
              HasSubstr("error: failed in data:mock_data"));
  EXPECT_THAT(refused(2, "run none.toml"), HasSubstr("none.toml does not exist"));
  EXPECT_THAT(refused(2, "run t.toml trainer.max_epoch=1" + mocks()),
              HasSubstr("did you mean \"max_epochs\""));
  EXPECT_THAT(refused(2, "run t.toml optimizer.use=sdg" + mocks()), HasSubstr("sgd"));
  EXPECT_THAT(refused(2, "run t.toml novalue" + mocks()), HasSubstr("novalue"));
  EXPECT_THAT(refused(4, "run t.toml 'callback+={plugin=\"" LHOST_TEST_FIXTURES
                         "/other_major.so\", use=\"other_major\"}'" +
                             mocks()),
              HasSubstr("other_major.so"));
  file("blocked", "a file");
  EXPECT_THAT(refused(3, "run t.toml run.dir=blocked" + mocks()), HasSubstr("WORK/blocked"));
  fs::remove(prefix / "lib/lhost/liblhost_engine.so");
  EXPECT_THAT(refused(3, "run t.toml" + mocks()), HasSubstr("liblhost_engine.so is missing"));
}

TEST_F(RunCommand, AnUnusableCommandLineLeavesNoTrace) {
  for (const char* arguments : {"run t.toml trainer.max_epoch=1", "run t.toml --bogus", "run none.toml"})
    refused(2, arguments + mocks());
  EXPECT_FALSE(fs::exists(work() + "/runs"));
}

TEST_F(RunCommand, AReaderThatGoesAwayDoesNotEndTraining) {
  screen("run t.toml" + mocks() + " | head -n 1");
  EXPECT_THAT(result(0), HasSubstr("\"outcome\": \"done\""));
}

}  // namespace
}  // namespace cli_test
