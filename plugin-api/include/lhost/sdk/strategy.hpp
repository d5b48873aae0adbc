// lhost/sdk/strategy.hpp - write a strategy: override what you need, end the file with LHOST_STRATEGY(...).
// A slot that is not overridden stays NULL in the C table: it is not in the compiled step.
#pragma once
#include <lhost/strategy.h>
#include <lhost/sdk/plugin.hpp>

#include <utility>

namespace lhost {

namespace detail {
inline Service<lh_params_v0> params_service;
inline Service<lh_tensor_v0> tensor_service;
inline Service<lh_tensor_ops_v0> ops_service;
inline Service<lh_work_v0> work_service;
}  // namespace detail

using Step = lh_step;
using UnitId = uint32_t;
using ParamId = uint32_t;
using GroupId = uint32_t;
inline constexpr UnitId all_units = LH_UNIT_ALL;
enum class ReduceOp : int32_t {
  sum = LH_REDUCE_SUM,
  avg = LH_REDUCE_AVG,
  max = LH_REDUCE_MAX,
  min = LH_REDUCE_MIN
};

// Completions of one or several collectives. Dropping it neither waits nor cancels.
class Work {
 public:
  Work() = default;
  Work(Work&& o) noexcept : w_(std::exchange(o.w_, {})) {}
  Work& operator=(Work&& o) noexcept {
    std::swap(w_, o.w_);
    return *this;
  }
  ~Work() {
    for (lh_work* w : w_) detail::work_service->release(w);
  }
  void add(lh_work* w) {
    if (w) w_.push_back(w);
  }
  void wait() {
    for (lh_work* w : w_) check(detail::work_service->wait_stream(w, nullptr));
  }

 private:
  std::vector<lh_work*> w_;
};

class Plan {
 public:
  Plan(lh_run* run, lh_plan* plan, const lh_plan_v0* table) : run_(run), plan_(plan), table_(table) {}
  // every trainable parameter, tied ones once
  std::vector<ParamId> all_parameters() const {
    std::vector<ParamId> ids;
    for (ParamId p = 0; p < detail::params_service->count(run_); ++p) {
      lh_param_info i{};
      i.size = sizeof i;
      check(detail::params_service->info(run_, p, &i));
      if (i.flags == LH_P_TRAINABLE) ids.push_back(p);
    }
    return ids;
  }
  // every rank holds and optimises all of them, as one flat tensor
  GroupId replicate(const std::vector<ParamId>& params) {
    return flat(params, LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_FLAT, 1, 0);
  }
  // parameters stay where they are; their gradients and `tail` further elements are one flat tensor
  GroupId gradients(const std::vector<ParamId>& params, int64_t tail) {
    return flat(params, LH_FULL_LOOSE | LH_GRAD_FLAT, 1, 0, tail);
  }
  GroupId flat(const std::vector<ParamId>& params, uint32_t layout, int64_t shards, int64_t index,
               int64_t tail = 0) {
    lh_flat_args a{sizeof(lh_flat_args), layout, params.data(), params.size(), shards, shards, index, tail};
    GroupId g = 0;
    check(table_->flat(plan_, &a, &g));
    return g;
  }

 private:
  lh_run* run_;
  lh_plan* plan_;
  const lh_plan_v0* table_;
};

class Strategy : public Component {
 public:
  using Handle = lh_strategy;
  virtual void setup(lh_topology&) {}
  virtual void plan(Plan&) {}
  virtual void params_ready(UnitId) {}
  virtual void fit_start() {}
  virtual void begin_micro(const Step&) {}
  virtual void pre_forward(UnitId, int32_t /*phase*/) {}
  virtual void post_forward(UnitId, int32_t /*phase*/) {}
  virtual void pre_backward(UnitId) {}
  virtual void grad_ready(ParamId) {}
  virtual void post_backward(UnitId) {}
  virtual void after_backward(const Step&) {}
  virtual void sync_grads(const Step&) {}
  virtual void after_step(const Step&) {}
  virtual void eval_start() {}
  virtual void abort(lh_code /*why*/) noexcept {}
  virtual void teardown() {}

 protected:
  using Tensors = std::vector<lh_tensor*>;  // borrowed
  Tensors params() const { return all(detail::params_service->full); }
  Tensors grads() const { return all(detail::params_service->full_grad); }
  int64_t rank() const { return rank_; }
  int64_t world_size() const { return world_size_; }
  lh_run* run() const { return run_; }
  lh_tensor* votes() const { return votes_; }  // lh_setup.votes
  Work all_reduce(const Tensors& ts, ReduceOp op) {
    return each(collective_->all_reduce, ts, int32_t(op), 0);
  }
  Work broadcast(const Tensors& ts, int64_t root) { return each(collective_->broadcast, ts, 0, root); }

