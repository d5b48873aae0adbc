// host/engine/adopt.cpp - takes over the model: its units, parameters, aliases and buffers; casts by the policy.
#include "engine/run.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

namespace lhost::engine {
namespace {

Unit adopt_unit(const lh_model_v0& v, lh_model* m, uint32_t index, uint32_t count) {
  lh_unit_info info{};
  info.size = sizeof info;
  must(v.unit(m, index, &info));
  Unit u;
  u.name = view(info.name);
  u.parent = index == LH_ROOT_UNIT ? LH_ROOT_UNIT : info.parent;
  if (u.parent >= count || (index != LH_ROOT_UNIT && u.parent >= index))
    refuse(LH_PLUGIN_FAULT, "unit \"" + u.name + "\" has parent " + std::to_string(info.parent) +
                                "; expected a unit that comes before it");
  u.params.assign(info.params, info.params + info.n_params);
  return u;
}

void check_param(const Run& r, const Param& p, uint32_t index) {
  const std::string what = "parameter \"" + p.name + "\" ";
  if (!p.tensor.defined()) refuse(LH_PLUGIN_FAULT, what + "has no tensor");
  if (!p.tensor.is_cpu())
    refuse(LH_UNIMPLEMENTED, what + "is on " + p.tensor.device().str() + "; this engine trains on the cpu");
  if (p.unit >= r.units.size())
    refuse(LH_PLUGIN_FAULT,
           what + "is in unit " + std::to_string(p.unit) + " of " + std::to_string(r.units.size()));
  if ((p.flags & LH_P_ALIAS) && p.alias_of >= index)
    refuse(LH_PLUGIN_FAULT, what + "is an alias of parameter " + std::to_string(p.alias_of) +
                                "; expected one that comes before it");
  if (p.trainable() && !p.tensor.is_leaf())
    refuse(LH_FAILED_PRECONDITION,
           what + "is the result of an operation, not a leaf: register a detached tensor");
}

void cast(at::Tensor& t, at::ScalarType type) {
  if (t.is_floating_point() && t.scalar_type() != type) t.set_data(t.detach().to(type));
}

Param adopt_param(const lh_model_v0& v, lh_model* m, uint32_t index) {
  lh_param_info info{};
  info.size = sizeof info;
  lh_tensor* h = nullptr;
  must(v.param(m, index, &info, &h));
  Param p;
  p.name = view(info.name);
  if (h) p.tensor = tensor(h);
  p.unit = info.unit;
  p.flags = info.flags & (LH_P_BUFFER | LH_P_ALIAS);
  p.alias_of = p.flags & LH_P_ALIAS ? info.alias_of : index;
  if (!p.flags && h && p.tensor.requires_grad()) p.flags = LH_P_TRAINABLE;
  return p;
}

}  // namespace

void adopt(Run& r, const lh_model_v0& v, lh_model* m, const lh_policy* policy) {
  const uint32_t n_units = v.unit_count(m);
  for (uint32_t u = 0; u < n_units; ++u) r.units.push_back(adopt_unit(v, m, u, n_units));
  if (r.units.empty()) r.units.emplace_back();  // the root always exists

  const uint32_t n_params = v.param_count(m);
  r.params.reserve(n_params);
  for (uint32_t i = 0; i < n_params; ++i) {
    Param p = adopt_param(v, m, i);
    check_param(r, p, i);
    // An alias is the same TensorImpl: it is cast with the parameter that it repeats.
    if (policy && policy->param.bits && !(p.flags & LH_P_ALIAS)) cast(p.tensor, scalar_type(policy->param));
    p.shape = p.tensor.sizes().vec();
    p.dtype = dtype_of(p.tensor.scalar_type());
    r.params.push_back(std::move(p));
  }
  for (Unit& u : r.units)
    for (uint32_t i : u.params) {
      if (i >= n_params)
        refuse(LH_PLUGIN_FAULT, "unit \"" + u.name + "\" lists parameter " + std::to_string(i) + " of " +
                                    std::to_string(n_params));
      u.trainable += r.params[i].trainable();
    }
}

}  // namespace lhost::engine
