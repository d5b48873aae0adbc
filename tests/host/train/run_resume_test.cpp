// A run that stopped and went on is the run that never stopped: weights bit by bit, every record, every file.
#include "run_support.hpp"

#include "base/files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

struct RunResume : Run {
  // All that a run keeps over a stop: noise from the random stream, momentum, shuffling, validation, epoch means
  // over the cut, a buffer, a schedule by step.
  RunResume() {
    manifest.replace(manifest.find("[[callback]]"), 0, R"([scheduler]
use = "cosine"
interval = "step"
warmup = 3
[[logger]]
use = "csv"
[[logger]]
use = "memory_c"
)");
  }
  static Overrides rich(const Overrides& more = {}) {
    Overrides o = {
        "data.samples=20",
        "data.val_samples=4",
        "data.shuffle=true",
        "model.noise=0.5",
        "model.count=true",
        "optimizer.momentum=0.9",
        "trainer.max_epochs=3",
        "trainer.log_every_n_steps=2",
        meddler(
            R"(event = "fit.batch_start", act = "log", flags = 2, metric = "mean", values = ["1", "5", "2", "7", "3"])")};
    o.insert(o.end(), more.begin(), more.end());
    return o;
  }
  Outcome whole(const Overrides& more = {}) {
    Outcome o = done(rich(more));
    EXPECT_EQ(o.report.run_folder, folder / "runs/t/version_0");
    std::filesystem::rename(folder / "runs", folder / "whole");
    o.report.run_folder = folder / "whole/t/version_0";
    return o;
  }
  static void expect_same(const Outcome& resumed, const Outcome& whole) {
    const Tree a = resumed.tree(), b = whole.tree();
    for (const char* part :
         {"state_dict/", "optimizer/", "lhost/counters/", "lhost/rng", "lhost/groups/", "lhost/known/"})
      EXPECT_EQ(below(a, part), below(b, part)) << part;
    EXPECT_EQ(resumed.records.size(), whole.records.size());
    for (size_t i = 0; i < std::min(resumed.records.size(), whole.records.size()); ++i) {
      const Record &x = resumed.records[i], &y = whole.records[i];
      EXPECT_EQ(std::tie(x.stage, x.step, x.epoch, x.samples), std::tie(y.stage, y.step, y.epoch, y.samples))
          << "record " << i;
      EXPECT_EQ(x.values, y.values) << "record " << i;
    }
    EXPECT_EQ(resumed.read("memory_c.txt"), whole.read("memory_c.txt"));
    const auto rows = [](const std::string& csv) { return std::count(csv.begin(), csv.end(), '\n'); };
    EXPECT_EQ(rows(resumed.read("metrics.csv")), rows(whole.read("metrics.csv")));
    EXPECT_EQ(resumed.files(), whole.files());
  }
  // The first part ends by SIGINT at the n-th event, the second is the same command with --resume last.
  void interrupted_is_whole(const std::string& event, int n, const Overrides& more = {}) {
    SCOPED_TRACE(event + " " + std::to_string(n));
    // the same callbacks in all runs
    const auto stop = [&](const char* act) {
      Overrides o = more;
      o.push_back(meddler("event = \"" + event + "\", act = \"" + act + "\", at = " + std::to_string(n)));
      return o;
    };
    const Outcome w = whole(stop("none"));
    const Outcome cut = run(rich(stop("sigint")));
    EXPECT_EQ(cut.report.exit_code, 130);
    EXPECT_EQ(cut.report.outcome, "interrupted");
    Overrides again = rich(stop("none"));
    again.push_back("resume.from=last");
    const Outcome resumed = done(again);
    EXPECT_EQ(resumed.report.run_folder, cut.report.run_folder);
    expect_same(resumed, w);
    std::filesystem::remove_all(folder / "runs");
    std::filesystem::remove_all(folder / "whole");
  }
};

