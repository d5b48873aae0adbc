// host/train/order.hpp - which samples, in which order. Pure functions of (seed, epoch): any number of threads, ranks
// or resumes sees the same order.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace lhost {

// Fisher-Yates on 0..n-1 with a counter-based generator (splitmix64 of seed, purpose and position).
std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t purpose);

// [data] split: the samples of the training files that train, and those that validate. The cut is made on a fixed
// permutation that does not depend on the run's seed, so that runs with different seeds validate on the same samples.
struct SplitIndices {
  std::vector<int64_t> train, val;
};
SplitIndices split_samples(int64_t samples, std::optional<double> train_share,
                           std::optional<double> val_share);

// One epoch's order over `subset`.
std::vector<int64_t> epoch_order(const std::vector<int64_t>& subset, bool shuffle, uint64_t seed,
                                 int64_t epoch);

}  // namespace lhost
