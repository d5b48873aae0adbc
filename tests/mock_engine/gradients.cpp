// tests/mock_engine/gradients.cpp - optimizer groups and their state; gradients gathered, scaled, clipped,
// dropped.
#include "run.hpp"

#include <algorithm>
#include <cmath>

namespace mock {
namespace {

bool flat_grad(const lh_engine_run& r, const Param& p) {
  return p.flat && (r.flats[*p.flat].layout & LH_GRAD_FLAT);
}

// What of a parameter this rank optimises: all of it, or its part of the shard.
Tensor piece_of(const lh_engine_run& r, const Param& p, bool grad) {
  if (!p.flat) return grad ? p.tensor.grad() : p.tensor;
  const Flat& f = r.flats[*p.flat];
  if (f.whole()) return grad ? p.tensor.grad() : p.tensor;
  const int64_t from = std::max(p.offset, f.lo), to = std::min(p.offset + p.tensor.numel(), f.hi);
  if (from >= to) return {};
  const bool all = to - from == p.tensor.numel();  // keeps its shape, and so does its state
  return (grad ? f.shard_grad : f.shard)
      .view(from - f.lo, all ? p.tensor.shape() : std::vector<int64_t>{to - from});
}

// What is in a flat group must be stepped on all ranks or on none: it counts unless the strategy says otherwise.
bool has_gradient(const lh_engine_run& r, const Param& p) {
  return flat_grad(r, p) ? !p.absent : p.tensor.has_grad();
}

template <class F>
void for_each_gradient(lh_engine_run& r, F f) {
  for (const Param& p : r.params)
    if (trainable(p) && !flat_grad(r, p) && p.tensor.grad().defined()) f(p.tensor.grad());
  for (const Flat& g : r.flats)
    if (g.layout & LH_GRAD_FLAT) f(g.shard_grad);
}

Tensor new_slot(const lh_slot& s, const Tensor& piece) {
  const Type type = s.dtype.bits == 0 ? piece.type() : from_dlpack(s.dtype);
  return s.shape == LH_SLOT_SCALAR ? Tensor(type, {}) : Tensor(type, piece.shape());
}

}  // namespace

void optimizer_groups(lh_engine_run& r, const lh_group_spec* specs, uint64_t n, const lh_slot* slots,
                      uint64_t n_slots) {
  if (!r.groups.empty()) throw std::logic_error("the optimizer's groups are already made");
  r.n_slots = static_cast<uint32_t>(n_slots);
  for (uint64_t g = 0; g < n; ++g) {
    OptGroup group;
    group.name = sv(specs[g].name);
    group.hyper = specs[g].hyper;
    for (uint64_t i = 0; i < specs[g].n_params; ++i) {
      Param& p = r.params.at(specs[g].params[i]);
      if (!trainable(p)) throw std::invalid_argument(p.name + " is not trainable");
      if (p.piece.defined()) throw std::invalid_argument(p.name + " is already in a parameter group");
      p.piece = piece_of(r, p, false);
      if (!p.piece.defined()) continue;
      for (uint64_t s = 0; s < n_slots; ++s) p.slots.push_back(new_slot(slots[s], p.piece));
      group.params.push_back(specs[g].params[i]);
    }
    r.groups.push_back(std::move(group));
  }
}

void gradient_groups(lh_engine_run& r) {
  r.lent_groups.clear();
  for (OptGroup& g : r.groups) {
    g.pieces.tensors.clear();
    g.grads.tensors.clear();
    g.slots.assign(r.n_slots, {});
    for (uint32_t i : g.params) {
      const Param& p = r.params[i];
      if (!has_gradient(r, p)) continue;
      g.pieces.tensors.push_back(p.piece);
      g.grads.tensors.push_back(piece_of(r, p, true));
      for (uint32_t s = 0; s < r.n_slots; ++s) g.slots[s].tensors.push_back(p.slots[s]);
    }
    g.slot_lists.clear();
    for (const lh_list& l : g.slots) g.slot_lists.push_back(&l);
    r.lent_groups.push_back({sizeof(lh_opt_group), r.n_slots, str(g.name), &g.pieces, &g.grads,
                             g.slot_lists.data(), g.hyper, nullptr});
  }
}

void drop_grads(lh_engine_run& r) {
  for (OptGroup& g : r.groups) {
    g.pieces.tensors.clear();
    g.grads.tensors.clear();
    g.slots.assign(r.n_slots, {});
  }
  for (Param& p : r.params) {
    p.absent = false;
    p.tensor.forget_grad();
    if (trainable(p) && !flat_grad(r, p)) p.tensor.grad().reset();  // an alias has no gradient of its own
  }
  for (const Flat& f : r.flats)
    if (f.layout & LH_GRAD_FLAT) (f.layout & LH_GRAD_TRANSIENT ? f.shard_grad : f.full_grad).fill(0);
}

void scale_grads(lh_engine_run& r, double factor) {
  for_each_gradient(r, [&](const Tensor& g) {
    for (int64_t i = 0; i < g.numel(); ++i) g.set(i, factor * g.get(i));
  });
}

void square_sum(lh_engine_run& r) {
  double sum = 0;
  for_each_gradient(r, [&](const Tensor& g) {
    for (int64_t i = 0; i < g.numel(); ++i) sum += g.get(i) * g.get(i);
  });
  r.square_sum = Tensor(Type::f64, {});
  r.square_sum.set(0, sum);
}

void clip_norm(lh_engine_run& r, const Tensor& sum, double max_norm) {
  if (!(max_norm > 0)) throw std::invalid_argument("expected max_norm above 0");
  const double factor = max_norm / (std::sqrt(sum.get(0)) + 1e-6);
  scale_grads(r, factor > 1 ? 1.0 : factor);  // NaN stays NaN
}

void clip_value(lh_engine_run& r, double max_value) {
  if (!(max_value > 0)) throw std::invalid_argument("expected max_value above 0");
  for_each_gradient(r, [&](const Tensor& g) {
    for (int64_t i = 0; i < g.numel(); ++i)
      if (const double v = g.get(i); !std::isnan(v)) g.set(i, std::clamp(v, -max_value, max_value));
  });
}

}  // namespace mock
