#include "support.hpp"

#include <sstream>

namespace cli_test {
namespace {

struct Plan : Cli {
  std::string plan(const std::string& arguments = "", const std::string& environment = "") const {
    return screen("plan t.toml" + mocks() + " " + arguments, environment);
  }
  // "key = value" and where it comes from, by its line.
  static std::string origin(const std::string& text, const std::string& assignment) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(assignment + " ", 0) != 0) continue;
      const size_t at = line.find_first_not_of(' ', assignment.size());
      return at == line.npos ? "" : line.substr(at);
    }
    return "not there";
  }
};

TEST_F(Plan, SaysWhereEveryValueComesFrom) {
  file("base.toml", "[trainer]\nmax_epochs = 5\nlog_every_n_steps = 7\n\n[run]\nseed = 1\n");
  file("t.toml", "extends = \"base.toml\"\n" + manifest());
  const std::string text =
      plan("optimizer.momentum=0.9 trainer.max_steps=3", "LHOST_SET='run.seed=9;trainer.max_steps=2'");
  EXPECT_EQ(origin(text, "run.name = \"t\""), "t.toml:3") << "the file";
  EXPECT_EQ(origin(text, "trainer.max_epochs = 1"), "t.toml:5") << "the file, over what it extends";
  EXPECT_EQ(origin(text, "trainer.log_every_n_steps = 7"), "base.toml:3") << "what it extends";
  EXPECT_EQ(origin(text, "optimizer.momentum = 0.9"), "command line");
  EXPECT_EQ(origin(text, "trainer.max_steps = 3"), "command line") << "over the environment";
  EXPECT_EQ(origin(text, "run.seed = 9"), "LHOST_SET") << "over files";
  EXPECT_EQ(origin(text, "precision.use = \"32-true\""), "defaults.toml");
  EXPECT_EQ(origin(text, "optimizer.weight_decay = 0.0"), "default") << "the component's";
  EXPECT_EQ(origin(text, "data.shuffle = true"), "default") << "the host's";
}

TEST_F(Plan, ShowsTheComponentsAndTheModelsSize) {
  file("t.toml", manifest());
  const std::string text = plan("optimizer.momentum=0.9");
  EXPECT_THAT(text, HasSubstr("optimizer      sgd             1.0.0   installation "));
  EXPECT_THAT(text, HasSubstr("model          mock_linear     1.0.0   --plugin-dir "));
  EXPECT_THAT(text, HasSubstr("\nlogger[0]      csv "));
  // weight 1 x 2 and bias 1 in float32; the momentum is as large
  EXPECT_THAT(
      text,
      HasSubstr(
          "\nparameters     3 trainable; 12 B parameters, 12 B gradients, 12 B optimizer, 0 B buffers\n"));
  EXPECT_THAT(text, HasSubstr("\ncheckpoints    checkpoints/{epoch}-{step} (1 kept)\n"));
  EXPECT_THAT(text, HasSubstr("\ninto           runs/t/version_N\n"));
}

TEST_F(Plan, StartsNothing) {
  file("t.toml", manifest());
  plan();
  EXPECT_FALSE(fs::exists(work() + "/runs"));
}

TEST_F(Plan, ReportsAllErrorsOfTheManifestTogether) {
  file("t.toml", manifest() + "momentun = 0.9\nweight_decay = -1\n");
  const std::string text = refused(2, "plan t.toml" + mocks());
  EXPECT_THAT(text, HasSubstr("t.toml:21"));
  EXPECT_THAT(text, HasSubstr("did you mean \"momentum\""));
  EXPECT_THAT(text, HasSubstr("t.toml:22"));
}

TEST_F(Plan, NeedsTheEngine) {
  file("t.toml", manifest());
  fs::remove(prefix / "lib/lhost/liblhost_engine.so");
  EXPECT_THAT(refused(3, "plan t.toml" + mocks()), HasSubstr("liblhost_engine.so is missing"));
}

}  // namespace
}  // namespace cli_test
