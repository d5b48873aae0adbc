// host/engine/optimizer.cpp - parameter groups: what the optimizer updates, its slots, the lists of every step.
// A member is a loose parameter, or the part of a flat parameter that lies in this rank's shard.
#include "engine/run.hpp"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace lhost::engine {
namespace {

struct Piece {
  at::Tensor tensor, fixed_grad;  // tensor undefined: another rank's
};

Piece piece_of(const Run& r, const Param& p) {
  if (p.flat == kNone || !r.flats[p.flat].shard_grad.defined()) return {p.tensor, {}};
  if (r.flats[p.flat].layout & LH_FULL_LOOSE) return {p.tensor, p.flat_grad};
  const Flat& f = r.flats[p.flat];
  const int64_t numel = p.tensor.numel();
  const int64_t from = std::max(p.offset, f.lo), to = std::min(p.offset + numel, f.hi);
  if (from >= to) return {};
  // A whole parameter keeps its shape: so does its state, as the checkpoint wants it.
  const std::vector<int64_t> part{to - from};
  const at::IntArrayRef shape = to - from == numel ? at::IntArrayRef(p.shape) : at::IntArrayRef(part);
  return {f.shard.narrow(0, from - f.lo, to - from).view(shape),
          f.shard_grad.narrow(0, from - f.lo, to - from).view(shape)};
}

at::Tensor make_slot(const lh_slot& s, const at::Tensor& like) {
  const auto type = s.dtype.bits ? scalar_type(s.dtype) : like.scalar_type();
  if (s.shape == LH_SLOT_SCALAR) return at::zeros({}, type);
  return at::zeros(like.sizes(), like.options().dtype(type).requires_grad(false));
}

void append(lh_list& list, const at::Tensor& slot) {
  list.tensors.push_back(slot);
  if (slot.dim() == 0 && slot.scalar_type() == at::kFloat)
    list.numbers.push_back(slot.mutable_data_ptr<float>());
}

void add_member(Run& r, OptGroup& g, Param& p, const lh_slot* slots) {
  Piece piece = piece_of(r, p);
  if (!piece.tensor.defined()) return;
  for (size_t s = 0; s < g.slots.size(); ++s) append(g.slots[s], make_slot(slots[s], piece.tensor));
  g.params.tensors.push_back(std::move(piece.tensor));
  g.fixed_grads.push_back(std::move(piece.fixed_grad));
  g.members.push_back(static_cast<uint32_t>(&p - r.params.data()));
}

// What the optimizer reads for a member now; undefined: nothing.
const at::Tensor& gradient_of(const Run& r, const OptGroup& g, size_t i) {
  static const at::Tensor none;
  if (!g.fixed_grads[i].defined()) return grad_of(g.params.tensors[i]);
  return r.params[g.members[i]].grad == Param::Grad::absent ? none : g.fixed_grads[i];
}

void check_group(const Run& r, const lh_group_spec& spec, std::vector<const lh_group_spec*>& owner) {
  const std::string group = "parameter group \"" + std::string(view(spec.name)) + "\" ";
  for (uint64_t i = 0; i < spec.n_params; ++i) {
    const uint32_t index = spec.params[i];
    if (index >= r.params.size())
      refuse(LH_OUT_OF_RANGE, group + "has parameter index " + std::to_string(index) + "; the model has " +
                                  std::to_string(r.params.size()) + " parameters and buffers");
    const std::string what = group + "has \"" + r.params[index].name + "\", which is ";
    if (!r.params[index].trainable())
      refuse(LH_INVALID_ARGUMENT, what + "not trainable (a buffer, an alias or frozen)");
    if (owner[index])
      refuse(LH_ALREADY_EXISTS, what + "already in group \"" + std::string(view(owner[index]->name)) + "\"");
    owner[index] = &spec;
  }
}

// Handles are addresses: taken when the lists have their final place and length.
void lend(Run& r, OptGroup& g, const lh_group_spec& spec) {
  for (lh_list& s : g.slots) g.slot_lists.push_back(&s);
  for (lh_list& s : g.some_slots) g.some_slot_lists.push_back(&s);
  g.grads.tensors.reserve(g.params.tensors.size());
  size_t at = 0;
  for (uint64_t i = 0; i < spec.n_params; ++i) {
    Param& p = r.params[spec.params[i]];
    if (!piece_of(r, p).tensor.defined()) continue;
    for (const lh_list& s : g.slots) p.slots.push_back(handle(s.tensors[at]));
    ++at;
  }
  r.lent_groups.push_back({sizeof(lh_opt_group), static_cast<uint32_t>(g.slots.size()), text(g.name),
                           &g.params, &g.grads, g.slot_lists.data(), spec.hyper, nullptr});
}

// Some member has no gradient: the same lists without it.
void leave_out(const Run& r, OptGroup& g, lh_opt_group& out) {
  g.grads.tensors.clear();
  g.some_params.tensors.clear();
  for (lh_list& s : g.some_slots) s = {};
  for (size_t i = 0; i < g.params.tensors.size(); ++i) {
    const at::Tensor& param = g.params.tensors[i];
    const at::Tensor& grad = gradient_of(r, g, i);
    if (!grad.defined()) continue;
    g.grads.tensors.push_back(grad);
    g.some_params.tensors.push_back(param);
    for (size_t s = 0; s < g.slots.size(); ++s) append(g.some_slots[s], g.slots[s].tensors[i]);
  }
  out.params = &g.some_params;
  out.slots = g.some_slot_lists.data();
}

}  // namespace

void make_groups(Run& r, const lh_group_spec* specs, uint64_t n, const lh_slot* slots, uint64_t n_slots) {
  if (!r.groups.empty()) refuse(LH_ALREADY_EXISTS, "the optimizer's groups are already made");
  c10::AutoGradMode off(false);
  std::vector<const lh_group_spec*> owner(r.params.size());
  for (uint64_t i = 0; i < n; ++i) check_group(r, specs[i], owner);
  r.groups.resize(n);
  for (uint64_t i = 0; i < n; ++i) {
    OptGroup& g = r.groups[i];
    g.name = view(specs[i].name);
    g.slots.resize(n_slots);
    g.some_slots.resize(n_slots);
    for (uint64_t p = 0; p < specs[i].n_params; ++p) add_member(r, g, r.params[specs[i].params[p]], slots);
    lend(r, g, specs[i]);
  }
}

// Nearly always every member has a gradient, and the lists go out as they are.
void gradient_groups(Run& r) {
  for (size_t i = 0; i < r.groups.size(); ++i) {
    OptGroup& g = r.groups[i];
    lh_opt_group& out = r.lent_groups[i];
    const size_t n = g.params.tensors.size();
    g.grads.tensors.clear();
    for (size_t p = 0; p < n; ++p) {
      const at::Tensor& grad = gradient_of(r, g, p);
      if (grad.defined()) g.grads.tensors.push_back(grad);
    }
    out.params = &g.params;
    out.slots = g.slot_lists.data();
    if (g.grads.tensors.size() != n) [[unlikely]]
      leave_out(r, g, out);
  }
}

void refresh_gradients(Run& r) {
  for (OptGroup& g : r.groups)
    for (size_t i = 0; i < g.members.size(); ++i)
      g.fixed_grads[i] = piece_of(r, r.params[g.members[i]]).fixed_grad;
}

}  // namespace lhost::engine
