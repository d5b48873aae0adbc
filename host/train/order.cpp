#include "train/order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lhost {
namespace {

// Steele, Lea, Flood 2014: a bijection of 64 bits whose outputs on a counter pass as random.
uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Uniform in 0..n-1 by multiplication (Lemire 2019); the bias of n / 2^64 cannot be seen.
uint64_t below(uint64_t random, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(random) * n) >> 64);
}

void shuffle_in_place(std::vector<int64_t>& v, uint64_t seed, uint64_t purpose) {
  const uint64_t key = splitmix64(splitmix64(seed) ^ purpose);
  for (uint64_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[below(splitmix64(key + i), i)]);
}

constexpr uint64_t kSplitPurpose = 0x73706c6974;  // "split"

}  // namespace

std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t purpose) {
  std::vector<int64_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  shuffle_in_place(v, seed, purpose);
  return v;
}

SplitIndices split_samples(int64_t samples, std::optional<double> train_share,
                           std::optional<double> val_share) {
  SplitIndices s;
  if (!train_share && !val_share) {
    s.train.resize(static_cast<size_t>(samples));
    std::iota(s.train.begin(), s.train.end(), 0);
    return s;
  }
  const double share = train_share ? *train_share : 1 - *val_share;
  // 0.9 * 1440 is 1295.9999...: a share that was written as a decimal must not lose a sample to its binary form
  const auto n_train = static_cast<int64_t>(std::floor(share * static_cast<double>(samples) + 1e-9));
  const bool some_left = val_share && train_share && *train_share + *val_share < 1 - 1e-9;
  const auto n_val = some_left
                         ? static_cast<int64_t>(std::floor(*val_share * static_cast<double>(samples) + 1e-9))
                         : samples - n_train;
  const auto order = permutation(samples, 0, kSplitPurpose);
  s.train.assign(order.begin(), order.begin() + n_train);
  s.val.assign(order.begin() + n_train, order.begin() + n_train + std::min(n_val, samples - n_train));
  // each part keeps the order of the files, so that "no shuffling" means what it says
  std::sort(s.train.begin(), s.train.end());
  std::sort(s.val.begin(), s.val.end());
  return s;
}

std::vector<int64_t> epoch_order(const std::vector<int64_t>& subset, bool shuffle, uint64_t seed,
                                 int64_t epoch) {
  std::vector<int64_t> order = subset;
  if (shuffle) shuffle_in_place(order, seed, static_cast<uint64_t>(epoch) + 1);
  return order;
}

}  // namespace lhost