TEST_F(RunResume, F013_AtAnEpochsEnd) {
  const Outcome w = whole();
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    Overrides part = rich({"trainer.max_epochs=" + std::to_string(epoch)});
    // the schedule of three epochs from the start on
    part.push_back("scheduler.t_max=27");
    if (epoch > 1) part.push_back("resume.from=last");
    const Outcome o = done(part);
    ASSERT_THAT(o.all("fit.batch_start"), SizeIs(10));
    EXPECT_EQ(o.all("fit.batch_start").at(0).epoch, epoch - 1);
    EXPECT_EQ(o.all("fit.batch_start").at(0).batch, 0);
    EXPECT_EQ(o.result("/stages/fit/global_step"), std::to_string(epoch * 10));
    if (epoch == 3) expect_same(o, w);
  }
}

TEST_F(RunResume, F174_rpRng_InMidEpochAfterASignal) {
  for (int n : {0, 6, 13}) interrupted_is_whole("fit.batch_end", n);
}

TEST_F(RunResume, F011_InMidWindowTheWindowIsFinishedFirst) {
  for (int n : {3, 5, 8, 9}) interrupted_is_whole("fit.batch_end", n, {"trainer.accumulate_grad_batches=3"});
}

TEST_F(RunResume, InTheValidationAfterAnEpoch) {
  for (int n : {0, 1, 3}) interrupted_is_whole("validate.batch_end", n);
}

TEST_F(RunResume, OnTheLastBatchOfAnEpochAndAtItsEnds) {
  interrupted_is_whole("fit.batch_end", 9);
  interrupted_is_whole("fit.epoch_end", 0);
  interrupted_is_whole("fit.epoch_start", 1);
}

TEST_F(RunResume, B105_F014_FromAFileOfEveryNSteps) {
  // ends by itself at step 16 of 30; the newest file is of step 14, so batches 14 and 15 are done again
  const Overrides files = {
      R"(checkpoint=[{use="torch",every_n_steps=7,save_top_k=-1},{use="torch",save_top_k=0,save_last=true}])"};
  const Outcome w = whole(files);
  Overrides first = rich(files), second = first;
  first.push_back("model.throw_at=16");
  second.push_back("resume.from=last");
  EXPECT_EQ(run(first).report.exit_code, 1);
  const Outcome resumed = done(second);
  ASSERT_THAT(resumed.all("fit.batch_start"), SizeIs(16));
  EXPECT_EQ(resumed.all("fit.batch_start").at(0).epoch, 1);
  EXPECT_EQ(resumed.all("fit.batch_start").at(0).batch, 4);
  EXPECT_EQ(resumed.all("fit.batch_start").at(6).batch, 0) << "the next epoch starts at its beginning";
  expect_same(resumed, w);
}

TEST_F(RunResume, B107_AFileOfAnEpochsLastStepLeadsToItsValidation) {
  const Overrides files = {
      R"(checkpoint=[{use="torch",every_n_steps=10,save_top_k=-1},{use="torch",save_top_k=0,save_last=true}])"};
  const Outcome w = whole(files);
  EXPECT_EQ(
      run(rich({files[0], meddler(R"(event = "validate.start", act = "throw", at = 0)")})).report.exit_code,
      1);
  const Outcome resumed = done(rich({files[0], meddler(R"(event = "validate.start")"), "resume.from=last"}));
  EXPECT_EQ(resumed.all("validate.start").size(), 3u);
  EXPECT_EQ(below(resumed.tree(), "state_dict/"), below(w.tree(), "state_dict/"));
  EXPECT_EQ(resumed.read("memory_c.txt"), w.read("memory_c.txt"));
}

TEST_F(RunResume, AdamsMomentsGoOn) {
  const Overrides adam = {"optimizer.use=adam", "scheduler.use=constant", "data.shuffle=true"};
  auto with = [&](const Overrides& more) {
    Overrides o = adam;
    o.insert(o.end(), more.begin(), more.end());
    return done(o);
  };
  const Outcome w = with({"trainer.max_epochs=2", "run.name=whole"});
  with({"trainer.max_epochs=1"});
  const Outcome resumed = with({"trainer.max_epochs=2", "resume.from=last"});
  EXPECT_EQ(below(resumed.tree(), "optimizer/").size(), 6u) << "two parameters: exp_avg, exp_avg_sq, step";
  for (const char* part : {"state_dict/", "optimizer/"})
    EXPECT_EQ(below(resumed.tree(), part), below(w.tree(), part));
}

