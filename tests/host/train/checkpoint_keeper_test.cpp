#include "train/checkpoint_keeper.hpp"

#include "base/failure.hpp"
#include "base/files.hpp"
#include "engine_support.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace lhost {
namespace {

namespace fs = std::filesystem;
using lhost_test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Last = CheckpointPolicy::Last;

const double nan = std::nan("");

// ---- names

std::string expanded(const std::string& pattern) {
  return expand_filename(pattern, 3, 120,
                         {{"val_loss", 0.3156, 0}, {"a/b", 2, 0}, {"big", 1e300, 0}, {"bad", nan, 0}});
}

TEST(CheckpointName, SaysNameAndValue) {
  EXPECT_EQ(expanded("{epoch}-{step}"), "epoch=3-step=120");
  EXPECT_EQ(expanded("{epoch:02d}-{val_loss:.2f}"), "epoch=03-val_loss=0.32");
  EXPECT_EQ(expanded("best"), "best");
  EXPECT_EQ(expanded("x{epoch}y"), "xepoch=3y");
  EXPECT_EQ(expanded(""), "");
}

TEST(CheckpointName, KnowsTheFormats) {
  EXPECT_EQ(expanded("{val_loss:e}"), "val_loss=3.156000e-01");
  EXPECT_EQ(expanded("{val_loss:.1e}"), "val_loss=3.2e-01");
  EXPECT_EQ(expanded("{val_loss:.3g}"), "val_loss=0.316");
  EXPECT_EQ(expanded("{val_loss:f}"), "val_loss=0.315600");
  EXPECT_EQ(expanded("{val_loss:d}"), "val_loss=0");
  EXPECT_EQ(expanded("{step:6d}"), "step=   120");
  EXPECT_EQ(expanded("{val_loss}"), "val_loss=0.3156");
  EXPECT_EQ(expanded("{a/b}"), "a_b=2") << "a slash would be a folder";
}

TEST(CheckpointName, OfAMetricNobodyLoggedIsNan) {
  EXPECT_EQ(expanded("{none}"), "none=nan");
  EXPECT_EQ(expanded("{none:.2f}"), "none=nan");
  EXPECT_EQ(expanded("{bad:03d}"), "bad=nan");
}

TEST(CheckpointName, HoldsAnyNumber) {
  EXPECT_THAT(expanded("{big:f}"),
              testing::StartsWith("big=1000000000000000052504760255204420248704468581108159"));
  EXPECT_EQ(expanded("{big}"), "big=1e+300");
  EXPECT_THAT(expanded("{big:d}"),
              testing::StartsWith("big=1000000000000000052504760255204420248704468581108159"));
  EXPECT_EQ(expanded("{val_loss:.9999f}").substr(0, 14), "val_loss=0.315");
}

TEST(CheckpointName, APatternThatCannotBeReadIsTheUsersError) {
  for (const char* bad : {"{epoch", "epoch}", "{}", "{:d}", "{epoch:02x}", "{epoch:s}", "{epoch:-3d}",
                          "{epoch:%d}", "{epoch:*d}", "{a}}", "{epoch:1000000d}", "{epoch:1.2.f}"}) {
    try {
      check_filename_pattern(bad);
      ADD_FAILURE() << bad << " was accepted";
    } catch (const Failure& f) {
      EXPECT_EQ(f.code, Exit::usage);
      EXPECT_THAT(f.what(), HasSubstr(bad));
      EXPECT_THAT(f.what(), HasSubstr("{epoch:02d}"));
    }
  }
  EXPECT_NO_THROW(check_filename_pattern("{epoch:02d}-{val_loss:.2f}"));
}

// ---- what is kept

struct Keeper : testing::Test {
  Keeper() {
    policy.instance = "checkpoint[0]";
    policy.filename = "{epoch}";
  }
  CheckpointKeeper keeper() {
    return {policy, dir.path(), ".ckpt",
            [this](const std::string& path, bool weights_only) { write(path, weights_only); }};
  }
  void write(const std::string& path, bool weights_only) {
    if (during) during();
    write_atomically(path, weights_only ? "weights" : "all");
    ++written;
  }
  CheckpointKeeper::Moment moment(int64_t epoch, bool validated = true) {
    return {epoch, 10 * (epoch + 1), &metrics, validated};
  }
  void monitor(const std::string& name, int64_t top_k, bool larger_is_better = false) {
    policy.monitor = name;
    policy.save_top_k = top_k;
    policy.larger_is_better = larger_is_better;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    std::error_code ec;
    for (const auto& e : fs::directory_iterator(dir / "checkpoints", ec)) names.push_back(e.path().stem());
    std::sort(names.begin(), names.end());
    return names;
  }
  // The epochs whose files are there after these values.
  std::vector<std::string> after(const std::vector<double>& values) {
    fs::remove_all(dir / "checkpoints");
    CheckpointKeeper k = keeper();
    for (size_t epoch = 0; epoch < values.size(); ++epoch) {
      metrics.restore_known("m", values[epoch], 0);
      k.at_epoch_end(moment(static_cast<int64_t>(epoch)));
    }
    best = k.best() ? k.best()->file : "";
    return files();
  }

