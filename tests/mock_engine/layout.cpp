// tests/mock_engine/layout.cpp - the strategy's plan made real: flat groups, parameters re-pointed into
// them; "lhost.params/0".
#include "run.hpp"

#include <algorithm>
#include <numeric>

namespace mock {
namespace {

lh_engine_run& engine(lh_run* r) { return *r->engine; }

// Every parameter and every shard starts at 64 bytes.
int64_t line(Type t) { return static_cast<int64_t>(64 / bytes_of(t)); }
int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

void check_layout(const lh_flat_args& a) {
  const uint32_t l = a.layout;
  const auto one_of = [l](uint32_t x, uint32_t y) { return ((l & x) != 0) != ((l & y) != 0); };
  const auto refuse_if = [](bool wrong, const char* why) {
    if (wrong) throw std::invalid_argument(why);
  };
  refuse_if(a.tail < 0 || (a.tail && !(l & LH_GRAD_FLAT)), "a tail needs LH_GRAD_FLAT");
  if (l & LH_FULL_LOOSE) {
    refuse_if(l != (LH_FULL_LOOSE | LH_GRAD_FLAT) || a.shard_count != 1 || a.n_params == 0,
              "LH_FULL_LOOSE goes with LH_GRAD_FLAT, one shard and some parameters");
    return;
  }
  refuse_if(!one_of(LH_FULL_PERSISTENT, LH_FULL_TRANSIENT),
            "expected LH_FULL_PERSISTENT or LH_FULL_TRANSIENT");
  refuse_if(!one_of(LH_SHARD_ALIAS, LH_SHARD_SEPARATE), "expected LH_SHARD_ALIAS or LH_SHARD_SEPARATE");
  refuse_if((l & LH_FULL_TRANSIENT) && (l & LH_SHARD_ALIAS), "LH_FULL_TRANSIENT needs LH_SHARD_SEPARATE");
  refuse_if(((l & (LH_GRAD_TRANSIENT | LH_SHARD_SEPARATE)) || a.shard_count > 1) && !(l & LH_GRAD_FLAT),
            "a shard of its own, or a transient gradient, needs LH_GRAD_FLAT");
  refuse_if(a.shard_count < 1 || a.shard_index < 0 || a.shard_index >= a.shard_count,
            "expected 0 <= shard_index < shard_count");
  refuse_if(a.n_params == 0, "a flat group without parameters");
}

void check_members(const lh_engine_run& r, const lh_flat_args& a) {
  for (uint64_t i = 0; i < a.n_params; ++i) {
    const Param& p = r.params.at(a.params[i]);
    if (!trainable(p)) throw std::invalid_argument(p.name + " is not trainable");
    if (p.flat || std::count(a.params, a.params + i, a.params[i]))
      throw std::invalid_argument("parameter " + p.name + " is already in a group");
    if (p.tensor.type() != r.params[a.params[0]].tensor.type())
      throw std::invalid_argument("parameter " + p.name + " has another dtype than its group");
  }
}

void add_flat(lh_engine_run& r, const lh_flat_args& a, uint32_t* out) {
  check_layout(a);
  check_members(r, a);
  Flat f;
  f.layout = a.layout;
  f.tail = a.tail;
  f.params.assign(a.params, a.params + a.n_params);
  *out = static_cast<uint32_t>(r.flats.size());
  const int64_t unit = line(r.params[f.params[0]].tensor.type());
  for (uint32_t i : f.params) {
    r.params[i].flat = *out;
    r.params[i].offset = f.numel;
    f.numel += round_up(r.params[i].tensor.numel(), unit);
  }
  f.padded = round_up(f.numel, unit * std::lcm(std::max<int64_t>(1, a.pad_multiple), a.shard_count));
  f.lo = f.padded / a.shard_count * a.shard_index;
  f.hi = f.lo + f.padded / a.shard_count;
  r.flats.push_back(std::move(f));
}

void point_grads(lh_engine_run& r, const Flat& f) {
  for (uint32_t i : f.params) r.params[i].tensor.grad() = r.params[i].grad_view;
}

void build_gradient(lh_engine_run& r, Flat& f, Type type) {
  const int64_t n = f.hi - f.lo;
  f.full_grad = Tensor(type, {f.padded + f.tail});
  for (uint32_t i : f.params)
    r.params[i].grad_view = f.full_grad.view(r.params[i].offset, r.params[i].tensor.shape());
  if (f.layout & LH_GRAD_TRANSIENT) {
    f.full_grad.storage()->resize(0);
    f.shard_grad = Tensor(type, {n});
  } else {
    f.shard_grad = f.full_grad.view(f.lo, {n});
    point_grads(r, f);
  }
}

void build(lh_engine_run& r, Flat& f) {
  const Type type = r.params[f.params[0]].tensor.type();
  if (f.layout & LH_FULL_LOOSE) return build_gradient(r, f, type);
  f.full = Tensor(type, {f.padded});
  for (uint32_t i : f.params) {
    const Param& p = r.params[i];
    const Tensor place = f.full.view(p.offset, p.tensor.shape());
    place.copy_from(p.tensor);
    p.tensor.set_data(place);
  }
  const int64_t n = f.hi - f.lo;
  f.shard = f.full.view(f.lo, {n});
  if (!(f.layout & LH_SHARD_ALIAS)) f.shard = f.shard.cast(type);
  if (f.layout & LH_GRAD_FLAT) build_gradient(r, f, type);
}

size_t bytes(const Tensor& t) { return static_cast<size_t>(t.numel()) * bytes_of(t.type()); }
// NULL: there is no such group, or it has no such tensor.
template <Tensor Flat::*member>
lh_tensor* of_flat(lh_run* run, uint32_t g) {
  const auto& flats = engine(run).flats;
  return g < flats.size() && (flats[g].*member).defined() ? handle(flats[g].*member) : nullptr;
}
lh_tensor* of_param(lh_run* run, uint32_t p) {
  const auto& params = engine(run).params;
  return p < params.size() ? handle(params[p].tensor) : nullptr;
}

lh_status info(lh_run* run, uint32_t i, lh_param_info* out) {
  return guard("params.info", [&] {
    const Param& p = engine(run).params.at(i);
    *out = {out->size,
            i,
            p.unit,
            p.flags,
            str(p.name),
            to_dlpack(p.tensor.type()),
            static_cast<int32_t>(p.tensor.shape().size()),
            p.tensor.shape().data(),
            p.tensor.numel(),
            p.alias_of,
            0};
  });
}
lh_status unit_info(lh_run* run, uint32_t i, lh_unit_info* out) {
  return guard("params.unit_info", [&] {
    const Unit& u = engine(run).units.at(i);
    *out = {out->size, i, u.parent, 0, str(u.name), u.params.data(), u.params.size()};
  });
}
lh_status flat_info(lh_run* run, uint32_t g, lh_flat_info* out) {
  return guard("params.flat_info", [&] {
    const Flat& f = engine(run).flats.at(g);
    *out = {out->size, f.layout, f.numel, f.padded, f.lo, f.hi};
  });
}
lh_status grad_alloc(lh_run* run, uint32_t g) {
  return guard("params.grad_alloc", [&] {
    const Flat& f = engine(run).flats.at(g);
    f.full_grad.storage()->resize(bytes(f.full_grad));
    point_grads(engine(run), f);
  });
}
lh_status grad_free(lh_run* run, uint32_t g) {
  return guard("params.grad_free", [&] {
    const Flat& f = engine(run).flats.at(g);
    for (uint32_t i : f.params) engine(run).params[i].tensor.grad().reset();
    f.full_grad.storage()->resize(0);
  });
}

}  // namespace

// Gradients move to other groups; parameters and the optimizer's state stay.
void regroup(lh_engine_run& r, const lh_flat_args* groups, uint64_t n) {
  for (const Flat& f : r.flats) {
    if (!(f.layout & LH_FULL_LOOSE))
      throw std::logic_error("a group that holds parameters cannot be regrouped");
    for (uint32_t i : f.params) r.params[i].flat.reset();
  }
  r.flats.clear();
  uint32_t g = 0;
  for (uint64_t i = 0; i < n; ++i) add_flat(r, groups[i], &g);
  for (Flat& f : r.flats) build(r, f);
}

void layout(lh_engine_run& r) {
  if (std::exchange(r.laid_out, true)) throw std::logic_error("layout is called twice");
  for (Flat& f : r.flats) build(r, f);
}

const lh_plan_v0 plan_table = {sizeof(lh_plan_v0), 0,
                               [](lh_plan* plan, const lh_flat_args* a, uint32_t* out) {
                                 return guard("plan.flat", [&] {
                                   auto& r = *reinterpret_cast<lh_engine_run*>(plan);
                                   if (r.laid_out) throw std::logic_error("flat() is called after plan()");
                                   add_flat(r, *a, out);
                                 });
                               }};

const lh_params_v0 params_table = {
    sizeof(lh_params_v0),
    0,
    [](lh_run* r) { return static_cast<uint32_t>(engine(r).params.size()); },
    info,
    [](lh_run* r) { return static_cast<uint32_t>(engine(r).units.size()); },
    unit_info,
    of_param,
    [](lh_run* r) { return static_cast<uint32_t>(engine(r).flats.size()); },
    flat_info,
    of_flat<&Flat::full>,
    of_flat<&Flat::full_grad>,
    of_flat<&Flat::shard>,
    of_flat<&Flat::shard_grad>,
    [](lh_run* r, uint32_t g) {
      return guard("params.full_alloc", [&] {
        const Tensor& full = engine(r).flats.at(g).full;
        full.storage()->resize(bytes(full));
      });
    },
    [](lh_run* r, uint32_t g) {
      return guard("params.full_free", [&] { engine(r).flats.at(g).full.storage()->resize(0); });
    },
    grad_alloc,
    grad_free,
    [](lh_run* r, const lh_flat_args* groups, uint64_t n) {
      return guard("params.regroup", [&] { regroup(engine(r), groups, n); });
    },
    [](lh_run* r, uint32_t p) {
      return guard("params.grad_absent", [&] { engine(r).params.at(p).absent = true; });
    },
};

}  // namespace mock