TEST_F(RunResume, F030_TheBestKAreThoseOfTheWholeRun) {
  const std::string vals = R"(values = ["5", "3", "4", "2", "6", "1"])";
  const std::string log = meddler(R"(event = "validate.start", act = "log", metric = "val_m", )" + vals);
  const Overrides common = {
      "data.val_samples=2", log,
      R"(checkpoint=[{use="torch",monitor="val_m",mode="min",save_top_k=3,save_last=true}])"};
  auto with = [&](const char* epochs, const char* from) {
    Overrides o = common;
    o.push_back(epochs);
    if (*from) o.push_back(from);
    return done(o);
  };
  const Outcome w = with("trainer.max_epochs=6", "");
  std::filesystem::remove_all(folder / "runs");
  with("trainer.max_epochs=3", "");
  const Outcome resumed = with("trainer.max_epochs=6", "resume.from=last");
  EXPECT_THAT(resumed.files(), ElementsAre("epoch=1-step=8.ckpt", "epoch=3-step=16.ckpt",
                                           "epoch=5-step=24.ckpt", "last.ckpt"));
  EXPECT_EQ(resumed.result("/checkpoints/best/value"), "1.0");
}

TEST_F(RunResume, F031_ckForeign_ARunInAnotherFolderTouchesNoFileOfTheOldOne) {
  namespace fs = std::filesystem;
  done({"trainer.max_epochs=3", R"(checkpoint=[{use="torch",save_top_k=-1,save_last=true}])"});
  const auto there = [&] {
    std::map<std::string, std::pair<fs::file_time_type, std::string>> files;
    for (const auto& e : fs::recursive_directory_iterator(folder / "runs/t"))
      if (e.is_regular_file()) files[e.path()] = {e.last_write_time(), lhost::read_file(e.path())};
    return files;
  };
  const auto before = there();
  const std::string source = folder / "runs/t/version_0/checkpoints/epoch=1-step=8.ckpt";
  ASSERT_EQ(before.count(source), 1u);
  const Outcome o = done({"trainer.max_epochs=6", "run.name=other", "resume.from=\"" + source + "\"",
                          R"(checkpoint=[{use="torch",save_top_k=1}])"});
  EXPECT_THAT(o.files(), ElementsAre("epoch=5-step=24.ckpt"));
  EXPECT_EQ(there(), before);
}

TEST_F(RunResume, BestIsTheBestFile) {
  const Overrides o = {
      "data.val_samples=2", "trainer.max_epochs=3",
      meddler(R"(event = "validate.start", act = "log", metric = "val_m", values = ["2", "1", "3"])"),
      R"(checkpoint=[{use="torch",monitor="val_m",mode="min",save_top_k=1,save_last=true}])"};
  done(o);
  Overrides again = o;
  again.insert(again.end(), {"resume.from=best", "trainer.max_epochs=4"});
  EXPECT_EQ(done(again).all("fit.epoch_start").at(0).epoch, 2);
}

TEST_F(RunResume, F019_ckTotal_GrownMaxEpochsKeepTheScheduleAndSaySo) {
  done({"trainer.max_epochs=1"});
  const Outcome o = done({"trainer.max_epochs=2", "resume.from=last"});
  EXPECT_EQ(o.result("/stages/fit/epochs"), "2");
  EXPECT_THAT(o.log_lines("the schedule keeps the length it was started with, 4 instead of 8 ticks"),
              SizeIs(1));
}

TEST_F(RunResume, AnotherLearningRateIsToldAndOnlyTheCommandLineWins) {
  done({"trainer.max_epochs=1", "scheduler.use=constant", "scheduler.warmup=0"});
  manifest.replace(manifest.find("lr = 0.1"), 8, "lr = 0.7");
  const Overrides two = {"trainer.max_epochs=2", "resume.from=last", "scheduler.use=constant",
                         "scheduler.warmup=0"};
  const Outcome told = done(two);
  EXPECT_EQ(told.all("fit.batch_start").at(0).lr, 0.1);
  EXPECT_THAT(told.log_lines("learning rate 0.1 is used instead of the manifest's 0.7"), SizeIs(1));
  Overrides set = two;
  set[0] = "trainer.max_epochs=3";
  set.push_back("optimizer.lr=0.7");
  const Outcome changed = done(set);
  EXPECT_EQ(changed.all("fit.batch_start").at(0).lr, 0.7);
  EXPECT_THAT(changed.log_lines("learning rate"), SizeIs(1));  // that of the run before
}

