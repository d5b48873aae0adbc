// host/engine/run.hpp - what the engine keeps of one run: parameters, units, flat groups, optimizer groups.
// A tensor handle is the address of an at::Tensor, so whatever is lent lives in a vector that no longer grows.
// One thread at a time; backward events of the CPU arrive in the thread that called backward.
#pragma once
#include "engine/engine.h"
#include "engine/status.hpp"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <vector>

struct lh_list {
  std::vector<at::Tensor> tensors;
  std::vector<float*> numbers;  // their values, in a list of float32 scalars
};

namespace lhost::engine {

inline at::Tensor& tensor(lh_tensor* h) { return *reinterpret_cast<at::Tensor*>(h); }
inline lh_tensor* handle(const at::Tensor& t) {
  return reinterpret_cast<lh_tensor*>(const_cast<at::Tensor*>(&t));
}
// Tensor::grad() asks three virtual questions first, only to warn.
inline const at::Tensor& grad_of(const at::Tensor& t) { return t.unsafeGetTensorImpl()->grad(); }

constexpr uint32_t kNone = 0xffffffffu;

struct Param {
  at::Tensor tensor;  // the module's own TensorImpl
  std::string name;
  std::vector<int64_t> shape;
  lh_dtype dtype{};
  uint32_t unit = 0, flags = 0, alias_of = 0;
  uint32_t flat = kNone;  // its flat group
  int64_t offset = 0;     // there, in elements
  at::Tensor flat_grad;   // view into the group's gradient
  // Of flat_grad in this window. absent: the optimizer leaves the parameter alone; zero: nothing arrived (yet).
  enum class Grad : uint8_t { stale, zero, arrived, absent } grad = Grad::stale;
  std::shared_ptr<torch::autograd::Node> accumulator;  // kept alive: it carries our hook
  std::vector<lh_tensor*> slots;                       // optimizer state, borrowed from its group

  bool trainable() const { return flags & LH_P_TRAINABLE; }
};

struct Unit {
  std::string name;
  uint32_t parent = 0;
  std::vector<uint32_t> params;
  int32_t trainable = 0;
  // One backward's bookkeeping. `waiting`: gradients, entry nodes and inner units still to come.
  bool used = false, opened = false, closed = false;
  int32_t waiting = 0;
};

struct Flat {
  std::vector<uint32_t> params;
  uint32_t layout = 0;
  int64_t numel = 0, padded = 0, lo = 0, hi = 0, tail = 0;
  at::Tensor full, full_grad, shard, shard_grad;
};

// One parameter group. `params` and `slots` hold all members; the some_ lists only those with a gradient and are
// filled when a member has none.
struct OptGroup {
  std::string name;
  std::vector<uint32_t> members;  // parameters, parallel to `params`
  lh_list params, grads, some_params;
  std::vector<at::Tensor> fixed_grads;  // of flat members; undefined: look at the parameter
  std::vector<lh_list> slots, some_slots;
  std::vector<const lh_list*> slot_lists, some_slot_lists;
};

}  // namespace lhost::engine

struct lh_engine_run {
  std::vector<lhost::engine::Param> params;
  std::vector<lhost::engine::Unit> units;
  std::vector<lhost::engine::Flat> flats;

  std::vector<at::Tensor*>
      loose;  // trainable parameters with gradients of their own; the others are in flat groups
  std::vector<at::Tensor> grads;  // scratch, empty between calls

  lh_strategy* strategy = nullptr;
  lh_status (*grad_ready)(lh_strategy*, uint32_t) = nullptr;
  lh_strategy_units_v0 unit_events{};
  lh_unit_calls calls{};
  bool unit_nodes = false;  // somebody listens to backward events of units
  bool in_backward = false;

  std::vector<torch::autograd::Edge> roots = std::vector<torch::autograd::Edge>(1);  // scratch of backward
  std::vector<at::Tensor> seed = std::vector<at::Tensor>(1);  // the gradient that backward starts from
  double seed_value = 0;
  at::Tensor square_sum;

  std::vector<lhost::engine::OptGroup> groups;
  std::vector<lh_opt_group> lent_groups;
};

namespace lhost::engine {

using Run = lh_engine_run;
inline Run& state(lh_run* run) { return *run->engine; }

// Each subject's part of the entry table; see engine.h for what they do.
void adopt(Run&, const lh_model_v0&, lh_model*, const lh_policy*);  // adopt.cpp
extern const lh_plan_v0 plan_table;                                 // layout.cpp
void layout(Run&);
void regroup(Run&, const lh_flat_args*, uint64_t n);
void collect(Run&, uint32_t param);      // a gradient arrived: into its flat group
void settle(Run&);                       // backward is over: what did not arrive is zero
extern const lh_params_v0 params_table;  // params.cpp
void resize_storage(const at::Tensor&, size_t bytes);
const lh_unit_calls* set_events(Run&, const lh_unit_events&);  // units.cpp
void backward(Run&, const at::Tensor* loss, double seed);
void scale_grads(Run&, double factor);  // gradients.cpp
const at::Tensor& grad_square_sum(Run&);
void clip_norm(Run&, const at::Tensor& square_sum, double max_norm);
void clip_value(Run&, double max_value);
void drop_grads(Run&);
void make_groups(Run&, const lh_group_spec*, uint64_t n, const lh_slot*, uint64_t n_slots);  // optimizer.cpp
void gradient_groups(Run&);
void refresh_gradients(Run&);            // flat groups have moved
extern const lh_fused_v0 fused_table;    // fused.cpp
extern const lh_tensor_v0 tensor_table;  // tensors.cpp
extern const lh_tensor_ops_v0 tensor_ops_table;
at::Tensor& with_memory(at::Tensor&);  // refuses an undefined tensor and one whose storage was freed
at::ScalarType scalar_type(lh_dtype);  // dtype.cpp
lh_dtype dtype_of(at::ScalarType);
double element(const at::Tensor& one);  // values.cpp
bool scalar(const at::Tensor&, double* out);
at::Tensor to_host(at::Tensor&);
void assign(at::Tensor& dst, const lh_view& src);
at::Tensor rng_save();
void rng_load(const lh_view&);

}  // namespace lhost::engine
