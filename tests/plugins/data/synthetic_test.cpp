#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "plugins/data/data_source.hpp"

namespace {

using lhost_test::DataSource;

std::vector<int64_t> first(int64_t n) {
  std::vector<int64_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

TEST(Synthetic, HasTheShapeThatWasAskedFor) {
  DataSource data(
      "synthetic",
      {{"samples", int64_t{7}}, {"val_samples", int64_t{0}}, {"shape", std::vector<int64_t>{3, 4}}});
  const lh_split s = data.describe(LH_SPLIT_TRAIN);
  EXPECT_EQ(s.samples, 7);
  EXPECT_EQ(lhost_test::text(s.fields[0].name), "image");
  ASSERT_EQ(s.fields[0].ndim, 2);
  EXPECT_EQ(s.fields[0].shape[0], 3);
  EXPECT_EQ(s.fields[0].shape[1], 4);
  EXPECT_EQ(lhost_test::text(s.fields[1].name), "label");
  EXPECT_EQ(s.fields[1].dtype.code, LH_DT_INT);
  EXPECT_EQ(data.describe(LH_SPLIT_VAL).samples, 0);
  EXPECT_EQ(data.describe(LH_SPLIT_TEST).samples, 256);
}

TEST(Synthetic, GivesASampleWhateverThreadAndOrder) {
  DataSource data("synthetic", {});
  const auto rows = data.fetch<int64_t>(LH_SPLIT_TRAIN, first(100));
  std::vector<std::thread> threads;
  std::vector<DataSource::Rows<int64_t>> backwards(4);
  for (auto& mine : backwards)
    threads.emplace_back([&data, &mine] {
      std::vector<int64_t> indices = first(100);
      std::reverse(indices.begin(), indices.end());
      mine = data.fetch<int64_t>(LH_SPLIT_TRAIN, indices, 5);
    });
  for (std::thread& t : threads) t.join();
  for (const auto& mine : backwards)
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(mine.labels[99 - i], rows.labels[i]);
      for (size_t e = 0; e < 64; ++e) ASSERT_EQ(mine.inputs[(99 - i) * 64 + e], rows.inputs[i * 64 + e]);
    }
}

TEST(Synthetic, DiffersBySeedSplitAndSample) {
  DataSource a("synthetic", {}), again("synthetic", {}), b("synthetic", {{"seed", int64_t{1}}});
  const auto train = a.fetch<int64_t>(LH_SPLIT_TRAIN, first(50)).inputs;
  EXPECT_EQ(train, again.fetch<int64_t>(LH_SPLIT_TRAIN, first(50)).inputs);
  EXPECT_NE(train, b.fetch<int64_t>(LH_SPLIT_TRAIN, first(50)).inputs);
  EXPECT_NE(train, a.fetch<int64_t>(LH_SPLIT_VAL, first(50)).inputs);
  std::set<float> firsts;
  for (size_t i = 0; i < 50; ++i) firsts.insert(train[i * 64]);
  EXPECT_GE(firsts.size(), 49u);
}

// The class whose training mean is nearest must be right on other samples: centres lie sqrt(2 * 64) = 11.3
// apart in expectation and the noise along the line between two of them has deviation 1.
TEST(Synthetic, ClassesCanBeLearnt) {
  DataSource data("synthetic", {});
  const auto train = data.fetch<int64_t>(LH_SPLIT_TRAIN, first(1024));
  const auto test = data.fetch<int64_t>(LH_SPLIT_TEST, first(256));
  std::vector<std::vector<double>> means(10, std::vector<double>(64));
  std::vector<int> counts(10);
  for (size_t i = 0; i < 1024; ++i) ++counts[static_cast<size_t>(train.labels[i])];
  for (size_t i = 0; i < 1024; ++i)
    for (size_t e = 0; e < 64; ++e)
      means[static_cast<size_t>(train.labels[i])][e] +=
          double{train.inputs[i * 64 + e]} / counts[static_cast<size_t>(train.labels[i])];
  int right = 0;
  for (size_t i = 0; i < 256; ++i) {
    int64_t best = 0;
    double least = 1e300;
    for (size_t c = 0; c < 10; ++c) {
      double distance = 0;
      for (size_t e = 0; e < 64; ++e) distance += std::pow(test.inputs[i * 64 + e] - means[c][e], 2);
      if (distance < least) least = distance, best = static_cast<int64_t>(c);
    }
    right += best == test.labels[i];
  }
  EXPECT_GE(right, 250);
  EXPECT_GE(*std::min_element(counts.begin(), counts.end()), 60);  // 102 expected, deviation 9.6
}

// Inputs have mean 0 and variance 1; least squares on them is then the plain correlation, and the label's
// variance is |w|^2 / n + 0.01, about 1.
TEST(Synthetic, RegressionIsLinearWithNoise) {
  DataSource data("synthetic",
                  {{"kind", "regression"}, {"samples", int64_t{4096}}, {"shape", std::vector<int64_t>{4}}});
  EXPECT_EQ(data.describe(LH_SPLIT_TRAIN).fields[1].dtype.code, LH_DT_FLOAT);
  const auto rows = data.fetch<float>(LH_SPLIT_TRAIN, first(4096));
  double sum = 0, squares = 0;
  std::vector<double> w(4);
  for (size_t i = 0; i < 4096; ++i)
    for (size_t e = 0; e < 4; ++e) {
      const double x = rows.inputs[i * 4 + e];
      sum += x / 16384;
      squares += x * x / 16384;
      w[e] += x * rows.labels[i] / 4096;
    }
  EXPECT_NEAR(sum, 0, 0.04);  // five deviations of 1 / sqrt(16384)
  EXPECT_NEAR(squares, 1, 0.06);
  double rest = 0, total = 0;
  for (size_t i = 0; i < 4096; ++i) {
    double y = rows.labels[i];
    total += y * y / 4096;
    for (size_t e = 0; e < 4; ++e) y -= w[e] * rows.inputs[i * 4 + e];
    rest += y * y / 4096;
  }
  EXPECT_LT(rest, 0.1 * total);
  EXPECT_GT(rest, 0.005);
}

TEST(Synthetic, RefusesAShapeThatOverflows) {
  const std::vector<int64_t> shape{1 << 20, 1 << 20, 1 << 20, 1 << 20};
  EXPECT_THROW(DataSource("synthetic", {{"shape", shape}}), lhost_test::StatusError);
}

}  // namespace
