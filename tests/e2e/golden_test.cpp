// Training equals PyTorch: 20 steps of each case of tests/golden/training from the same weights give the same losses
// and the same final state_dict. make.py there made the expected numbers.
#include "e2e/checkpoint_file.hpp"
#include "lhost/runtime.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

using nlohmann::json;

const std::string kGolden = LHOST_TEST_SOURCE "/tests/golden/training/";

struct Numbers {
  const char *precision, *dtype;
  double tolerance;  // of the scale of a tensor: its greatest absolute value
};
const Numbers kFloat32 = {"32-true", "float32", 1e-6}, kFloat64 = {"64-true", "float64", 1e-12};

using e2e::difference;
using e2e::File;
using e2e::numbers;

std::vector<double> logged_losses(const std::string& run_folder) {
  std::ifstream in(run_folder + "/metrics.jsonl");
  std::vector<double> losses;
  for (std::string line; std::getline(in, line);)
    losses.push_back(json::parse(line).at("metrics").at("loss"));
  return losses;
}

void expect_same_losses(const std::vector<double>& found, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t step = 0; step < found.size(); ++step)
    EXPECT_NEAR(found[step], expected[step], tolerance * std::abs(expected[step])) << "step " << step + 1;
}

void expect_same_state(const File& found, const File& expected, const std::string& name, double tolerance) {
  const auto leaves = expected.below(name);
  ASSERT_FALSE(leaves.empty());
  EXPECT_EQ(found.below("state_dict").size(), leaves.size());
  for (const lhost::TreeLeaf* leaf : leaves) {
    const std::string& key = leaf->path.back();
    const lhost::TreeLeaf* ours = found.find({"state_dict", key});
    ASSERT_TRUE(ours) << key;
    ASSERT_EQ(ours->shape, leaf->shape) << key;
    ASSERT_EQ(std::pair(ours->dtype.code, ours->dtype.bits), std::pair(leaf->dtype.code, leaf->dtype.bits))
        << key;
    EXPECT_LE(difference(numbers(*ours), numbers(*leaf)), leaf->dtype.code == LH_DT_INT ? 0 : tolerance)
        << key;
  }
}

void expect_same_training(const std::string& model, const Numbers& n, int ranks = 1) {
  const lhost_test::TempDir dir;
  const json cases = json::parse(std::ifstream(kGolden + model + ".json"));
  const std::string files = kGolden + model + "-" + n.dtype;
  ASSERT_FALSE(cases.empty());
  for (const auto& [name, expected] : cases.items()) {
    SCOPED_TRACE(model + ", " + n.dtype + ", " + name);
    lhost::RunOptions o;
    o.prefix = LHOST_TEST_BIN "/..";
    o.manifest = dir.write(name + ".toml", "extends = \"" + kGolden + model + ".toml\"\n" +
                                               expected.at("settings").get<std::string>() + "\n");
    o.overrides = {"run.dir=" + dir / "runs", std::string("precision.use=") + n.precision,
                   "resume.from=" + files + "-initial.pt"};
    const bool large =
        expected.at("settings").get<std::string>().find("batch_size = 200") != std::string::npos;
    if (ranks > 1)
      for (const std::string& more :
           {std::string("strategy.use=ddp"), "trainer.devices=" + std::to_string(ranks),
            "data.batch_size=" + std::to_string((large ? 200 : 32) / ranks),
            std::string("trainer.sync_batchnorm=true")})
        o.overrides.push_back(more);
    const lhost::RunReport r = lhost::run_manifest(o);
    ASSERT_EQ(r.exit_code, 0) << r.error;
    expect_same_losses(logged_losses(r.run_folder), expected.at(n.dtype), n.tolerance);
    expect_same_state(File(r.run_folder + "/checkpoints/final.ckpt"), File(files + "-final.pt"), name,
                      n.tolerance);
  }
}

TEST(Golden, MlpInFloat32EqualsPyTorch) { expect_same_training("mlp", kFloat32); }
TEST(Golden, MlpInFloat64EqualsPyTorch) { expect_same_training("mlp", kFloat64); }
TEST(Golden, F158_cxDdp_MlpOnTwoRanksEqualsPyTorch) {
  expect_same_training("mlp", kFloat32, 2);
  expect_same_training("mlp", kFloat64, 2);
}
TEST(Golden, ConvnetOnTwoRanksWithSyncBatchnormEqualsPyTorch) {
  expect_same_training("convnet", kFloat64, 2);
}
TEST(Golden, ConvnetInFloat32EqualsPyTorch) { expect_same_training("convnet", kFloat32); }
TEST(Golden, ConvnetInFloat64EqualsPyTorch) { expect_same_training("convnet", kFloat64); }

}  // namespace
