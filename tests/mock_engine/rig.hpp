// tests/mock_engine/rig.hpp - the mock engine, a mock_linear and perhaps a strategy, put together without
// the host. Offers by itself the services that the host would: metrics (kept in `logged_metrics`), work, a
// collective of one.
#pragma once
#ifdef LHOST_TEST_PLUGINS
#undef LHOST_TEST_PLUGINS  // of the installation; here plugins are the mocks
#endif
#define LHOST_TEST_PLUGINS LHOST_TEST_MOCK "/plugins"
#include "engine/engine.h"
#include "mock_engine/tensor.hpp"
#include "support/component.hpp"

#include <lhost/metrics.h>

#include <map>
#include <memory>

namespace mock_test {

using lhost_test::call;
using lhost_test::Component;
using lhost_test::Options;
using mock::Tensor;
using mock::Type;

inline std::map<std::string, std::vector<double>>& logged_metrics() {
  static std::map<std::string, std::vector<double>> m;
  return m;
}
inline std::vector<std::string>& metric_names() {
  static std::vector<std::string> n;
  return n;
}

inline const lh_metrics_v0 metrics_table = {
    sizeof(lh_metrics_v0), 0,
    [](lh_run*, lh_str name, uint32_t, int32_t, uint32_t* id) -> lh_status {
      *id = static_cast<uint32_t>(metric_names().size());
      metric_names().push_back(lhost_test::text(name));
      return nullptr;
    },
    [](lh_run*, uint32_t id, lh_tensor* t, double) -> lh_status {
      logged_metrics()[metric_names()[id]].push_back(mock::tensor(t).get(0));
      return nullptr;
    },
    [](lh_run*, uint32_t id, double v, double) -> lh_status {
      logged_metrics()[metric_names()[id]].push_back(v);
      return nullptr;
    }};
inline const lh_work_v0 work_table = {
    sizeof(lh_work_v0),
    0,
    [](const lh_work_ops*, void*, lh_work**) -> lh_status { return nullptr; },
    [](lh_work*) {},
    [](lh_work*, int64_t) -> lh_status { return nullptr; },
    [](lh_work*, lh_stream*) -> lh_status { return nullptr; }};

// With one rank there is nothing to do: the result is the input.
inline lh_status collective_of_one(lh_collective*, const lh_collective_args*, lh_work** work) {
  *work = nullptr;
  return nullptr;
}
inline const lh_collective_v0& collective() {
  static const lh_collective_v0 t = [] {
    lh_collective_v0 c{};
    c.size = sizeof c;
    c.all_reduce = c.broadcast = c.all_gather = c.reduce_scatter = collective_of_one;
    return c;
  }();
  return t;
}

inline const lh_engine_v0& engine() {
  static const lh_engine_v0* table = [] {
    void* library = dlopen(LHOST_TEST_MOCK "/lib/mock_engine.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    auto* e = reinterpret_cast<lh_engine_entry>(dlsym(library, LH_ENGINE_ENTRY))();
    for (const char* id :
         {LH_TENSOR_SERVICE, LH_TENSOR_OPS_SERVICE, LH_PARAMS_SERVICE, LH_FUSED_SERVICE, MOCK_RANDOM_SERVICE})
      lhost_test::services()[id] = e->get_service(lhost_test::str(id));
    lhost_test::services()[LH_METRICS_SERVICE] = &metrics_table;
    lhost_test::services()[LH_WORK_SERVICE] = &work_table;
    return e;
  }();
  return *table;
}
template <class T>
const T& service(const char* id) {
  return *static_cast<const T*>(engine().get_service(lhost_test::str(id)));
}

// A batch with the fields x [rows, n / rows], float32, and label [rows], int64.
struct Batch {
  Batch(const std::vector<double>& x, const std::vector<double>& labels)
      : rows(static_cast<int64_t>(labels.size())),
        fields{Tensor(Type::f32, {rows, static_cast<int64_t>(x.size()) / rows}), Tensor(Type::i64, {rows})} {
    for (size_t i = 0; i < x.size(); ++i) fields[0].set(static_cast<int64_t>(i), x[i]);
    for (size_t i = 0; i < labels.size(); ++i) fields[1].set(static_cast<int64_t>(i), labels[i]);
    c = {sizeof(lh_batch), 2, names, handles, rows, rows};
  }
  Batch(const Batch&) = delete;
  int64_t rows;
  Tensor fields[2];
  lh_tensor* handles[2] = {mock::handle(fields[0]), mock::handle(fields[1])};
  lh_str names[2] = {LH_STR("x"), LH_STR("label")};
  lh_batch c{};
};

using Model = Component<lh_model, lh_model_v0>;
using Strategy = Component<lh_strategy, lh_strategy_v0>;

class Rig {
 public:
  explicit Rig(const Options& model_options = {}, const std::string& strategy_name = "",
               const Options& strategy_options = {}, const lh_policy* policy = nullptr)
      : Rig(model_options, strategy_name, strategy_options, policy, nullptr) {}
  // A layout instead of a strategy.
  Rig(const Options& model_options, const lh_flat_args& flat) : Rig(model_options, "", {}, nullptr, &flat) {}
  Rig(const Rig&) = delete;

  Tensor param(const std::string& name) const {
    const lh_param_info info = info_of(name);
    return mock::tensor(params().tensor(const_cast<Run*>(&run), info.index));
  }
  uint32_t index(const std::string& name) const { return info_of(name).index; }

  void groups(const std::vector<std::string>& names, const std::vector<lh_slot>& slots = {}) {
    std::vector<uint32_t> ids;
    for (const auto& n : names) ids.push_back(index(n));
    const lh_group_spec spec = {LH_STR("base"), ids.data(), ids.size(), hyper};
    call(engine().optimizer_groups(&run, &spec, 1, slots.data(), slots.size()));
  }
  const lh_opt_group& gradient_group() {
    const lh_opt_group* g = nullptr;
    uint64_t n = 0;
    call(engine().gradient_groups(&run, &g, &n));
    EXPECT_EQ(n, 1u);
    return *g;
  }
  lh_step_out forward(const Batch& b) {
    lh_step_out out{};
    out.size = sizeof out;
    call((*model)->training_step(model->self, &b.c, &out));
    return out;
  }
  double micro(const Batch& b, double seed = 1) {
    if (strategy && (*strategy)->begin_micro) call((*strategy)->begin_micro(strategy->self, &step));
    const lh_step_out out = forward(b);
    call(engine().backward(&run, out.loss, seed));
    return mock::tensor(out.loss).get(0);
  }
  void sgd_step(double lr, double momentum = 0, double weight_decay = 0) {
    if (strategy && (*strategy)->sync_grads) call((*strategy)->sync_grads(strategy->self, &step));
    const lh_sgd_args a = {sizeof(lh_sgd_args), 0, lr, momentum, 0, weight_decay};
    call(service<lh_fused_v0>(LH_FUSED_SERVICE).sgd(&gradient_group(), &a));
    call(engine().drop_grads(&run));
    ++step.global_step;
    if (strategy && (*strategy)->after_step) call((*strategy)->after_step(strategy->self, &step));
  }
  static const lh_params_v0& params() { return service<lh_params_v0>(LH_PARAMS_SERVICE); }

  struct Run : lh_run {  // freed after model and strategy, also when the constructor throws
    Run() : lh_run{} {}
    ~Run() {
      if (lh_run::engine) mock_test::engine().run_free(this);
    }
  } run;
  lh_step step{};
  double hyper[1] = {0.5};
  std::unique_ptr<Model> model;
  std::unique_ptr<Strategy> strategy;

 private:
  Rig(const Options& model_options, const std::string& strategy_name, const Options& strategy_options,
      const lh_policy* policy, const lh_flat_args* flat) {
    const lh_engine_config config = {sizeof(lh_engine_config), 1, 42, 0, 0};
    call(engine().run_new(&lhost_test::host(), &run, &config));
    step.size = sizeof step;
    step.last_micro = 1;
    step.micro_count = 1;
    model = std::make_unique<Model>("model", "mock_linear", model_options, &run);
    call(engine().adopt_model(&run, &model->table, model->self, policy));
    if (!strategy_name.empty())
      strategy = std::make_unique<Strategy>("strategy", strategy_name, strategy_options, &run);
    const lh_plan_v0* builder = nullptr;
    lh_plan* plan = engine().plan(&run, &builder);
    if (strategy) start(plan, builder);
    uint32_t group = 0;
    if (flat) call(builder->flat(plan, flat, &group));
    call(engine().layout(&run));
    const lh_unit_events events = {strategy ? strategy->self : nullptr,
                                   strategy ? strategy->table.grad_ready : nullptr,
                                   strategy ? strategy->table.units : nullptr};
    const lh_unit_calls* calls = nullptr;
    call(engine().set_events(&run, &events, &calls));
    call((*model)->attach(model->self, calls));
    call((*model)->set_mode(model->self, LH_MODE_TRAIN));
    if (strategy && (*strategy)->fit_start) call((*strategy)->fit_start(strategy->self));
  }
  void start(lh_plan* plan, const lh_plan_v0* builder) {
    lh_env env{};
    env.size = sizeof env;
    env.world_size = env.local_world_size = env.num_nodes = 1;
    const lh_setup setup = {sizeof(lh_setup), 0, &env, &collective(), nullptr, 1, nullptr};
    lh_topology topology = {sizeof(lh_topology), 0, 0, 1};
    call((*strategy)->setup(strategy->self, &run, &setup, &topology));
    if ((*strategy)->plan) call((*strategy)->plan(strategy->self, plan, builder));
  }
  lh_param_info info_of(const std::string& name) const {
    auto* r = const_cast<Run*>(&run);
    for (uint32_t p = 0; p < params().count(r); ++p) {
      lh_param_info i{};
      i.size = sizeof i;
      call(params().info(r, p, &i));
      if (lhost_test::text(i.name) == name) return i;
    }
    throw std::runtime_error("no parameter " + name);
  }
};

inline lh_slot like_param(const char* name) {
  return {sizeof(lh_slot), LH_SLOT_LIKE_PARAM, {name, std::strlen(name)}, {0, 0, 0}, 0};
}
inline lh_slot scalar_slot(const char* name) {
  return {sizeof(lh_slot), LH_SLOT_SCALAR, {name, std::strlen(name)}, {LH_DT_FLOAT, 32, 1}, 0};
}
inline std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.numel(); ++i) v.push_back(t.get(i));
  return v;
}

}  // namespace mock_test