TEST_F(RunResume, F017_ARunThatReachedItsEndSaysSoAndWritesNoCheckpoint) {
  done();
  const std::string before = lhost::read_file(folder / "runs/t/version_0/checkpoints/last.ckpt");
  const Outcome o = done({"resume.from=last"});
  EXPECT_TRUE(o.all("fit.batch_start").empty());
  EXPECT_THAT(o.log_lines("max_epochs = 1"), SizeIs(1));
  EXPECT_EQ(o.read("checkpoints/last.ckpt"), before);
}

TEST_F(RunResume, F017_ATargetBehindTheFileIsRefused) {
  done({"trainer.max_epochs=3"});
  for (const char* less : {"trainer.max_epochs=2", "trainer.max_steps=11"}) {
    const Outcome o = run({"trainer.max_epochs=-1", less, "resume.from=last"});
    EXPECT_EQ(o.report.exit_code, 2) << less;
    EXPECT_THAT(o.report.error, HasSubstr("epoch 3, step 12"));
  }
}

TEST_F(RunResume, AutoStartsAnewOnlyWhenThereIsNothing) {
  EXPECT_EQ(done({"resume.from=auto"}).result("/stages/fit/epochs"), "1");
  EXPECT_EQ(done({"resume.from=auto", "trainer.max_epochs=2"}).all("fit.epoch_start").size(), 1u);
}

TEST_F(RunResume, B103_LastOrBestWithoutAFileIsAnError) {
  for (const char* from : {"last", "best", "nowhere.ckpt"}) {
    const Outcome o = run({std::string("resume.from=") + from});
    EXPECT_EQ(o.report.exit_code, 2) << from;
    EXPECT_FALSE(std::filesystem::exists(folder / "runs/t/version_0"));
  }
}

TEST_F(RunResume, F150_F161_EveryMismatchIsListedAndNothingIsLoaded) {
  done({"model.unused=true"});
  const std::string file = folder / "runs/t/version_0/checkpoints/last.ckpt";
  const Outcome o =
      run({"resume.from=" + file, "model.inputs=3", "data.features=3", "model.units=true", "run.name=other"});
  EXPECT_EQ(o.report.exit_code, 1);
  for (const char* part :
       {"missing     scale.weight", "unexpected  unused.weight",
        "mismatched  linear.weight: the file has [1, 2], the model [1, 3]", "strict = false"})
    EXPECT_THAT(o.report.error, HasSubstr(part));
  EXPECT_TRUE(o.all("fit.start").empty());
}

TEST_F(RunResume, NotStrictTakesWhatFits) {
  const std::string file = folder / "w.ckpt";
  write_state_dict(file, {{"linear.weight", {3, 4}}, {"other", {1}}});
  const Outcome o = done({"resume.from=" + file, "resume.strict=false", "optimizer.lr=0"});
  expect_near(o.weights(), {3, 4, 0});
  EXPECT_THAT(o.log_lines("missing     linear.bias"), SizeIs(1));
  EXPECT_THAT(o.log_lines("unexpected  other"), SizeIs(1));
}

TEST_F(RunResume, ThatFailsLeavesTheRunsRecordsAsTheyWere) {
  const Outcome first = done({"trainer.max_epochs=1"});
  const std::string result = first.read("result.json"), resolved = first.read("manifest.resolved.toml");
  const Outcome second = run({"resume.from=last", "model.inputs=3", "data.features=3"});
  EXPECT_EQ(second.report.exit_code, 1);
  EXPECT_EQ(first.read("result.json"), result);
  EXPECT_EQ(first.read("manifest.resolved.toml"), resolved);
  EXPECT_FALSE(std::filesystem::exists(folder / "runs/t/version_1"));
}

