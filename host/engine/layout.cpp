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

const char* layout_fault(const lh_flat_args& a) {
  const uint32_t l = a.layout;
  const bool transient = l & LH_FULL_TRANSIENT, separate = l & LH_SHARD_SEPARATE,
             flat_grad = l & LH_GRAD_FLAT;
  if (!a.n_params) return "expected at least one parameter";
  if (a.shard_count < 1 || a.shard_index < 0 || a.shard_index >= a.shard_count)
    return "expected 0 <= shard_index < shard_count";
  if (a.pad_multiple < 0 || a.pad_multiple > (1 << 20)) return "expected a pad_multiple of 0 to 1048576";
  if (a.tail < 0 || (a.tail && (!flat_grad || l & LH_GRAD_TRANSIENT)))
    return "a tail needs LH_GRAD_FLAT without LH_GRAD_TRANSIENT";
  if (l & LH_FULL_LOOSE) {
    const bool alone = l == (LH_FULL_LOOSE | LH_GRAD_FLAT) && a.shard_count == 1;
    return alone ? nullptr : "LH_FULL_LOOSE goes with LH_GRAD_FLAT and one shard only";
  }
  if (transient == bool(l & LH_FULL_PERSISTENT))
    return "expected one of LH_FULL_PERSISTENT, LH_FULL_TRANSIENT, LH_FULL_LOOSE";
  if (separate == bool(l & LH_SHARD_ALIAS)) return "expected one of LH_SHARD_ALIAS, LH_SHARD_SEPARATE";
  if (transient && !separate)
    return "LH_FULL_TRANSIENT needs LH_SHARD_SEPARATE: freeing would take the shard along";
  if ((l & LH_GRAD_TRANSIENT) && !flat_grad) return "LH_GRAD_TRANSIENT needs LH_GRAD_FLAT";
  if ((separate || a.shard_count > 1) && !flat_grad) return "a shard of its own needs LH_GRAD_FLAT";
  return nullptr;
}

void check_layout(const lh_flat_args& a) {
  const char* fault = layout_fault(a);
  if (!fault) return;
  refuse(LH_INVALID_ARGUMENT, std::string(fault) + "; found layout " + std::to_string(a.layout) + ", shard " +
                                  std::to_string(a.shard_index) + " of " + std::to_string(a.shard_count) +
                                  ", pad_multiple " + std::to_string(a.pad_multiple) + ", tail " +
                                  std::to_string(a.tail));
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

uint32_t add_flat(Run& r, const lh_flat_args& a) {
  check_layout(a);
  check_members(r, a);
  Flat f;
  f.layout = a.layout;
  f.tail = a.tail;
  f.params.assign(a.params, a.params + a.n_params);
  const auto group = static_cast<uint32_t>(r.flats.size());
  const int64_t line = kAlignment / static_cast<int64_t>(r.params[f.params[0]].tensor.element_size());
  for (uint32_t i : f.params) {
    Param& p = r.params[i];
    p.flat = group;
    p.offset = f.numel;
    f.numel += round_up(p.tensor.numel(), line);
  }
  f.padded = round_up(f.numel, line * std::lcm(std::max<int64_t>(1, a.pad_multiple), a.shard_count));
  f.lo = f.padded / a.shard_count * a.shard_index;
  f.hi = f.lo + f.padded / a.shard_count;
  r.flats.push_back(std::move(f));
  return group;
}

lh_status plan_flat(lh_plan* plan, const lh_flat_args* a, uint32_t* out) {
  return guard("plan.flat", [&] { *out = add_flat(state(reinterpret_cast<lh_run*>(plan)), *a); });
}

at::Tensor member(const at::Tensor& flat, const Param& p) {
  return flat.narrow(0, p.offset, p.tensor.numel()).view(p.shape);
}

void make_gradient(Run& r, Flat& f, const at::TensorOptions& options) {
  const bool transient = f.layout & LH_GRAD_TRANSIENT;
  f.full_grad = at::zeros({f.padded + f.tail}, options);
  for (uint32_t i : f.params) {
    Param& p = r.params[i];
    p.flat_grad = member(f.full_grad, p);
    p.grad = Param::Grad::stale;
  }
  f.shard_grad = transient ? at::zeros({f.hi - f.lo}, options) : f.full_grad.narrow(0, f.lo, f.hi - f.lo);
  if (transient) resize_storage(f.full_grad, 0);
}

void build(Run& r, Flat& f) {
  const auto options = r.params[f.params[0]].tensor.options().requires_grad(false);
  if (f.layout & LH_FULL_LOOSE) return make_gradient(r, f, options);
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

// Parameters and the optimizer's state stay where they are: only the gradients move.
void regroup(Run& r, const lh_flat_args* groups, uint64_t n) {
  uint64_t before = 0, after = 0;
  for (const Flat& f : r.flats) {
    if (!(f.layout & LH_FULL_LOOSE))
      refuse(LH_FAILED_PRECONDITION, "a flat group that holds parameters cannot be regrouped");
    before += f.params.size();
  }
  for (uint64_t i = 0; i < n; ++i) after += groups[i].n_params;
  if (before != after)
    refuse(LH_INVALID_ARGUMENT, "the new groups have " + std::to_string(after) +
                                    " parameters, the old ones " + std::to_string(before));
  c10::AutoGradMode off(false);
  for (const Flat& f : r.flats)
    for (uint32_t i : f.params) {
      r.params[i].flat = kNone;
      r.params[i].tensor.mutable_grad().reset();
    }
  r.flats.clear();
  for (uint64_t i = 0; i < n; ++i) add_flat(r, groups[i]);
  for (Flat& f : r.flats) build(r, f);
  refresh_gradients(r);
}

// The first gradient of a window is moved into its place, later ones are added there by autograd itself. That costs a
// copy, where a gradient that is preset costs zeros and an addition.
void collect(Run& r, uint32_t param) {
  Param& p = r.params[param];
  if (p.grad == Param::Grad::arrived || r.flats[p.flat].layout & LH_GRAD_TRANSIENT) return;
  c10::AutoGradMode off(false);
  at::Tensor& grad = p.tensor.mutable_grad();
  if (grad.is_sparse()) p.flat_grad.zero_().add_(grad);
  else p.flat_grad.copy_(grad);
  grad = p.flat_grad;
  p.grad = Param::Grad::arrived;
}

void settle(Run& r) {
  c10::AutoGradMode off(false);
  for (const Flat& f : r.flats) {
    if (!(f.layout & LH_GRAD_FLAT) || f.layout & LH_GRAD_TRANSIENT) continue;
    for (uint32_t i : f.params) {
      Param& p = r.params[i];
      if (p.grad != Param::Grad::stale) [[likely]]
        continue;
      p.flat_grad.zero_();
      p.grad = Param::Grad::zero;
    }
  }
}

const lh_plan_v0 plan_table = {sizeof(lh_plan_v0), 0, plan_flat};

}  // namespace lhost::engine
