// Which checkpoint files there are after a run: names, the best k, last, cadence, failures.
#include "run_support.hpp"

#include "base/files.hpp"

#include <filesystem>

namespace run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A policy, and a callback that logs `values` as val_m, one at each validation.
struct RunCheckpoint : Run {
  RunCheckpoint() {
    // B = 4 batches an epoch, one of validation
    manifest.replace(manifest.find("val_samples = 0"), 15, "val_samples = 2");
  }
  static std::string policy(const std::string& keys) {
    return "checkpoint=[{use = \"torch\"" + (keys.empty() ? "" : ", " + keys) + "}]";
  }
  static std::string values(const std::string& list) {
    return meddler(R"(event = "validate.start", act = "log", metric = "val_m", values = [)" + list + "]");
  }
  static std::string epochs(int n) { return "trainer.max_epochs=" + std::to_string(n); }
  // epochs kept by a policy that monitors val_m
  std::vector<std::string> kept(const std::string& list, int n, const std::string& keys) {
    return done({epochs(n), values(list), policy(R"(filename = "{epoch}", monitor = "val_m", )" + keys)})
        .files();
  }
};

TEST_F(RunCheckpoint, B085_ByDefaultOnlyTheNewestEpochIsKept) {
  const Outcome o = done({epochs(5), policy("")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=4-step=20.ckpt"));
  EXPECT_EQ(o.report.best_checkpoint, o.report.run_folder + "/checkpoints/epoch=4-step=20.ckpt");
}

TEST_F(RunCheckpoint, B086_TheBestKByMin) {
  const std::string m = R"("5", "3", "4", "2", "6")", min = R"(mode = "min", save_top_k = )";
  EXPECT_THAT(kept(m, 5, min + "-1"),
              ElementsAre("epoch=0.ckpt", "epoch=1.ckpt", "epoch=2.ckpt", "epoch=3.ckpt", "epoch=4.ckpt"));
  EXPECT_THAT(kept(m, 5, min + "0"), IsEmpty());
  EXPECT_THAT(kept(m, 5, min + "1"), ElementsAre("epoch=3.ckpt"));
  EXPECT_THAT(kept(m, 5, min + "2"), ElementsAre("epoch=1.ckpt", "epoch=3.ckpt"));
  EXPECT_THAT(kept(m, 5, min + "3"), ElementsAre("epoch=1.ckpt", "epoch=2.ckpt", "epoch=3.ckpt"));
}

TEST_F(RunCheckpoint, B087_TheBestKByMax) {
  EXPECT_THAT(kept(R"("5", "3", "4", "2", "6")", 5, R"(mode = "max", save_top_k = 2)"),
              ElementsAre("epoch=0.ckpt", "epoch=4.ckpt"));
}

TEST_F(RunCheckpoint, B089_F025_NaNIsWorseThanAnything) {
  const std::string min = R"(mode = "min", save_top_k = )";
  EXPECT_THAT(kept(R"("nan", "2", "3")", 3, min + "1"), ElementsAre("epoch=1.ckpt"));
  EXPECT_THAT(kept(R"("2", "nan", "3")", 3, min + "2"), ElementsAre("epoch=0.ckpt", "epoch=2.ckpt"));
  EXPECT_THAT(kept(R"("nan", "0.5", "nan", "0.4")", 4, min + "1"), ElementsAre("epoch=3.ckpt"));
  EXPECT_THAT(kept(R"("nan", "0.5", "nan", "0.4")", 4, min + "2"),
              ElementsAre("epoch=1.ckpt", "epoch=3.ckpt"));
  EXPECT_THAT(kept(R"("nan", "0.5", "nan")", 3, R"(mode = "max", save_top_k = 1)"),
              ElementsAre("epoch=1.ckpt"));
}

TEST_F(RunCheckpoint, F026_OfEqualsTheOlderStays) {
  EXPECT_THAT(kept(R"("0.9", "1", "1")", 3, R"(mode = "max", save_top_k = 1)"), ElementsAre("epoch=1.ckpt"));
  EXPECT_THAT(kept(R"("1", "1", "1", "1")", 4, R"(mode = "max", save_top_k = 2)"),
              ElementsAre("epoch=0.ckpt", "epoch=1.ckpt"));
}

TEST_F(RunCheckpoint, F027_AMonitorWithoutAKnownDirectionIsRefused) {
  const Outcome o = run({values("\"1\""), policy(R"(monitor = "val_m")")});
  EXPECT_EQ(o.report.exit_code, 2);
  EXPECT_THAT(o.report.error, HasSubstr("mode"));
  EXPECT_FALSE(started());
}

TEST_F(RunCheckpoint, TheBestFileIsInReportResultAndIndex) {
  const Outcome o = done({epochs(4), values(R"("5", "3", "2", "4")"),
                          policy(R"(monitor = "val_m", mode = "min", save_top_k = 2)")});
  const std::string best = "checkpoints/epoch=2-step=12.ckpt";
  EXPECT_EQ(o.report.best_checkpoint, o.report.run_folder + "/" + best);
  EXPECT_EQ(o.result("/checkpoints/best/path"), o.report.run_folder + "/" + best);
  EXPECT_EQ(o.result("/checkpoints/best/monitor"), "val_m");
  EXPECT_EQ(o.result("/checkpoints/best/value"), "2.0");
  EXPECT_EQ(o.result("/metrics/best/val_m"), "2.0");
  EXPECT_EQ(o.result("/metrics/last/val_m"), "4.0");
  EXPECT_THAT(o.read("checkpoints.json"), HasSubstr("\"best\": \"" + best + "\""));
}

TEST_F(RunCheckpoint, F033_ckAll_WhenAllFilesAreKeptTheBestIsStillKnown) {
  const Outcome o = done({epochs(3), values(R"("0.5", "0.25", "0.375")"),
                          policy(R"(monitor = "val_m", mode = "min", save_top_k = -1)")});
  EXPECT_EQ(o.files().size(), 3u);
  EXPECT_EQ(o.report.best_checkpoint, o.report.run_folder + "/checkpoints/epoch=1-step=8.ckpt");
  EXPECT_EQ(o.result("/checkpoints/best/value"), "0.25");
}

TEST_F(RunCheckpoint, B090_AFixedNameIsNumbered) {
  EXPECT_THAT(done({epochs(3), policy(R"(filename = "m", save_top_k = -1)")}).files(),
              ElementsAre("m-v1.ckpt", "m-v2.ckpt", "m.ckpt"));
  EXPECT_EQ(kept("\"3\", \"2\", \"1\"", 3, R"(mode = "min", save_top_k = 3)").size(), 3u);
}

TEST_F(RunCheckpoint, AFixedNameOfTheOneFileThatIsKeptStays) {
  const Outcome best = done({epochs(3), values(R"("3", "2", "1")"),
                             policy(R"(filename = "best", monitor = "val_m", mode = "min")")});
  EXPECT_THAT(best.files(), ElementsAre("best.ckpt"));
  EXPECT_EQ(best.tree("best.ckpt").at("lhost/counters/global_step"), "12");
  EXPECT_THAT(done({epochs(3), policy(R"(filename = "newest", save_last = "link")")}).files(),
              ElementsAre("last.ckpt", "newest.ckpt"));
}

TEST_F(RunCheckpoint, NamesExpandMetricsWithTheirNameAndFormat) {
  const Outcome o =
      done({epochs(4), values(R"("0.3249")"), policy(R"(filename = "{epoch:02d}-{val_m:.2f}-{step:04d}")")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=03-val_m=0.32-step=0016.ckpt"));
}

TEST_F(RunCheckpoint, ASlashInAMetricsNameMakesNoFolder) {
  const Outcome o =
      done({meddler(R"(event = "validate.start", act = "log", metric = "val/m", values = ["1"])"),
            policy(R"(filename = "{epoch}-{val/m:.1f}")")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=0-val_m=1.0.ckpt"));
}

TEST_F(RunCheckpoint, ASlashInAPatternMakesAFolder) {
  EXPECT_THAT(done({policy(R"(filename = "a/{epoch}")")}).files("checkpoints/a"),
              ElementsAre("epoch=0.ckpt"));
  EXPECT_THAT(done({policy(R"(dir = "x")")}).files("x"), ElementsAre("epoch=0-step=4.ckpt"));
}

TEST_F(RunCheckpoint, B093_EveryTwoEpochs) {
  EXPECT_THAT(done({epochs(5), policy("every_n_epochs = 2, save_top_k = -1")}).files(),
              ElementsAre("epoch=1-step=8.ckpt", "epoch=3-step=16.ckpt"));
}

TEST_F(RunCheckpoint, B093_AMonitoredFileIsWrittenWhenItsMetricIsNew) {
  const Outcome o = done({epochs(4), "trainer.check_val_every_n_epoch=2", values(R"("2", "1")"),
                          policy(R"(monitor = "val_m", mode = "min", save_top_k = -1)")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=1-step=8.ckpt", "epoch=3-step=16.ckpt"));
}

TEST_F(RunCheckpoint, B094_EverySixStepsOverEpochsAndLast) {
  EXPECT_THAT(
      done({epochs(5), policy("every_n_steps = 6, save_top_k = -1, save_last = true")}).files(),
      ElementsAre("epoch=1-step=6.ckpt", "epoch=2-step=12.ckpt", "epoch=4-step=18.ckpt", "last.ckpt"));
}

TEST_F(RunCheckpoint, F007_CadenceCountsOptimizerStepsNotBatches) {
  const Outcome o = done(
      {"data.samples=32", "trainer.accumulate_grad_batches=4", policy("every_n_steps = 2, save_top_k = -1")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=0-step=2.ckpt", "epoch=0-step=4.ckpt"));
}

TEST_F(RunCheckpoint, AStepPolicyWithAMonitorWaitsForTheFirstValidation) {
  const Outcome o = done({epochs(2), values(R"("2", "1")"),
                          policy(R"(every_n_steps = 2, monitor = "val_m", mode = "min", save_top_k = -1)")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=1-step=6.ckpt", "epoch=1-step=8.ckpt"));
}

TEST_F(RunCheckpoint, B010_ACutEpochWithoutValidationRanksNothing) {
  const std::string monitored = policy(R"(monitor = "val_m", mode = "min", save_top_k = -1)");
  EXPECT_THAT(done({"trainer.max_steps=1", values(R"("2")"), monitored}).files(), IsEmpty());
  EXPECT_THAT(done({epochs(-1), "trainer.max_steps=6", values(R"("2")"), monitored}).files(),
              ElementsAre("epoch=0-step=4.ckpt"));
}

TEST_F(RunCheckpoint, B097_LastAsALinkIsRelativeAndPointsToTheNewestFile) {
  for (const char* k : {"-1", "1"}) {
    const Outcome o = done({epochs(3), policy("save_last = \"link\", save_top_k = " + std::string(k))});
    const std::filesystem::path last = o.report.run_folder + "/checkpoints/last.ckpt";
    ASSERT_TRUE(std::filesystem::is_symlink(last));
    EXPECT_EQ(std::filesystem::read_symlink(last), "epoch=2-step=12.ckpt");
  }
}

TEST_F(RunCheckpoint, F029_LastAsALinkIsTheNewestStateAlsoWhenThatIsNotAmongTheBest) {
  const Outcome o = done({epochs(3), values(R"("1", "2", "3")"),
                          policy(R"(save_last = "link", monitor = "val_m", mode = "min")")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=0-step=4.ckpt", "last.ckpt"));
  EXPECT_EQ(o.tree().at("lhost/counters/global_step"), "12");
  EXPECT_EQ(o.tree("epoch=0-step=4.ckpt").at("lhost/counters/global_step"), "4")
      << "the link's old target is untouched";
}

TEST_F(RunCheckpoint, LastAsACopyHoldsTheNewestState) {
  const Outcome o = done({epochs(3), policy("save_last = true")});
  EXPECT_THAT(o.files(), ElementsAre("epoch=2-step=12.ckpt", "last.ckpt"));
  EXPECT_EQ(below(o.tree(), "state_dict/"), below(o.tree("epoch=2-step=12.ckpt"), "state_dict/"));
  EXPECT_EQ(o.result("/checkpoints/last"), o.report.run_folder + "/checkpoints/last.ckpt");
}

TEST_F(RunCheckpoint, SeveralPoliciesWorkSideBySide) {
  const Outcome o = done(
      {epochs(3), values(R"("1", "2", "3")"),
       R"(checkpoint=[{use="torch",monitor="val_m",mode="min",filename="best"},{use="torch",every_n_steps=5,save_top_k=-1},)"
       R"({use="torch",save_top_k=0,save_last=true}])"});
  EXPECT_THAT(o.files(),
              ElementsAre("best.ckpt", "epoch=1-step=5.ckpt", "epoch=2-step=10.ckpt", "last.ckpt"));
}

TEST_F(RunCheckpoint, B098_AWeightsOnlyFileHasNoStateForResuming) {
  const Outcome o = done({"optimizer.momentum=0.9", policy("save_weights_only = true")});
  const Tree tree = o.tree("epoch=0-step=4.ckpt");
  EXPECT_EQ(below(tree, "state_dict/").size(), 2u);
  EXPECT_THAT(below(tree, "optimizer/"), IsEmpty());
  EXPECT_THAT(below(tree, "lhost/counters"), IsEmpty());
  EXPECT_EQ(
      below(done({"optimizer.momentum=0.9", policy("")}).tree("epoch=0-step=4.ckpt"), "optimizer/").size(),
      4u);
}

TEST_F(RunCheckpoint, AliasesAndBuffersAreInTheStateDictAsInPython) {
  const Tree tree = done({"model.tied=true", "model.count=true"}).tree();
  EXPECT_EQ(tree.at("state_dict/tied.weight"), tree.at("state_dict/linear.weight"));
  EXPECT_EQ(tree.at("state_dict/count"), "tensor0:64[]0400000000000000");
}

TEST_F(RunCheckpoint, B099_AFailureSavesOnlyWhenAskedTo) {
  const Outcome no = run({"model.throw_at=2", policy("save_on_exception = false")});
  EXPECT_THAT(no.files(), IsEmpty());
  const Outcome yes = run({"model.throw_at=2", policy("save_on_exception = true")});
  EXPECT_THAT(yes.files(), ElementsAre("exception.ckpt"));
  EXPECT_EQ(yes.tree("exception.ckpt").at("lhost/counters/global_step"), "2");
}

TEST_F(RunCheckpoint, ACheckpointEventNamesTheFinishedFile) {
  const Outcome o = done({epochs(2), policy("save_top_k = -1")});
  const auto events = o.all("fit.checkpoint");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].checkpoint, o.report.run_folder + "/checkpoints/epoch=1-step=8.ckpt");
}

TEST_F(RunCheckpoint, AnUnknownMonitorEndsTheRunAndListsWhatThereIs) {
  const Outcome early =
      run({"trainer.num_sanity_val_steps=1", policy(R"(monitor = "val_los", mode = "min")")});
  EXPECT_EQ(early.report.exit_code, 1);
  EXPECT_TRUE(early.all("fit.batch_start").empty()) << "seen before training";
  const Outcome late = run({policy(R"(monitor = "acc", mode = "max")")});
  EXPECT_EQ(late.report.exit_code, 1);
  EXPECT_THAT(late.report.error, testing::AllOf(HasSubstr("\"acc\""), HasSubstr("loss, val_loss, val_acc")));
}

TEST_F(RunCheckpoint, TheManifestOfTheRunIsInTheFile) {
  const Outcome o = done({"optimizer.lr=0.25"});
  EXPECT_THAT(o.tree().at("lhost/manifest"), HasSubstr("lr = 0.25"));
  EXPECT_EQ(o.tree().at("lhost/manifest"), o.read("manifest.resolved.toml"));
}

TEST_F(RunCheckpoint, LeftoversOfAKilledWriterAreRemoved) {
  const std::string old = folder / "runs/t/version_0/checkpoints";
  const Outcome first = done();
  std::ofstream(old + "/x.ckpt.lhost-tmp-4194305") << "half";  // no such process
  std::filesystem::last_write_time(old + "/x.ckpt.lhost-tmp-4194305",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const Outcome second = done({"resume.from=last", "trainer.max_epochs=2"});
  EXPECT_EQ(second.report.run_folder, first.report.run_folder);
  EXPECT_THAT(second.files(), ElementsAre("last.ckpt"));
}

}  // namespace
}  // namespace run_test
