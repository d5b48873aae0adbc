// call.hpp - the arguments of one collective call, looked at once: which memory, how much, of what dtype. Both transports
// check and describe calls alike. No LibTorch. [any]
#pragma once
#include "reduce.hpp"

#include <lhost/collective.h>

#include <string>
#include <vector>

namespace lhost_collective {

enum class Kind : uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  gather,
  reduce_scatter,
  scatter,
  all_to_all,
  send,
  recv,
  barrier
};

struct Call {
  Kind kind = Kind::barrier;
  Dtype dtype = Dtype::u8;
  int32_t op = LH_REDUCE_SUM;
  int32_t root = -1;    // counted in the group
  size_t count = 0;     // elements of one rank's part; of the whole where there are no parts
  char* in = nullptr;   // NULL: this rank gives nothing
  char* out = nullptr;  // NULL: this rank gets nothing
  size_t bytes() const { return count * size_of(dtype); }
  bool reduces() const { return kind <= Kind::reduce || kind == Kind::reduce_scatter; }
};

// Checks against the contract in collective.h; `me` of `n` is this rank's place in the group. An error says what was
// given and what is wanted.
Call read_call(Kind, const lh_collective_args&, const lh_tensor_v0& tensors, size_t me, size_t n);

const char* name_of(Kind) noexcept;
std::string describe(const Call&);                    // "all_reduce of 10 float32"
std::string list(const std::vector<int64_t>& ranks);  // "[2, 3]"

}  // namespace lhost_collective
