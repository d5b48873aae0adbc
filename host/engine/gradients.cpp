// host/engine/gradients.cpp - operations on all gradients of this rank: scale, norm, clip, drop.
#include "engine/run.hpp"

#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace lhost::engine {
namespace {

// All gradients as one list, without autograd, for the time of one call.
template <class F>
void with_gradients(Run& r, F&& act) {
  struct Clear {
    std::vector<at::Tensor>& v;
    ~Clear() { v.clear(); }
  } clear{r.grads};
  for (const at::Tensor* param : r.loose)
    if (const at::Tensor& g = grad_of(*param); g.defined()) r.grads.push_back(g);
  for (const Flat& f : r.flats) {
    if (!(f.layout & LH_FULL_LOOSE)) {
      if (f.shard_grad.defined()) r.grads.push_back(f.shard_grad);
      continue;
    }
    for (uint32_t i : f.params)  // one by one, as loose gradients: the same bits as without groups
      if (r.params[i].grad != Param::Grad::absent) r.grads.push_back(r.params[i].flat_grad);
  }
  if (r.grads.empty()) return;
  c10::AutoGradMode off(false);
  act(r.grads);
}

void multiply(Run& r, double factor) {
  with_gradients(r, [&](const std::vector<at::Tensor>& grads) { at::_foreach_mul_(grads, factor); });
}

void check_limit(const char* name, double limit) {
  if (!(limit > 0))
    refuse(LH_INVALID_ARGUMENT,
           std::string("found ") + name + " " + std::to_string(limit) + "; expected a number above 0");
}

}  // namespace

void scale_grads(Run& r, double factor) {
  if (factor != 1.0) multiply(r, factor);
}

// The norm of each tensor as PyTorch takes it, the sum over tensors (and then over ranks) in float64.
const at::Tensor& grad_square_sum(Run& r) {
  if (!r.square_sum.defined()) r.square_sum = at::zeros({}, at::kDouble);
  double sum = 0;
  with_gradients(r, [&](const std::vector<at::Tensor>& grads) {
    for (const at::Tensor& norm : at::_foreach_norm(grads, 2)) {
      const double x = element(norm);
      sum += x * x;
    }
  });
  *r.square_sum.mutable_data_ptr<double>() = sum;
  return r.square_sum;
}

// A norm that is not a number makes every gradient so, as in PyTorch: nothing is hidden.
void clip_norm(Run& r, const at::Tensor& square_sum, double max_norm) {
  check_limit("max_norm", max_norm);
  const double factor = max_norm / (std::sqrt(element(square_sum)) + 1e-6);
  if (!(factor >= 1.0)) multiply(r, factor);
}

void clip_value(Run& r, double max_value) {
  check_limit("max_value", max_value);
  with_gradients(r, [&](const std::vector<at::Tensor>& grads) {
    at::_foreach_clamp_min_(grads, -max_value);
    at::_foreach_clamp_max_(grads, max_value);
  });
}

// Loose gradients are given up, and autograd moves new ones in without a copy; what is in a flat group is overwritten
// by the next window's first.
void drop_grads(Run& r) {
  for (OptGroup& g : r.groups) g.grads.tensors.clear();
  for (at::Tensor* param : r.loose) param->unsafeGetTensorImpl()->mutable_grad().reset();
  if (r.flats.empty()) return;
  c10::AutoGradMode off(false);
  for (Flat& f : r.flats) {
    if (f.layout & LH_GRAD_TRANSIENT) f.shard_grad.zero_();
    if (!(f.layout & LH_GRAD_FLAT) || f.layout & LH_GRAD_TRANSIENT) continue;
    for (uint32_t i : f.params) {
      r.params[i].tensor.unsafeGetTensorImpl()->mutable_grad().reset();
      r.params[i].grad = Param::Grad::stale;
    }
  }
}

}  // namespace lhost::engine
