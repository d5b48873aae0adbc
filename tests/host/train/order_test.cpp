#include "train/order.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int64_t> counting(int64_t n) {
  std::vector<int64_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}
std::vector<int64_t> sorted(std::vector<int64_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST(Permutation, HoldsEveryNumberOnce) {
  for (int64_t n : {0, 1, 2, 3, 10, 1437, 100000}) EXPECT_EQ(sorted(permutation(n, 42, 7)), counting(n)) << n;
}

TEST(Permutation, IsAFunctionOfItsArguments) {
  EXPECT_EQ(permutation(1000, 42, 7), permutation(1000, 42, 7));
  EXPECT_NE(permutation(1000, 42, 7), permutation(1000, 43, 7));
  EXPECT_NE(permutation(1000, 42, 7), permutation(1000, 42, 8));
  std::set<std::vector<int64_t>> all;
  for (uint64_t seed = 0; seed < 30; ++seed)
    for (uint64_t purpose = 0; purpose < 30; ++purpose) all.insert(permutation(50, seed, purpose));
  EXPECT_EQ(all.size(), 900u);  // 50! orders: two alike would be no accident
}

TEST(Permutation, GivesEveryOrderEquallyOften) {
  std::map<std::vector<int64_t>, double> seen;
  const int draws = 24000;
  for (uint64_t seed = 0; seed < draws; ++seed) ++seen[permutation(4, seed, 1)];
  ASSERT_EQ(seen.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, n] : seen) chi_square += (n - 1000) * (n - 1000) / 1000;
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom: exceeded by chance once in 1000
}

TEST(SplitSamples, WithoutSharesEverythingTrains) {
  const SplitIndices s = split_samples(5, {}, {});
  EXPECT_THAT(s.train, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(s.val, IsEmpty());
}

TEST(SplitSamples, ATenthOf1437Leaves1293) {
  const SplitIndices s = split_samples(1437, {}, 0.1);  // 0.9 * 1437 = 1293.3
  EXPECT_EQ(s.train.size(), 1293u);
  EXPECT_EQ(s.val.size(), 144u);
}

TEST(SplitSamples, PartsAreDisjointCompleteAndInTheOrderOfTheFiles) {
  const SplitIndices s = split_samples(1437, {}, 0.1);
  EXPECT_TRUE(std::is_sorted(s.train.begin(), s.train.end()));
  EXPECT_TRUE(std::is_sorted(s.val.begin(), s.val.end()));
  std::vector<int64_t> both = s.train;
  both.insert(both.end(), s.val.begin(), s.val.end());
  EXPECT_EQ(sorted(both), counting(1437));
  EXPECT_NE(s.train, counting(1293)) << "not the first ones: files may be sorted by label";
}

TEST(SplitSamples, IsTheSameInEveryRun) {
  EXPECT_EQ(split_samples(1437, {}, 0.1).val, split_samples(1437, 0.9, {}).val);
  EXPECT_EQ(split_samples(1437, {}, 0.1).val, split_samples(1437, 0.9, 0.1).val);
}

TEST(SplitSamples, ADecimalShareLosesNoSampleToItsBinaryForm) {
  for (int64_t tenths = 1; tenths < 10; ++tenths)
    for (int64_t n = 1; n <= 500; ++n) {
      const double share = static_cast<double>(tenths) / 10;
      EXPECT_EQ(static_cast<int64_t>(split_samples(n, share, {}).train.size()), n * tenths / 10)
          << n << " * " << share;
      EXPECT_EQ(static_cast<int64_t>(split_samples(n, {}, share).train.size()), n * (10 - tenths) / 10)
          << n << " - " << share;
    }
}

TEST(SplitSamples, SharesMayLeaveSomeOut) {
  const SplitIndices s = split_samples(10, 0.5, 0.2);
  EXPECT_EQ(s.train.size(), 5u);
  EXPECT_EQ(s.val.size(), 2u);
  EXPECT_EQ(split_samples(10, 1.0, {}).val.size(), 0u);
  EXPECT_EQ(split_samples(0, {}, 0.1).train.size(), 0u);
}

TEST(EpochOrder, WithoutShufflingIsTheSubset) {
  const std::vector<int64_t> subset = {7, 3, 5};
  EXPECT_EQ(epoch_order(subset, false, 1, 0), subset);
  EXPECT_EQ(epoch_order(subset, false, 2, 9), subset);
}

TEST(EpochOrder, ShufflesTheSubsetAnewInEveryEpoch) {
  std::vector<int64_t> subset;
  for (int64_t i = 0; i < 100; ++i) subset.push_back(3 * i);
  std::set<std::vector<int64_t>> all;
  for (uint64_t seed : {0u, 1u, 42u})
    for (int64_t epoch = 0; epoch < 100; ++epoch) {
      const auto order = epoch_order(subset, true, seed, epoch);
      EXPECT_EQ(sorted(order), subset);
      EXPECT_EQ(order, epoch_order(subset, true, seed, epoch));
      all.insert(order);
    }
  EXPECT_EQ(all.size(), 300u);
}

}  // namespace
}  // namespace lhost