  TempDir dir;
  CheckpointPolicy policy;
  Metrics metrics{train_test::engine()};
  std::function<void()> during;
  int written = 0;
  std::string best;
};

TEST_F(Keeper, KeepsTheBestK) {
  monitor("m", 1);
  EXPECT_THAT(after({5, 3, 4, 2, 6}), ElementsAre("epoch=3"));
  EXPECT_EQ(best, "checkpoints/epoch=3.ckpt");
  monitor("m", 2);
  EXPECT_THAT(after({5, 3, 4, 2, 6}), ElementsAre("epoch=1", "epoch=3"));
  monitor("m", 3);
  EXPECT_THAT(after({5, 3, 4, 2, 6}), ElementsAre("epoch=1", "epoch=2", "epoch=3"));
  EXPECT_EQ(best, "checkpoints/epoch=3.ckpt");
  monitor("m", 2, true);
  EXPECT_THAT(after({5, 3, 4, 2, 6}), ElementsAre("epoch=0", "epoch=4"));
  EXPECT_EQ(best, "checkpoints/epoch=4.ckpt");
}

TEST_F(Keeper, OfEqualsTheOlderStays) {
  monitor("m", 1);
  EXPECT_THAT(after({3, 3, 3}), ElementsAre("epoch=0"));
  monitor("m", 2);
  EXPECT_THAT(after({2, 2, 2}), ElementsAre("epoch=0", "epoch=1"));
  EXPECT_EQ(best, "checkpoints/epoch=0.ckpt");
  EXPECT_THAT(after({3, 3, 2}), ElementsAre("epoch=0", "epoch=2"));
  monitor("m", 2, true);
  EXPECT_THAT(after({2, 2, 2, 3, 3}), ElementsAre("epoch=3", "epoch=4"));
}

TEST_F(Keeper, NoNumberNeverDisplacesOne) {
  for (bool larger_is_better : {false, true}) {
    monitor("m", 1, larger_is_better);
    EXPECT_THAT(after({2, nan}), ElementsAre("epoch=0"));
    EXPECT_THAT(after({larger_is_better ? -HUGE_VAL : HUGE_VAL, nan}), ElementsAre("epoch=0"));
    EXPECT_THAT(after({nan, 2}), ElementsAre("epoch=1"));
    EXPECT_THAT(after({nan, nan}), ElementsAre("epoch=0"));
    EXPECT_EQ(best, "checkpoints/epoch=0.ckpt");
  }
  monitor("m", 1);
  EXPECT_THAT(after({nan, 2, 3}), ElementsAre("epoch=1"));
  monitor("m", 2);
  EXPECT_THAT(after({2, nan, 3}), ElementsAre("epoch=0", "epoch=2"));
  EXPECT_THAT(after({nan, nan, 3}), ElementsAre("epoch=0", "epoch=2"));
}

TEST_F(Keeper, MinusOneKeepsAllAndZeroNone) {
  monitor("m", -1);
  EXPECT_THAT(after({1, nan, 3}), ElementsAre("epoch=0", "epoch=1", "epoch=2"));
  monitor("m", 0);
  EXPECT_THAT(after({1, nan, 3}), IsEmpty());
  EXPECT_EQ(best, "");
}

TEST_F(Keeper, WithoutAMonitorTheNewestAreTheBest) {
  policy.save_top_k = 2;
  EXPECT_THAT(after({9, 9, 9, 9}), ElementsAre("epoch=2", "epoch=3"));
  EXPECT_EQ(best, "checkpoints/epoch=3.ckpt");
}

TEST_F(Keeper, SavesEveryNEpochs) {
  policy.save_top_k = -1;
  policy.every_n_epochs = 3;
  EXPECT_THAT(after({1, 1, 1, 1, 1, 1, 1}), ElementsAre("epoch=2", "epoch=5"));
}

TEST_F(Keeper, SavesEveryNStepsAndThenNotAtEpochs) {
  policy.save_top_k = -1;
  policy.filename = "{step}";
  policy.every_n_steps = 4;
  CheckpointKeeper k = keeper();
  for (int64_t step = 1; step <= 9; ++step) {
    k.at_step({0, step, &metrics, true});
    if (step % 3 == 0) k.at_epoch_end({0, step, &metrics, true});
  }
  EXPECT_THAT(files(), ElementsAre("step=4", "step=8"));
}

TEST_F(Keeper, AtEpochsDoesNotSaveAtSteps) {
  CheckpointKeeper k = keeper();
  for (int64_t step = 1; step <= 9; ++step) k.at_step({0, step, &metrics, true});
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(Keeper, AnEpochWithoutValidationIsNoCandidate) {
  monitor("val_loss", 1);
  policy.save_last = Last::copy;
  CheckpointKeeper k = keeper();
  k.at_epoch_end(moment(0, false));
  EXPECT_THAT(files(), ElementsAre("last"));
  metrics.restore_known("val_loss", 1, 0);
  k.at_epoch_end(moment(1));
  k.at_epoch_end(moment(2, false));
  EXPECT_THAT(files(), ElementsAre("epoch=1", "last"));
}

TEST_F(Keeper, BetweenValidationsTheLastValueRanksSteps) {
  monitor("val_loss", -1);
  policy.filename = "{step}";
  policy.every_n_steps = 1;
  CheckpointKeeper k = keeper();
  k.at_step({0, 1, &metrics, false});
  EXPECT_THAT(files(), IsEmpty());
  metrics.restore_known("val_loss", 1, 0);
  k.at_step({0, 2, &metrics, false});
  EXPECT_THAT(files(), ElementsAre("step=2"));
}

TEST_F(Keeper, AMonitorThatWasNotLoggedNamesWhatWas) {
  monitor("val_los", 1);
  metrics.restore_known("val_loss", 1, 0);
  metrics.restore_known("loss", 1, 0);
  CheckpointKeeper k = keeper();
  try {
    k.at_epoch_end(moment(0));
    FAIL();
  } catch (const Failure& f) {
    EXPECT_EQ(f.code, Exit::failed);
    EXPECT_STREQ(f.what(),
                 "checkpoint[0].monitor: no metric \"val_los\" was logged so far; there are: val_loss, loss");
  }
  Metrics nothing(train_test::engine());
  try {
    k.at_epoch_end({0, 1, &nothing, true});
    FAIL();
  } catch (const Failure& f) {
    EXPECT_THAT(f.what(), HasSubstr("there are: none"));
  }
}

TEST_F(Keeper, ANameThatIsTakenGetsANumber) {
  policy.save_top_k = -1;
  policy.filename = "same";
  EXPECT_THAT(after({1, 1, 1}), ElementsAre("same", "same-v1", "same-v2"));
}

TEST_F(Keeper, ANameMayHaveFolders) {
  policy.filename = "a/b/{epoch}";
  CheckpointKeeper k = keeper();
  k.at_epoch_end(moment(0));
  EXPECT_EQ(dir.read("checkpoints/a/b/epoch=0.ckpt"), "all");
  EXPECT_EQ(k.last(), "checkpoints/a/b/epoch=0.ckpt");
}

TEST_F(Keeper, AnOldFileGoesOnlyAfterTheNewOneIsComplete) {
  monitor("m", 1);
  CheckpointKeeper k = keeper();
  metrics.restore_known("m", 2, 0);
  k.at_epoch_end(moment(0));
  during = [&] { EXPECT_THAT(files(), ElementsAre("epoch=0")); };
  metrics.restore_known("m", 1, 0);
  k.at_epoch_end(moment(1));
  EXPECT_THAT(files(), ElementsAre("epoch=1"));
}

TEST_F(Keeper, TheFileBeingWrittenIsPartOfTheStateThatItHolds) {
  monitor("m", 1);
  CheckpointKeeper k = keeper();
  metrics.restore_known("m", 2, 0);
  during = [&] {
    ASSERT_TRUE(k.best());
    EXPECT_EQ(k.best()->file, "checkpoints/epoch=0.ckpt");
    EXPECT_EQ(k.best()->value, 2);
  };
  k.at_epoch_end(moment(0));
  EXPECT_EQ(written, 1);
}

TEST_F(Keeper, AWriteThatFailsKeepsWhatThereWas) {
  monitor("m", 1);
  CheckpointKeeper k = keeper();
  metrics.restore_known("m", 2, 0);
  k.at_epoch_end(moment(0));
  during = [] { throw Failure(Exit::environment, "disk full"); };
  metrics.restore_known("m", 1, 0);
  EXPECT_THROW(k.at_epoch_end(moment(1)), Failure);
  EXPECT_THAT(files(), ElementsAre("epoch=0"));
  EXPECT_EQ(k.best()->file, "checkpoints/epoch=0.ckpt");
  EXPECT_EQ(k.last(), "checkpoints/epoch=0.ckpt");
}

TEST_F(Keeper, WritesOnlyWhatItsPolicySays) {
  CheckpointKeeper all = keeper();
  all.at_epoch_end(moment(0));
  EXPECT_EQ(dir.read("checkpoints/epoch=0.ckpt"), "all");
  policy.weights_only = true;
  CheckpointKeeper weights = keeper();
  weights.at_epoch_end(moment(1));
  EXPECT_EQ(dir.read("checkpoints/epoch=1.ckpt"), "weights");
}

TEST_F(Keeper, LastIsACopyOfEverySave) {
  monitor("m", 1);
  policy.save_last = Last::copy;
  EXPECT_THAT(after({1, 2}), ElementsAre("epoch=0", "last"));
  EXPECT_EQ(written, 3) << "the second epoch is no best, but the last";
  EXPECT_FALSE(fs::is_symlink(dir / "checkpoints/last.ckpt"));
}

TEST_F(Keeper, LastMayBeALinkWhereThereIsAFile) {
  monitor("m", 1);
  policy.save_last = Last::link;
  EXPECT_THAT(after({2, 1}), ElementsAre("epoch=1", "last"));
  EXPECT_EQ(fs::read_symlink(dir / "checkpoints/last.ckpt").string(), "epoch=1.ckpt");
  EXPECT_EQ(written, 2);
}

TEST_F(Keeper, ALinkGivesWayToACopyWhenTheNewestIsNoBest) {
  monitor("m", 1);
  policy.save_last = Last::link;
  policy.weights_only = true;
  EXPECT_THAT(after({1, 2}), ElementsAre("epoch=0", "last"));
  EXPECT_FALSE(fs::is_symlink(dir / "checkpoints/last.ckpt"));
  EXPECT_EQ(written, 2);
}

TEST_F(Keeper, ALinkInFoldersPointsToTheFile) {
  policy.filename = "a/{epoch}";
  policy.save_last = Last::link;
  CheckpointKeeper k = keeper();
  k.at_epoch_end(moment(0));
  EXPECT_EQ(dir.read("checkpoints/last.ckpt"), "all");
}

TEST_F(Keeper, NowIsOutsideTheRanking) {
  monitor("m", 1);
  metrics.restore_known("m", 1, 0);
  CheckpointKeeper k = keeper();
  k.at_epoch_end(moment(0));
  k.now(moment(1), "interrupted");
  EXPECT_THAT(files(), ElementsAre("epoch=0", "interrupted"));
  EXPECT_EQ(k.last(), "checkpoints/interrupted.ckpt");
  EXPECT_EQ(k.best()->file, "checkpoints/epoch=0.ckpt");
  metrics.restore_known("m", 0, 0);
  k.at_epoch_end(moment(2));
  EXPECT_THAT(files(), ElementsAre("epoch=2", "interrupted"));
}

TEST_F(Keeper, AResumedRunRanksWhatItFinds) {
  monitor("m", 3);
  CheckpointKeeper k = keeper();
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    metrics.restore_known("m", static_cast<double>(epoch), 0);
    k.at_epoch_end(moment(epoch));
  }
  CheckpointTree tree(train_test::engine());
  k.save_state(tree, {"policies", "checkpoint[0]"});
  fs::remove(dir / "checkpoints/epoch=1.ckpt");  // by hand
  CheckpointKeeper resumed = keeper();
  resumed.load_state(tree, {"policies", "checkpoint[0]"});
  EXPECT_EQ(resumed.best()->file, "checkpoints/epoch=0.ckpt");
  EXPECT_EQ(resumed.best()->value, 0);
  metrics.restore_known("m", 5, 0);
  resumed.at_epoch_end(moment(3));
  EXPECT_THAT(files(), ElementsAre("epoch=0", "epoch=2", "epoch=3")) << "three again";
  metrics.restore_known("m", 1, 0);
  resumed.at_epoch_end(moment(4));
  EXPECT_THAT(files(), ElementsAre("epoch=0", "epoch=2", "epoch=4"));
}

TEST_F(Keeper, ASmallerKAfterAResumeRemovesAllThatAreTooMany) {
  monitor("m", 3);
  CheckpointKeeper k = keeper();
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    metrics.restore_known("m", static_cast<double>(epoch), 0);
    k.at_epoch_end(moment(epoch));
  }
  CheckpointTree tree(train_test::engine());
  k.save_state(tree, {"p"});
  policy.save_top_k = 1;
  CheckpointKeeper resumed = keeper();
  resumed.load_state(tree, {"p"});
  metrics.restore_known("m", -1, 0);
  resumed.at_epoch_end(moment(3));
  EXPECT_THAT(files(), ElementsAre("epoch=3"));
}

TEST_F(Keeper, TakesAwayWhatAKilledWriterLeft) {
  fs::create_directory(dir / "checkpoints");
  dir.write("checkpoints/epoch=0.ckpt.lhost-tmp-junk", "");
  keeper();
  EXPECT_THAT(files(), IsEmpty());
}

}  // namespace
}  // namespace lhost
