// tests/mock_engine/engine.cpp - the mock engine's entry: the private table of host/engine/engine.h without
// LibTorch.
#include "run.hpp"

#include <atomic>
#include <new>

LH_PLUGIN_NOTE("mock-engine", "1.0.0", "", "engine/0:mock", "");

namespace mock {
namespace {

std::atomic<const lh_host*> g_host{nullptr};

lh_engine_run& of(lh_run* r) { return *r->engine; }

// splitmix64
double uniform(lh_run* run) {
  uint64_t z = of(run).generator += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}
const RandomService random_table = {sizeof(RandomService), 0, uniform};

const void* get_service(lh_str id) {
  const auto s = sv(id);
  if (s == LH_TENSOR_SERVICE) return &tensor_table;
  if (s == LH_TENSOR_OPS_SERVICE) return &ops_table;
  if (s == LH_PARAMS_SERVICE) return &params_table;
  if (s == LH_FUSED_SERVICE) return &fused_table;
  if (s == MOCK_RANDOM_SERVICE) return &random_table;
  return nullptr;
}

lh_status run_new(const lh_host* host, lh_run* run, const lh_engine_config* c) {
  g_host = host;
  return guard("engine.run_new", [&] {
    if (c->threads < 1)
      throw std::invalid_argument("found " + std::to_string(c->threads) + " threads, expected at least 1");
    run->engine = new lh_engine_run;
    of(run).generator = c->seed;
  });
}
void run_free(lh_run* run) {
  delete run->engine;
  run->engine = nullptr;
}

void adopt_param(lh_engine_run& r, const lh_param_info& i, const Tensor& t, const lh_policy* policy) {
  Param p;
  p.tensor = t;
  p.name = sv(i.name);
  p.unit = i.unit;
  p.flags = i.flags;
  p.alias_of = i.alias_of;
  if (p.unit >= r.units.size())
    throw std::invalid_argument(p.name + " is in a unit that the model does not have");
  if (p.flags & LH_P_ALIAS) {
    if (p.alias_of >= r.params.size() || !r.params[p.alias_of].tensor.is_same(t))
      throw std::invalid_argument(p.name + " is called a second name of a parameter that it is not");
  } else if (policy && policy->param.bits && t.floating()) {
    t.set_data(t.cast(from_dlpack(policy->param)));
  }
  if (trainable(p)) {
    t.set_requires_grad(true);
    ++r.units[p.unit].trainable;
  }
  r.params.push_back(std::move(p));
}

void adopt(lh_engine_run& r, const lh_model_v0& v, lh_model* m, const lh_policy* policy) {
  const uint32_t n_units = v.unit_count(m);
  if (n_units == 0) throw std::invalid_argument("the model has no unit; unit 0 always exists");
  for (uint32_t u = 0; u < n_units; ++u) {
    lh_unit_info i{};
    i.size = sizeof i;
    must(v.unit(m, u, &i));
    Unit unit;
    unit.name = sv(i.name);
    unit.parent = i.parent;
    unit.params.assign(i.params, i.params + i.n_params);
    r.units.push_back(std::move(unit));
  }
  const uint32_t n_params = v.param_count(m);
  for (uint32_t p = 0; p < n_params; ++p) {
    lh_param_info i{};
    i.size = sizeof i;
    lh_tensor* h = nullptr;
    must(v.param(m, p, &i, &h));
    adopt_param(r, i, tensor(h), policy);
  }
}

lh_status scalar(lh_tensor* t, double* out, lh_bool* ready) {
  return guard("engine.scalar", [&] {
    if (tensor(t).numel() != 1)
      throw std::invalid_argument("found a tensor of " + std::to_string(tensor(t).numel()) +
                                  " elements, expected one");
    *out = tensor(t).get(0);
    *ready = 1;
  });
}

lh_tensor* slot(lh_run* run, uint32_t p, uint32_t s) {
  const auto& params = of(run).params;
  return p < params.size() && s < params[p].slots.size() ? handle(params[p].slots[s]) : nullptr;
}

lh_status rng_save(lh_run* run, lh_tensor** out) {
  return guard("engine.rng_save", [&] {
    const Tensor state(Type::u8, {sizeof(uint64_t)});
    std::memcpy(state.data(), &of(run).generator, sizeof(uint64_t));
    *out = handle(*new Tensor(state));
  });
}
lh_status rng_load(lh_run* run, const lh_view* v) {
  return guard("engine.rng_load", [&] {
    const Tensor state(Type::u8, {sizeof(uint64_t)});
    assign(state, *v);
    std::memcpy(&of(run).generator, state.data(), sizeof(uint64_t));
  });
}

lh_engine_v0 make_table() {
  lh_engine_v0 t{};
  t.size = sizeof t;
  t.name = LH_STR("mock");
  t.version = LH_STR("0");
  t.get_service = get_service;
  t.run_new = run_new;
  t.seed = [](lh_run* r, uint64_t seed) -> lh_status {
    of(r).generator = seed;
    return nullptr;
  };
  t.run_free = run_free;
  t.adopt_model = [](lh_run* r, const lh_model_v0* v, lh_model* m, const lh_policy* policy) {
    return guard("engine.adopt_model", [&] { adopt(of(r), *v, m, policy); });
  };
  t.plan = [](lh_run* r, const lh_plan_v0** out) {
    *out = &plan_table;
    return reinterpret_cast<lh_plan*>(r->engine);
  };
  t.layout = [](lh_run* r) { return guard("engine.layout", [&] { layout(of(r)); }); };
  t.set_events = [](lh_run* r, const lh_unit_events* e, const lh_unit_calls** out) {
    return guard("engine.set_events", [&] {
      set_events(of(r), *e);
      *out = &of(r).calls;
    });
  };
  t.optimizer_groups = [](lh_run* r, const lh_group_spec* g, uint64_t n, const lh_slot* s, uint64_t n_slots) {
    return guard("engine.optimizer_groups", [&] { optimizer_groups(of(r), g, n, s, n_slots); });
  };
  t.backward = [](lh_run* r, lh_tensor* loss, double seed) {
    return guard("engine.backward", [&] { backward(of(r), loss ? &tensor(loss) : nullptr, seed); });
  };
  t.scale_grads = [](lh_run* r, double f) {
    return guard("engine.scale_grads", [&] { scale_grads(of(r), f); });
  };
  t.grad_square_sum = [](lh_run* r, lh_tensor** out) {
    return guard("engine.grad_square_sum", [&] {
      square_sum(of(r));
      *out = handle(of(r).square_sum);
    });
  };
  t.clip_norm = [](lh_run* r, lh_tensor* sum, double max) {
    return guard("engine.clip_norm", [&] { clip_norm(of(r), tensor(sum), max); });
  };
  t.clip_value = [](lh_run* r, double max) {
    return guard("engine.clip_value", [&] { clip_value(of(r), max); });
  };
  t.gradient_groups = [](lh_run* r, const lh_opt_group** out, uint64_t* n) {
    return guard("engine.gradient_groups", [&] {
      gradient_groups(of(r));
      *out = of(r).lent_groups.data();
      *n = of(r).lent_groups.size();
    });
  };
  t.drop_grads = [](lh_run* r) { return guard("engine.drop_grads", [&] { drop_grads(of(r)); }); };
  t.inference = [](lh_run* r, lh_bool on) -> lh_status {
    of(r).inference = on != 0;
    return nullptr;
  };
  t.scalar = scalar;
  t.to_host = tensor_table.retain;  // everything lies in host memory, contiguous
  t.assign = [](lh_tensor* dst, const lh_view* src) {
    return guard("engine.assign", [&] { assign(tensor(dst), *src); });
  };
  t.slot = slot;
  t.rng_save = rng_save;
  t.rng_load = rng_load;
  return t;
}

}  // namespace

lh_status status_of_exception(const char* where) {
  const auto make = [&](lh_code c, std::string_view message) {
    return g_host.load()->error_new(g_host, c, str("engine"), str(where), str(message));
  };
  try {
    throw;
  } catch (const Failed& e) {
    return e.status;  // unchanged: the plugin that raised it keeps the blame
  } catch (const std::bad_alloc&) {
    return make(LH_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::invalid_argument& e) {
    return make(LH_INVALID_ARGUMENT, e.what());
  } catch (const std::exception& e) {
    return make(LH_INTERNAL, e.what());
  } catch (...) {
    return make(LH_UNKNOWN, "something was thrown that is not a std::exception");
  }
}

}  // namespace mock

extern "C" LH_EXPORT const lh_engine_v0* lh_engine_entry_v0(void) {
  static const lh_engine_v0 table = mock::make_table();
  return &table;
}
