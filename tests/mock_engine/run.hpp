// tests/mock_engine/run.hpp - one run inside the mock engine: parameters, units, flat groups, optimizer
// groups. Private. Semantics are those of host/engine/engine.h; numbers are computed in double and rounded
// to the tensor's dtype.
#pragma once
#include "engine/engine.h"
#include "tensor.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct lh_list {
  std::vector<mock::Tensor> tensors;
};

namespace mock {

inline std::string_view sv(lh_str s) { return {s.ptr, static_cast<size_t>(s.len)}; }
inline lh_str str(std::string_view s) { return {s.data(), s.size()}; }

struct Param {
  Tensor tensor;  // the model's own: same identity
  std::string name;
  uint32_t unit = 0, flags = 0, alias_of = 0;
  std::optional<uint32_t> flat;  // group
  int64_t offset = 0;            // in it
  Tensor grad_view;              // into the group's flat gradient
  bool absent = false;           // no rank used it in this window: the optimizer leaves it alone
  Tensor piece;                  // what the optimizer updates here; undefined: nothing
  std::vector<Tensor> slots;
};

struct Unit {
  std::string name;
  uint32_t parent = 0;
  std::vector<uint32_t> params;
  uint32_t trainable = 0;
  // one backward's bookkeeping
  bool opened = false, closed = false;
  uint32_t ready = 0;    // parameters whose gradient is in
  uint32_t entries = 0;  // inputs that backward has not reached yet
};

struct Flat {
  std::vector<uint32_t> params;
  uint32_t layout = 0;
  int64_t numel = 0, padded = 0, lo = 0, hi = 0, tail = 0;
  Tensor full, full_grad, shard, shard_grad;
  // this rank optimises the parameters themselves
  bool whole() const {
    return (layout & LH_FULL_LOOSE) ||
           (lo == 0 && hi == padded && (layout & LH_SHARD_ALIAS) && !(layout & LH_GRAD_TRANSIENT));
  }
};

struct OptGroup {
  std::string name;
  std::vector<uint32_t> params;
  const double* hyper = nullptr;
  // the lists lent by gradient_groups
  lh_list pieces, grads;
  std::vector<lh_list> slots;
  std::vector<const lh_list*> slot_lists;
};

}  // namespace mock

struct lh_engine_run {
  std::vector<mock::Param> params;
  std::vector<mock::Unit> units;
  std::vector<mock::Flat> flats;
  std::vector<mock::OptGroup> groups;
  std::vector<lh_opt_group> lent_groups;
  uint32_t n_slots = 0;
  bool laid_out = false, inference = false;
  lh_unit_events events{};
  lh_unit_calls calls{};
  mock::Tensor square_sum;
  uint64_t generator = 0;
};

namespace mock {

// The status of a plugin on its way through the model's backward.
struct Failed : std::exception {
  lh_status status;
  explicit Failed(lh_status s) : status(s) {}
  const char* what() const noexcept override { return "a plugin's error"; }
};
inline void must(lh_status s) {
  if (s) throw Failed(s);
}

lh_status status_of_exception(const char* where);  // engine.cpp
template <class F>
lh_status guard(const char* where, F&& f) {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_exception(where);
  }
}

inline bool trainable(const Param& p) { return (p.flags & LH_P_TRAINABLE) != 0; }

extern const lh_tensor_v0 tensor_table;  // tensors.cpp
extern const lh_tensor_ops_v0 ops_table;
void assign(const Tensor& dst, const lh_view& src);
extern const lh_plan_v0 plan_table;  // layout.cpp
extern const lh_params_v0 params_table;
void layout(lh_engine_run&);
void set_events(lh_engine_run&, const lh_unit_events&);  // units.cpp
void backward(lh_engine_run&, const Tensor* loss, double seed);
extern const lh_fused_v0 fused_table;  // fused.cpp
void optimizer_groups(lh_engine_run&, const lh_group_spec*, uint64_t n, const lh_slot*,
                      uint64_t n_slots);  // gradients.cpp
void gradient_groups(lh_engine_run&);
void drop_grads(lh_engine_run&);
void scale_grads(lh_engine_run&, double factor);
void square_sum(lh_engine_run&);
void clip_norm(lh_engine_run&, const Tensor& square_sum, double max_norm);
void clip_value(lh_engine_run&, double max_value);

}  // namespace mock
