// host/engine/params.cpp - "lhost.params/0": what the model is made of, and the memory of its flat groups.
#include "engine/run.hpp"

#include <ATen/native/Resize.h>
#include <c10/core/GradMode.h>

namespace lhost::engine {

// The same StorageImpl with other bytes: every view of it, also those that autograd saved, stays valid.
void resize_storage(const at::Tensor& t, size_t bytes) {
  if (t.storage().nbytes() != bytes) at::native::resize_bytes_cpu(t.storage().unsafeGetStorageImpl(), bytes);
}

namespace {

size_t bytes(const at::Tensor& t) { return static_cast<size_t>(t.numel()) * t.element_size(); }

template <class T>
auto& at_index(std::vector<T>& v, uint32_t i, const char* what) {
  if (i >= v.size())
    refuse(LH_OUT_OF_RANGE, std::string("found ") + what + " " + std::to_string(i) + "; there are " +
                                std::to_string(v.size()));
  return v[i];
}

Flat& transient(lh_run* run, uint32_t g, uint32_t flag, const char* flag_name) {
  Flat& f = at_index(state(run).flats, g, "flat group");
  if (!(f.layout & flag))
    refuse(LH_FAILED_PRECONDITION, "flat group " + std::to_string(g) + " was planned without " + flag_name +
                                       ": its memory is always there");
  return f;
}

lh_status info(lh_run* run, uint32_t i, lh_param_info* out) {
  return guard("params.info", [&] {
    const Param& p = at_index(state(run).params, i, "parameter");
    *out = {out->size,
            i,
            p.unit,
            p.flags,
            text(p.name),
            p.dtype,
            static_cast<int32_t>(p.shape.size()),
            p.shape.data(),
            p.tensor.numel(),
            p.alias_of,
            0};
  });
}

lh_status unit_info(lh_run* run, uint32_t i, lh_unit_info* out) {
  return guard("params.unit_info", [&] {
    const Unit& u = at_index(state(run).units, i, "unit");
    *out = {out->size, i, u.parent, 0, text(u.name), u.params.data(), u.params.size()};
  });
}

lh_status flat_info(lh_run* run, uint32_t g, lh_flat_info* out) {
  return guard("params.flat_info", [&] {
    const Flat& f = at_index(state(run).flats, g, "flat group");
    *out = {out->size, f.layout, f.numel, f.padded, f.lo, f.hi};
  });
}

lh_status full_alloc(lh_run* run, uint32_t g) {
  return guard("params.full_alloc", [&] {
    Flat& f = transient(run, g, LH_FULL_TRANSIENT, "LH_FULL_TRANSIENT");
    resize_storage(f.full, bytes(f.full));
  });
}
lh_status full_free(lh_run* run, uint32_t g) {
  return guard("params.full_free",
               [&] { resize_storage(transient(run, g, LH_FULL_TRANSIENT, "LH_FULL_TRANSIENT").full, 0); });
}
lh_status grad_alloc(lh_run* run, uint32_t g) {
  return guard("params.grad_alloc", [&] {
    c10::AutoGradMode off(false);
    Flat& f = transient(run, g, LH_GRAD_TRANSIENT, "LH_GRAD_TRANSIENT");
    resize_storage(f.full_grad, bytes(f.full_grad));
    f.full_grad.zero_();
    for (uint32_t i : f.params) {
      Param& p = state(run).params[i];
      p.tensor.mutable_grad() = p.flat_grad;
    }
  });
}
lh_status grad_free(lh_run* run, uint32_t g) {
  return guard("params.grad_free", [&] {
    Flat& f = transient(run, g, LH_GRAD_TRANSIENT, "LH_GRAD_TRANSIENT");
    for (uint32_t i : f.params) state(run).params[i].tensor.mutable_grad().reset();
    resize_storage(f.full_grad, 0);
  });
}

// NULL: no such group, or it has none of these (a group without LH_GRAD_FLAT has no gradient).
template <at::Tensor Flat::*member>
lh_tensor* of_group(lh_run* run, uint32_t g) {
  std::vector<Flat>& flats = state(run).flats;
  return g < flats.size() && (flats[g].*member).defined() ? handle(flats[g].*member) : nullptr;
}

}  // namespace

const lh_params_v0 params_table = {
    sizeof(lh_params_v0),
    0,
    [](lh_run* run) { return static_cast<uint32_t>(state(run).params.size()); },
    info,
    [](lh_run* run) { return static_cast<uint32_t>(state(run).units.size()); },
    unit_info,
    [](lh_run* run, uint32_t p) -> lh_tensor* {
      const std::vector<Param>& params = state(run).params;
      return p < params.size() ? handle(params[p].tensor) : nullptr;
    },
    [](lh_run* run) { return static_cast<uint32_t>(state(run).flats.size()); },
    flat_info,
    of_group<&Flat::full>,
    of_group<&Flat::full_grad>,
    of_group<&Flat::shard>,
    of_group<&Flat::shard_grad>,
    full_alloc,
    full_free,
    grad_alloc,
    grad_free,
    [](lh_run* run, const lh_flat_args* groups, uint64_t n) {
      return guard("params.regroup", [&] { regroup(state(run), groups, n); });
    },
    [](lh_run* run, uint32_t p) {
      return guard("params.grad_absent", [&] {
        Param& param = at_index(state(run).params, p, "parameter");
        if (param.flat == kNone)
          refuse(LH_FAILED_PRECONDITION, "parameter \"" + param.name + "\" is in no flat group");
        param.grad = Param::Grad::absent;
      });
    },
};

}  // namespace lhost::engine
