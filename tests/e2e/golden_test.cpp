// Training equals PyTorch: 20 steps of each case of tests/golden/training from the same weights give the same losses
// and the same final state_dict. make.py there made the expected numbers.
#include "assembly/execute.hpp"
#include "lhost/runtime.hpp"
#include "support/temp_dir.hpp"
#include "train/checkpoint_tree.hpp"

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

// A file of torch.save, read by the installed checkpointer.
class File {
 public:
  explicit File(const std::string& path) : engine_(lhost::start_engine("")), tree_(engine_) {
    static const lhost::Checkpointer torch = [] {
      lhost::Selection s;
      s.kind = "checkpointer";
      s.name = "torch";
      s.path = LHOST_TEST_PLUGINS "/checkpointer/torch.so";
      return lhost::Checkpointer(lhost::create_component(s, nullptr));
    }();
    tree_.load(torch, path);
  }
  std::vector<const lhost::TreeLeaf*> below(const std::string& key) const { return tree_.below({key}); }
  const lhost::TreeLeaf* find(const lhost::TreePath& path) const { return tree_.find(path); }

 private:
  lhost::Engine engine_;
  lhost::CheckpointTree tree_;
};

std::vector<double> numbers(const lhost::TreeLeaf& leaf) {
  int64_t n = 1;
  for (int64_t extent : leaf.shape) n *= extent;
  const auto as_double = [&](auto type) {
    std::vector<decltype(type)> v(static_cast<size_t>(n));
    std::memcpy(v.data(), leaf.data, v.size() * sizeof type);
    return std::vector<double>(v.begin(), v.end());
  };
  if (leaf.dtype.code == LH_DT_INT) return as_double(int64_t{});
  return leaf.dtype.bits == 64 ? as_double(double{}) : as_double(float{});
}

// Greatest difference of two lists over the greatest absolute value of the expected one; NaN counts as infinite.
double difference(const std::vector<double>& found, const std::vector<double>& expected) {
  double scale = 0, most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double d = std::abs(found[i] - expected[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
    scale = std::max(scale, std::abs(expected[i]));
  }
  return most == 0 ? 0 : most / scale;
}

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

void expect_same_training(const std::string& model, const Numbers& n) {
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
    const lhost::RunReport r = lhost::run_manifest(o);
    ASSERT_EQ(r.exit_code, 0) << r.error;
    expect_same_losses(logged_losses(r.run_folder), expected.at(n.dtype), n.tolerance);
    expect_same_state(File(r.run_folder + "/checkpoints/final.ckpt"), File(files + "-final.pt"), name,
                      n.tolerance);
  }
}

TEST(Golden, MlpInFloat32EqualsPyTorch) { expect_same_training("mlp", kFloat32); }
TEST(Golden, MlpInFloat64EqualsPyTorch) { expect_same_training("mlp", kFloat64); }
TEST(Golden, ConvnetInFloat32EqualsPyTorch) { expect_same_training("convnet", kFloat32); }
TEST(Golden, ConvnetInFloat64EqualsPyTorch) { expect_same_training("convnet", kFloat64); }

}  // namespace
