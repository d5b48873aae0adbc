#include "transport.hpp"

#include <algorithm>

namespace lhost_collective {

std::vector<int> read_ranks(const int64_t* ranks, uint64_t n, int64_t world_size) {
  std::vector<int> out;
  const std::string text = "a group of the ranks " + list({ranks, ranks + n}) + ": ";
  if (n == 0) throw lhost::Error(LH_INVALID_ARGUMENT, text + "it is empty");
  for (uint64_t i = 0; i < n; ++i) {
    const std::string rank = std::to_string(ranks[i]);
    if (ranks[i] < 0 || ranks[i] >= world_size)
      throw lhost::Error(LH_INVALID_ARGUMENT,
                         text + "there is no rank " + rank + " among " + std::to_string(world_size));
    if (std::find(out.begin(), out.end(), ranks[i]) != out.end())
      throw lhost::Error(LH_INVALID_ARGUMENT, text + "rank " + rank + " is named twice");
    out.push_back(static_cast<int>(ranks[i]));
  }
  return out;
}

}  // namespace lhost_collective