TEST_F(RunResume, NotStrictTakesTheOptimizersStateThatFits) {
  done({"optimizer.momentum=0.9", "trainer.max_epochs=1"});
  const std::string file = folder / "runs/t/version_0/checkpoints/last.ckpt";
  const Overrides wider = {"resume.from=" + file, "model.inputs=3",         "data.features=3",
                           "run.name=other",      "optimizer.momentum=0.9", "trainer.max_epochs=2"};
  EXPECT_EQ(run(wider).report.exit_code, 1);
  Overrides loose = wider;
  loose.push_back("resume.strict=false");
  const Outcome o = done(loose);
  EXPECT_THAT(o.log_lines("the optimizer's state of 1 parameters does not fit"), SizeIs(1));
}

TEST_F(RunResume, AnotherOptimizerIsTold) {
  done({"trainer.max_epochs=1", R"(optimizer={use="adam",lr=0.1})"});
  const Outcome o =
      done({"trainer.max_epochs=2", R"(optimizer={use="sgd",lr=0.1,momentum=0.9})", "resume.from=last"});
  EXPECT_THAT(o.log_lines("does not hold all state of the optimizer \"sgd\": 2 tensors start anew"),
              SizeIs(1));
}

TEST_F(RunResume, ABareStateDictGivesWeightsForANewRun) {
  const std::string file = folder / "w.ckpt";
  write_state_dict(file, {{"linear.weight", {3, 4}}, {"linear.bias", {5}}});
  const Outcome o = done({"resume.from=" + file, "optimizer.lr=0"});
  expect_near(o.weights(), {3, 4, 5});
  EXPECT_EQ(o.result("/stages/fit/global_step"), "4");
  EXPECT_THAT(o.log_lines("holds weights only"), SizeIs(1));
}

TEST_F(RunResume, B098_AWeightsOnlyFileStartsCountersAnew) {
  done({R"(checkpoint=[{use="torch",save_weights_only=true}])"});
  const Outcome o = done(
      {"resume.from=" + (folder / "runs/t/version_0/checkpoints/epoch=0-step=4.ckpt"), "run.name=other"});
  EXPECT_EQ(o.all("fit.batch_start").at(0).step, 0);
  EXPECT_EQ(o.result("/stages/fit/epochs"), "1");
}

TEST_F(RunResume, ADamagedFileIsAnErrorNotACrash) {
  done();
  const std::string good = lhost::read_file(folder / "runs/t/version_0/checkpoints/last.ckpt");
  for (const std::string& bad : {good.substr(0, good.size() / 2), std::string(1000, 'x'), std::string()}) {
    lhost::write_atomically(folder / "bad.ckpt", bad);
    const Outcome o = run({"resume.from=" + (folder / "bad.ckpt")});
    EXPECT_EQ(o.report.exit_code, 1);
    EXPECT_THAT(o.report.error, Not(IsEmpty()));
  }
}

TEST_F(RunResume, OtherDataThanTheFileWasWrittenWithIsRefused) {
  run(rich({meddler(R"(act = "sigint", at = 7)")}));  // after batch 8 of 10
  const Outcome o = run(rich({meddler(R"(act = "none")"), "resume.from=last", "data.samples=10"}));
  EXPECT_EQ(o.report.exit_code, 2);
  EXPECT_THAT(o.report.error, HasSubstr("after batch 8 of an epoch that now has 5 batches"));
}

TEST_F(RunResume, TheCheckBeforeTrainingIsLeftOut) {
  done({"data.val_samples=2"});
  const Outcome o = done(
      {"data.val_samples=2", "trainer.num_sanity_val_steps=2", "resume.from=last", "trainer.max_epochs=2"});
  for (const Event& e : o.events) EXPECT_FALSE(e.sanity);
}

TEST_F(RunResume, F119_esState_EarlyStoppingRemembersHowLongItWaits) {
  const Overrides o = {"data.val_samples=2",
                       meddler(R"(event = "validate.start", act = "log", metric = "val_m", values = ["1"])"),
                       R"(callback+={use="early_stopping", monitor="val_m", mode="min", patience=3})"};
  auto with = [&](const Overrides& more) {
    Overrides all = o;
    all.insert(all.end(), more.begin(), more.end());
    return done(all);
  };
  with({"trainer.max_epochs=2"});
  EXPECT_EQ(with({"trainer.max_epochs=10", "resume.from=last"}).result("/stages/fit/epochs"), "4");
}

}  // namespace
}  // namespace run_test
