// tests/host/cli/help_test.cpp - help, versions, and what is said to a command line that is wrong.
#include "support.hpp"

namespace cli_test {
namespace {

const char* const kCommands[] = {"run",     "validate", "test",    "plan", "list",
                                 "inspect", "doctor",   "version", "help"};

struct Help : Cli {};

TEST_F(Help, IsTheGoldenScreen) {
  expect_golden("help", screen("help"));
  expect_golden("help-run", screen("help run"));
  expect_golden("help-exit-codes", screen("help exit-codes"));
}

TEST_F(Help, ComesInEveryUsualWay) {
  const std::string text = screen("help");
  EXPECT_EQ(screen(""), text);
  EXPECT_EQ(screen("--help"), text);
  EXPECT_EQ(screen("-h"), text);
}

TEST_F(Help, NamesEveryCommandAndEachHasItsOwn) {
  const std::string all = screen("help");
  for (const std::string command : kCommands) {
    EXPECT_THAT(all, HasSubstr("\n  " + command + " "));
    EXPECT_THAT(screen("help " + command), HasSubstr("Usage: lhost " + command));
    EXPECT_THAT(screen(command + " --help"), HasSubstr("Usage: lhost " + command));
  }
}

TEST_F(Help, IsShortEnoughForAScreen) {
  for (const std::string command : kCommands) {
    std::istringstream lines(screen("help " + command));
    int n = 0;
    for (std::string line; std::getline(lines, line); ++n) EXPECT_LE(line.size(), 110u) << line;
    EXPECT_LE(n, 40) << command;
  }
}

TEST_F(Help, OnSomethingUnknownNamesTheTopics) {
  EXPECT_THAT(refused(2, "help nothing"), AllOf(HasSubstr("no command \"nothing\""), HasSubstr("inspect")));
}

TEST_F(Help, AMisspeltCommandGetsASuggestion) {
  EXPECT_EQ(
      refused(2, "docter"),
      "error: no command \"docter\"; did you mean \"doctor\"? (run, validate, test, plan, list, inspect, "
      "doctor, version, help)\n");
  EXPECT_THAT(refused(2, "-q valdate x.toml"), HasSubstr("did you mean \"validate\"?"));
  EXPECT_THAT(refused(2, "--color never insepct sgd"), HasSubstr("did you mean \"inspect\"?"));
  EXPECT_THAT(refused(2, "frobnicate"),
              AllOf(HasSubstr("no command \"frobnicate\""), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(refused(2, "''"), HasSubstr("no command \"\""));
}

TEST_F(Help, AWrongCommandLineSaysWhatAndWhereToLook) {
  EXPECT_EQ(refused(2, "run"), "error: manifest is required\nlhost help run shows what is accepted\n");
  EXPECT_THAT(refused(2, "inspect"), HasSubstr("what is required"));
  EXPECT_THAT(refused(2, "run x.toml --bogus"), AllOf(HasSubstr("--bogus"), HasSubstr("lhost help run")));
  EXPECT_THAT(refused(2, "list logger csv"), AllOf(HasSubstr("csv"), HasSubstr("lhost help list")));
  EXPECT_THAT(refused(2, "--color sometimes list"), AllOf(HasSubstr("sometimes"), HasSubstr("always")));
  EXPECT_THAT(refused(2, "doctor --plugin-dir"), HasSubstr("--plugin-dir"));
}

TEST_F(Help, ErrorsGoToStandardErrorAndHelpToStandardOutput) {
  EXPECT_EQ(refused(2, "docter 2>/dev/null"), "");
  EXPECT_EQ(refused(2, "run 2>/dev/null"), "");
  EXPECT_EQ(refused(2, "run none.toml 2>/dev/null"), "");
  for (const char* text : {"help", "help run", "--help", "run --help", "--version", "version"})
    EXPECT_EQ(screen(text + std::string(" 2>&1 >/dev/null")), "");
}

TEST_F(Help, VersionsAreThoseOfThisBuild) {
  EXPECT_EQ(screen("--version"), "lhost " LHOST_TEST_VERSION "\n");
  EXPECT_EQ(screen("version"), "lhost " LHOST_TEST_VERSION "\nplugin ABI 1.1\nlibtorch 2.11.0\n");
  torch("2.10.9");
  EXPECT_THAT(screen("version"), HasSubstr("libtorch not found\n"));
}

// ---- doctor

struct Doctor : Cli {};

TEST_F(Doctor, FindsNothingWrongWithAGoodInstallation) {
  const std::string text = screen("doctor");
  EXPECT_THAT(text, StartsWith("lhost         " LHOST_TEST_VERSION "\ncores         "));
  EXPECT_THAT(text, HasSubstr("\nmemory        "));
  EXPECT_THAT(text, HasSubstr("\nlibtorch      2.11.0  PREFIX/libtorch\n"));
  EXPECT_THAT(text, HasSubstr("\nengine        PREFIX/lib/lhost/liblhost_engine.so\n"));
  EXPECT_THAT(text, HasSubstr("\nplugins       8 components in 8 files\n"));
  EXPECT_THAT(text, HasSubstr("              PREFIX/.local/share/lhost/plugins/1  (user, does not exist)\n"));
  EXPECT_THAT(text, HasSubstr("              PREFIX/lib/lhost/plugins/1  (installation)\n"));
  EXPECT_THAT(text, testing::EndsWith("\neverything is fine\n"));
}

TEST_F(Doctor, CountsProblemsAndFails) {
  prefix_file("lib/lhost/plugins/1/logger/broken.so", "not a library");
  EXPECT_THAT(refused(3, "doctor"),
              AllOf(HasSubstr("plugin        problem: PREFIX/lib/lhost/plugins/1/logger/broken.so: "),
                    testing::EndsWith("\n1 problem\n")));
  torch("2.10.9");
  EXPECT_THAT(refused(3, "doctor"),
              AllOf(HasSubstr("libtorch      problem: PREFIX/libtorch is LibTorch 2.10.9"),
                    testing::EndsWith("\n2 problems\n")));
  torch("2.11.0");
  fs::remove(prefix / "lib/lhost/liblhost_engine.so");
  EXPECT_THAT(refused(3, "doctor"),
              HasSubstr("engine        problem: PREFIX/lib/lhost/liblhost_engine.so is missing"));
}

TEST_F(Doctor, TellsWhatTheEnvironmentSays) {
  EXPECT_THAT(screen("doctor", "OMP_NUM_THREADS=3 LHOST_SET=run.seed=secret"),
              AllOf(HasSubstr("OMP_NUM_THREADS=3"), HasSubstr("set trainer.threads"),
                    HasSubstr("LHOST_SET is set"), Not(HasSubstr("secret"))));
}

TEST_F(Doctor, HasASectionForWhateverRanksNeed) {
  const std::string text = screen("doctor");
  size_t at = 0;
  for (const char* section :
       {"\ncores  ", "\nmemory  ", "\nshared memory ", "\nlimits  ", "\ndisk  ", "\nlibtorch  ",
        "\nplugins  ", "\nnetwork  ", "\nhost name  ", "\nport  ", "\nenvironment  "}) {
    const size_t found = text.find(section, at);
    ASSERT_NE(found, text.npos) << section << " is missing, or not in its place:\n" << text;
    at = found;
  }
}

TEST_F(Doctor, SaysThatARunWouldWaitForOtherRanks) {
  EXPECT_THAT(screen("doctor", "RANK=1 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"),
              HasSubstr("launcher.use = \"auto\" makes this process rank 1 of 4 and waits for all of them"));
  EXPECT_THAT(refused(3, "doctor", "MASTER_PORT=none"),
              HasSubstr("port          problem: MASTER_PORT=none is no port"));
}

TEST_F(Doctor, LooksIntoTheFoldersThatAreNamed) {
  EXPECT_THAT(screen("doctor" + mocks()), HasSubstr(LHOST_TEST_MOCK "/plugins  (--plugin-dir)\n"));
}

}  // namespace
}  // namespace cli_test
