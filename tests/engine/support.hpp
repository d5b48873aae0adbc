// tests/engine/support.hpp - one run of the built engine and a model made of bare tensors, for tests of the engine.
//   lh_model model{{{"w", parameter}}};  EngineRun e;  e.adopt(model);  e.ready();
#pragma once
#include "engine/engine.h"
#include "support/component.hpp"

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

struct lh_model {
  struct Entry {
    std::string name;
    at::Tensor tensor;
    uint32_t unit = 0, flags = 0, alias_of = 0;
  };
  struct UnitEntry {
    std::string name;
    uint32_t parent = 0;
    std::vector<uint32_t> params = {};
  };
  std::vector<Entry> entries;
  std::vector<UnitEntry> units = {};
};

namespace lhost_test {

inline lh_tensor* handle(const at::Tensor& t) {
  return reinterpret_cast<lh_tensor*>(const_cast<at::Tensor*>(&t));
}
inline at::Tensor& tensor(lh_tensor* h) { return *reinterpret_cast<at::Tensor*>(h); }

struct Failure {
  lh_code code;
  std::string component, message;
};
inline Failure failed(lh_status s) {
  if (!s) return {LH_OK, "", "(no error)"};
  Failure f{s->code, s->component, s->message};
  delete s;
  return f;
}

inline const lh_model_v0& model_table() {
  static const lh_model_v0 t = [] {
    lh_model_v0 m{};
    m.size = sizeof m;
    m.unit_count = [](lh_model* x) { return static_cast<uint32_t>(x->units.size()); };
    m.unit = [](lh_model* x, uint32_t i, lh_unit_info* o) -> lh_status {
      auto& u = x->units[i];
      *o = {sizeof *o, i, u.parent, 0, str(u.name), u.params.data(), u.params.size()};
      return nullptr;
    };
    m.param_count = [](lh_model* x) { return static_cast<uint32_t>(x->entries.size()); };
    m.param = [](lh_model* x, uint32_t i, lh_param_info* o, lh_tensor** h) -> lh_status {
      auto& e = x->entries[i];
      o->index = i;
      o->unit = e.unit;
      o->flags = e.flags;
      o->name = str(e.name);
      o->alias_of = e.alias_of;
      *h = handle(e.tensor);
      return nullptr;
    };
    return m;
  }();
  return t;
}

inline const lh_engine_v0* engine() {
  static const lh_engine_v0* table = [] {
    void* library = dlopen(LHOST_TEST_PLUGINS "/../../liblhost_engine.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    return reinterpret_cast<lh_engine_entry>(dlsym(library, LH_ENGINE_ENTRY))();
  }();
  return table;
}

class EngineRun {
 public:
  explicit EngineRun(uint64_t seed = 1) {
    const lh_engine_config c{sizeof c, 1, seed, 1, 0};
    call(engine()->run_new(&host(), &run, &c));
  }
  ~EngineRun() { engine()->run_free(&run); }
  EngineRun(const EngineRun&) = delete;

  template <class Table>
  static const Table* service(const char* id) {
    return static_cast<const Table*>(engine()->get_service({id, std::strlen(id)}));
  }
  const lh_params_v0* params = service<lh_params_v0>(LH_PARAMS_SERVICE);
  const lh_tensor_v0* tensors = service<lh_tensor_v0>(LH_TENSOR_SERVICE);
  const lh_tensor_ops_v0* ops = service<lh_tensor_ops_v0>(LH_TENSOR_OPS_SERVICE);
  const lh_fused_v0* fused = service<lh_fused_v0>(LH_FUSED_SERVICE);

  void adopt(lh_model& m, const lh_policy* policy = nullptr) {
    if (m.units.empty()) m.units.push_back({""});
    call(engine()->adopt_model(&run, &model_table(), &m, policy));
  }
  lh_status flat(uint32_t layout, const std::vector<uint32_t>& indices, int64_t shards = 1, int64_t shard = 0,
                 int64_t tail = 0) {
    const lh_plan_v0* table = nullptr;
    lh_plan* plan = engine()->plan(&run, &table);
    const lh_flat_args a{sizeof a, layout, indices.data(), indices.size(), shards, shards, shard, tail};
    uint32_t group = 0;
    return table->flat(plan, &a, &group);
  }
  // layout, no strategy, one group "default" of `members`
  void ready(const std::vector<uint32_t>& members = {}, const std::vector<lh_slot>& slots = {}) {
    call(engine()->layout(&run));
    listen({});
    const lh_group_spec g{LH_STR("default"), members.data(), members.size(), nullptr};
    call(engine()->optimizer_groups(&run, &g, 1, slots.data(), slots.size()));
  }
  const lh_unit_calls* listen(const lh_unit_events& e) {
    const lh_unit_calls* calls = nullptr;
    call(engine()->set_events(&run, &e, &calls));
    return calls;
  }
  void backward(const at::Tensor& loss, double seed = 1) {
    call(engine()->backward(&run, handle(loss), seed));
  }
  const lh_opt_group& group() {
    const lh_opt_group* g = nullptr;
    uint64_t n = 0;
    call(engine()->gradient_groups(&run, &g, &n));
    if (n != 1) throw std::runtime_error("expected one group");
    return *g;
  }
  void drop() { call(engine()->drop_grads(&run)); }

  lh_run run{};
};

}  // namespace lhost_test
