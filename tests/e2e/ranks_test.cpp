// Ranks as processes, on digits: N ranks give bit for bit the weights of the virtual world (plugins/virtual_world.c), and
// within rounding those of one process on the joined batch.
#include "e2e/checkpoint_file.hpp"
#include "lhost/runtime.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace {

using e2e::File;
using Overrides = std::vector<std::string>;

const char* const kManifest = R"(
extends = ")" LHOST_TEST_SOURCE R"(/configs/digits.toml"
[run]
name = "t"
stages = ["fit"]
[trainer]
max_epochs = 2
num_sanity_val_steps = 0
[model]
dropout = 0.0
[[checkpoint]]
use = "torch"
save_top_k = 0
save_last = true
)";

struct RankProcesses : testing::Test {
  lhost::RunReport run(const std::string& name, Overrides overrides) {
    lhost::RunOptions o;
    o.prefix = LHOST_TEST_BIN "/..";
    o.plugin_dirs = {LHOST_TEST_FIXTURES "/e2e"};
    o.manifest = dir.write("t.toml", kManifest);
    o.overrides = std::move(overrides);
    o.overrides.push_back("run.dir=\"" + dir / "runs" + "\"");
    o.overrides.push_back("run.name=\"" + name + "\"");
    lhost::RunReport r = lhost::run_manifest(o);
    EXPECT_EQ(r.exit_code, 0) << name << ": " << r.error;
    return r;
  }
  static File last(const lhost::RunReport& r) { return File(r.run_folder + "/checkpoints/last.ckpt"); }

  lhost::RunReport on_ranks(int64_t ranks, int64_t accumulate, Overrides more) {
    more.push_back("trainer.devices=" + std::to_string(ranks));
    more.push_back("trainer.accumulate_grad_batches=" + std::to_string(accumulate));
    more.push_back("data.batch_size=16");
    return run("ranks", more);
  }
  lhost::RunReport virtual_world(int64_t ranks, int64_t accumulate, Overrides more) {
    const std::string n = std::to_string(ranks);
    more.push_back("strategy={use = \"virtual_world\", ranks = " + n + "}");
    more.push_back("precision={use = \"virtual_world\", ranks = " + n + "}");
    more.push_back("trainer.accumulate_grad_batches=" + std::to_string(ranks * accumulate));
    more.push_back("data.batch_size=16");
    return run("virtual", more);
  }
  lhost_test::TempDir dir;
};

void expect_equal_bits(const File& found, const File& expected) {
  for (const char* part : {"state_dict", "optimizer"})
    for (const lhost::TreeLeaf* leaf : expected.below(part)) {
      const lhost::TreeLeaf* ours = found.find(leaf->path);
      ASSERT_TRUE(ours) << leaf->path.back();
      ASSERT_EQ(ours->shape, leaf->shape);
      EXPECT_EQ(std::memcmp(ours->data, leaf->data, e2e::elements(*leaf) * leaf->dtype.bits / 8u), 0)
          << part << " " << leaf->path[1];
    }
}

void expect_near(const File& found, const File& expected, double tolerance) {
  for (const lhost::TreeLeaf* leaf : expected.below("state_dict")) {
    const lhost::TreeLeaf* ours = found.find(leaf->path);
    ASSERT_TRUE(ours) << leaf->path.back();
    EXPECT_LE(e2e::difference(e2e::numbers(*ours), e2e::numbers(*leaf)), tolerance) << leaf->path.back();
  }
}

// 1 293 samples: the last global batch is uneven for every number of ranks.
TEST_F(RankProcesses, EqualTheVirtualWorldBitForBit) {
  for (int64_t ranks : {2, 3, 4})
    for (int64_t accumulate : {1, 3}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, windows of " + std::to_string(accumulate));
      const Overrides clip = {"trainer.gradient_clip_val=0.5"};
      Overrides ddp = clip;
      ddp.emplace_back(ranks == 3 ? "strategy.use=ddp_spawn" : "strategy.use=ddp");
      expect_equal_bits(last(on_ranks(ranks, accumulate, ddp)), last(virtual_world(ranks, accumulate, clip)));
    }
}

TEST_F(RankProcesses, F065_ddParity_EqualOneProcessOnTheJoinedBatch) {
  const Overrides sgd = {"optimizer={use = \"sgd\", lr = 0.05, momentum = 0.9, weight_decay = 1e-4}"};
  for (int64_t ranks : {2, 3}) {
    Overrides joined = sgd, ddp = sgd;
    joined.push_back("data.batch_size=" + std::to_string(16 * ranks));
    ddp.emplace_back("strategy.use=ddp");
    expect_near(last(on_ranks(ranks, 1, ddp)), last(run("joined", joined)), 1e-5);
    joined.emplace_back("precision.use=64-true");
    ddp.emplace_back("precision.use=64-true");
    expect_near(last(on_ranks(ranks, 1, ddp)), last(run("joined", joined)), 1e-12);
  }
}

TEST_F(RankProcesses, SpawnGivesTheBitsOfExec) {
  expect_equal_bits(last(on_ranks(2, 1, {"strategy.use=ddp"})),
                    last(on_ranks(2, 1, {"strategy.use=ddp_spawn"})));
}

TEST_F(RankProcesses, BucketsAndBackendOrder) {
  const File whole = last(on_ranks(2, 1, {"strategy.use=ddp"}));
  expect_equal_bits(
      last(on_ranks(2, 1, {"strategy.use=ddp", "strategy.bucket_cap=1KiB", "strategy.first_bucket=1"})),
      whole);
  expect_near(last(on_ranks(2, 1, {"strategy.use=ddp", "collective.order=backend"})), whole, 1e-6);
}

TEST_F(RankProcesses, F069_ddSpawn_ReportOfAnEmbeddedRunHasWhatRankZeroKnows) {
  const lhost::RunReport r = on_ranks(2, 1,
                                      {"strategy.use=ddp_spawn", "run.stages=[\"fit\", \"test\"]",
                                       "checkpoint[0].save_top_k=1", "checkpoint[0].monitor=val_loss"});
  EXPECT_EQ(r.outcome, "done");
  for (const char* metric : {"loss", "val_loss", "val_acc", "test_acc"})
    EXPECT_EQ(r.metrics.count(metric), 1u) << metric;
  EXPECT_NE(r.best_checkpoint, "");
}

// Activations of 4 MiB come and go in every step. Given back to the system, each step faults 3 000 pages in again.
TEST_F(RankProcesses, KeepTheirMemoryFromStepToStep) {
  const auto faults_of = [&](int64_t steps, const std::string& strategy) {
    const auto faults = [] {
      rusage children{};
      getrusage(RUSAGE_CHILDREN, &children);
      return children.ru_minflt;
    };
    const auto before = faults();
    run("ranks", {"trainer.devices=2", "strategy.use=" + strategy, "trainer.max_epochs=-1",
                  "trainer.max_steps=" + std::to_string(steps), "trainer.limit_val_batches=0",
                  "model={use = \"convnet\", widths = [64, 64]}", "data.batch_size=256", "checkpoint=[]",
                  "logger=[]"});
    return faults() - before;
  };
  for (const char* strategy : {"ddp", "ddp_spawn"})
    EXPECT_LT((faults_of(22, strategy) - faults_of(2, strategy)) / (20 * 2), 400)
        << strategy;  // on two ranks
}

}  // namespace