 private:
  friend struct StrategyKind;
  template <class F>
  Tensors all(F get) const {
    Tensors v(detail::params_service->group_count(run_));
    for (GroupId g = 0; g < v.size(); ++g) v[g] = get(run_, g);
    return v;
  }
  template <class F>
  Work each(F call, const Tensors& ts, int32_t op, int64_t root) {
    if (!call) throw Error(LH_UNIMPLEMENTED, "the collective of this run lacks this operation");
    Work work;
    for (lh_tensor* t : ts) {
      lh_collective_args a{sizeof(lh_collective_args), op, nullptr, t, t, root, nullptr, 0};
      lh_work* w = nullptr;
      check(call(collective_self_, &a, &w));
      work.add(w);
    }
    return work;
  }
  lh_run* run_ = nullptr;
  const lh_collective_v0* collective_ = nullptr;
  lh_collective* collective_self_ = nullptr;
  lh_tensor* votes_ = nullptr;
  int64_t rank_ = 0, world_size_ = 1;
};

struct StrategyKind {
  static constexpr const char* kind = LH_STRATEGY_KIND;
  using Base = Strategy;
  static void bind() {
    detail::params_service.bind(LH_PARAMS_SERVICE);
    detail::tensor_service.bind(LH_TENSOR_SERVICE);
    detail::ops_service.bind(LH_TENSOR_OPS_SERVICE);
    detail::work_service.bind(LH_WORK_SERVICE);
  }
  template <void (Strategy::*f)(const Step&)>
  static lh_status on_step(lh_strategy* s, const lh_step* step) noexcept {
    return guard("strategy", [&] { (detail::self<Strategy>(s).*f)(*step); });
  }
  template <void (Strategy::*f)(uint32_t)>
  static lh_status on_id(lh_strategy* s, uint32_t id) noexcept {
    return guard("strategy", [&] { (detail::self<Strategy>(s).*f)(id); });
  }
  template <void (Strategy::*f)(UnitId, int32_t)>
  static lh_status on_phase(lh_strategy* s, uint32_t unit, int32_t phase) noexcept {
    return guard("strategy", [&] { (detail::self<Strategy>(s).*f)(unit, phase); });
  }
  template <void (Strategy::*f)()>
  static lh_status on_event(lh_strategy* s) noexcept {
    return guard("strategy", [&] { (detail::self<Strategy>(s).*f)(); });
  }
  static lh_status do_setup(lh_strategy* s, lh_run* run, const lh_setup* a, lh_topology* topology) noexcept {
    return guard("setup", [&] {
      Strategy& x = detail::self<Strategy>(s);
      x.run_ = run;
      x.collective_ = a->collective;
      x.collective_self_ = a->collective_self;
      x.votes_ = a->votes;
      x.rank_ = a->env->rank;
      x.world_size_ = a->env->world_size;
      x.setup(*topology);
    });
  }
  static lh_status do_plan(lh_strategy* s, lh_plan* p, const lh_plan_v0* b) noexcept {
    return guard("plan", [&] {
      Plan plan(detail::self<Strategy>(s).run_, p, b);
      detail::self<Strategy>(s).plan(plan);
    });
  }
#define LHOST_SLOT(f, thunk) \
  if (LHOST_OVERRIDES(D, Strategy, f)) t.f = thunk<&Strategy::f>
  template <class D>
  static const lh_strategy_units_v0* units() {
    static const lh_strategy_units_v0 table = [] {
      lh_strategy_units_v0 t{};
      t.size = sizeof t;
      LHOST_SLOT(pre_forward, on_phase);
      LHOST_SLOT(post_forward, on_phase);
      LHOST_SLOT(pre_backward, on_id);
      LHOST_SLOT(post_backward, on_id);
      return t;
    }();
    return table.pre_forward || table.post_forward || table.pre_backward || table.post_backward ? &table
                                                                                                : nullptr;
  }
  template <class D>
  static lh_strategy_v0 table() {
    auto t = detail::object_table<D, Strategy, lh_strategy_v0>();
    t.setup = do_setup;
    if (LHOST_OVERRIDES(D, Strategy, plan)) t.plan = do_plan;
    LHOST_SLOT(params_ready, on_id);
    LHOST_SLOT(fit_start, on_event);
    LHOST_SLOT(begin_micro, on_step);
    LHOST_SLOT(grad_ready, on_id);
    LHOST_SLOT(after_backward, on_step);
    LHOST_SLOT(sync_grads, on_step);
    LHOST_SLOT(after_step, on_step);
    LHOST_SLOT(eval_start, on_event);
    if (LHOST_OVERRIDES(D, Strategy, abort))
      t.abort = [](lh_strategy* s, lh_code why) noexcept { detail::self<Strategy>(s).abort(why); };
    LHOST_SLOT(teardown, on_event);
    t.units = units<D>();
    return t;
  }
#undef LHOST_SLOT
};

}  // namespace lhost

#define LHOST_STRATEGY(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::StrategyKind, LH_STRATEGY_KIND, Class, Options, name, version, "", 0)
