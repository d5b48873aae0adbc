// host/engine/layout.cpp - the strategy's plan made real: flat groups, parameters re-pointed into them.
#include "engine/run.hpp"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

namespace lhost::engine {
namespace {

// Parameters start at cache lines, and so do shards: unaligned views make BLAS and the fused kernels take other
// paths, which costs time and changes the last bit. The gaps are zero and stay zero.
constexpr int64_t kAlignment = 64;
int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

void check_layout(const lh_flat_args& a) {
  const uint32_t l = a.layout;
  const bool transient = l & LH_FULL_TRANSIENT, separate = l & LH_SHARD_SEPARATE,
             flat_grad = l & LH_GRAD_FLAT;
  const char* fault = nullptr;
  if (transient == bool(l & LH_FULL_PERSISTENT))
    fault = "expected one of LH_FULL_PERSISTENT, LH_FULL_TRANSIENT";
  else if (separate == bool(l & LH_SHARD_ALIAS)) fault = "expected one of LH_SHARD_ALIAS, LH_SHARD_SEPARATE";
  else if (transient && !separate)
    fault = "LH_FULL_TRANSIENT needs LH_SHARD_SEPARATE: freeing would take the shard along";
  else if ((l & LH_GRAD_TRANSIENT) && !flat_grad) fault = "LH_GRAD_TRANSIENT needs LH_GRAD_FLAT";
  else if ((separate || a.shard_count > 1) && !flat_grad) fault = "a shard of its own needs LH_GRAD_FLAT";
  else if (a.shard_count < 1 || a.shard_index < 0 || a.shard_index >= a.shard_count)
    fault = "expected 0 <= shard_index < shard_count";
  else if (a.pad_multiple < 0 || a.pad_multiple > (1 << 20))
    fault = "expected a pad_multiple of 0 to 1048576";
  else if (!a.n_params) fault = "expected at least one parameter";
  if (!fault) return;
  refuse(LH_INVALID_ARGUMENT, std::string(fault) + "; found layout " + std::to_string(l) + ", shard " +
                                  std::to_string(a.shard_index) + " of " + std::to_string(a.shard_count) +
                                  ", pad_multiple " + std::to_string(a.pad_multiple));
}

// Everything is checked before anything is changed.
void check_members(const Run& r, const lh_flat_args& a) {
  std::vector<bool> seen(r.params.size());
  const Param* first = nullptr;
  for (uint64_t i = 0; i < a.n_params; ++i) {
    const uint32_t index = a.params[i];
    if (index >= r.params.size())
      refuse(LH_OUT_OF_RANGE, "found parameter index " + std::to_string(index) + "; the model has " +
                                  std::to_string(r.params.size()) + " parameters and buffers");
    const Param& p = r.params[index];
    const std::string what = "parameter \"" + p.name + "\" ";
    if (!p.trainable())
      refuse(LH_INVALID_ARGUMENT, what +
                                      "is not trainable (a buffer, an alias or frozen); a flat group holds "
                                      "parameters whose info has LH_P_TRAINABLE");
    if (p.flat != kNone)
      refuse(LH_ALREADY_EXISTS, what + "is already in flat group " + std::to_string(p.flat));
    if (seen[index]) refuse(LH_ALREADY_EXISTS, what + "is listed twice in one flat group");
    seen[index] = true;
    if (!first) first = &p;
    if (p.tensor.scalar_type() != first->tensor.scalar_type())
      refuse(LH_INVALID_ARGUMENT, what + "is " + c10::toString(p.tensor.scalar_type()) + " and \"" +
                                      first->name + "\" is " + c10::toString(first->tensor.scalar_type()) +
                                      "; a flat group has one dtype");
  }
}

lh_status plan_flat(lh_plan* plan, const lh_flat_args* a, uint32_t* out) {
  Run& r = state(reinterpret_cast<lh_run*>(plan));
  return guard("plan.flat", [&] {
    check_layout(*a);
    check_members(r, *a);
    Flat f;
    f.layout = a->layout;
    f.params.assign(a->params, a->params + a->n_params);
    const auto group = static_cast<uint32_t>(r.flats.size());
    const int64_t line = kAlignment / static_cast<int64_t>(r.params[f.params[0]].tensor.element_size());
    for (uint32_t i : f.params) {
      Param& p = r.params[i];
      p.flat = group;
      p.offset = f.numel;
      f.numel += round_up(p.tensor.numel(), line);
    }
    f.padded = round_up(f.numel, line * std::lcm(std::max<int64_t>(1, a->pad_multiple), a->shard_count));
    f.lo = f.padded / a->shard_count * a->shard_index;
    f.hi = f.lo + f.padded / a->shard_count;
    r.flats.push_back(std::move(f));
    *out = group;
  });
}

at::Tensor member(const at::Tensor& flat, const Param& p) {
  return flat.narrow(0, p.offset, p.tensor.numel()).view(p.shape);
}

void make_gradient(Run& r, Flat& f, const at::TensorOptions& options) {
  const bool transient = f.layout & LH_GRAD_TRANSIENT;
  f.full_grad = at::zeros({f.padded}, options);
  for (uint32_t i : f.params) {
    Param& p = r.params[i];
    p.flat_grad = member(f.full_grad, p);
    if (!transient) p.tensor.mutable_grad() = p.flat_grad;
  }
  f.shard_grad = transient ? at::zeros({f.hi - f.lo}, options) : f.full_grad.narrow(0, f.lo, f.hi - f.lo);
  if (transient) resize_storage(f.full_grad, 0);
}

void build(Run& r, Flat& f) {
  const auto options = r.params[f.params[0]].tensor.options().requires_grad(false);
  f.full = at::zeros({f.padded}, options);
  for (uint32_t i : f.params) {
    Param& p = r.params[i];
    const at::Tensor part = member(f.full, p);
    part.copy_(p.tensor.detach());
    p.tensor.set_data(part);
  }
  f.shard = f.full.narrow(0, f.lo, f.hi - f.lo);
  if (f.layout & LH_SHARD_SEPARATE) f.shard = f.shard.clone();
  if (f.layout & LH_GRAD_FLAT) make_gradient(r, f, options);
}

}  // namespace

void layout(Run& r) {
  c10::AutoGradMode off(false);
  for (Flat& f : r.flats) build(r, f);
  for (Param& p : r.params)
    if (p.trainable() && !p.flat_grad.defined()) r.loose.push_back(&p.tensor);
  r.grads.reserve(r.loose.size() + r.flats.size());
}

const lh_plan_v0 plan_table = {sizeof(lh_plan_v0), 0, plan_flat};

}  // namespace lhost::engine
