// host/train/services.cpp - the host's own services: "lhost.metrics/0", "lhost.trainer/0", "lhost.terminal/0".
#include "base/terminal.hpp"
#include "kinds/component.hpp"
#include "train/ranks.hpp"
#include "train/run_state.hpp"

#include <lhost/ranks.h>

namespace lhost {
namespace {

RunState& state(lh_run* run) { return *reinterpret_cast<RunState*>(run->host); }

// For the questions whose answer cannot be an error: without memory there is nothing to tell.
template <class T, class F>
T or_else(T nothing, F&& f) noexcept {
  try {
    return f();
  } catch (const std::exception&) {
    return nothing;
  }
}

const lh_metrics_v0 kMetrics = {
    sizeof(lh_metrics_v0), 0,
    [](lh_run* run, lh_str name, uint32_t flags, int32_t reduce, uint32_t* out) {
      return answer("declare", [&] { *out = state(run).metrics.declare(view(name), flags, reduce); });
    },
    [](lh_run* run, uint32_t id, lh_tensor* t, double w) {
      return answer("log", [&] { return state(run).metrics.log(id, t, w); });
    },
    [](lh_run* run, uint32_t id, double v, double w) {
      return answer("log_number", [&] { return state(run).metrics.log_number(id, v, w); });
    }};

uint64_t known_metrics(lh_run* run, const lh_metric_value** out) {
  RunState& s = state(run);
  return or_else(uint64_t{0}, [&] {
    s.shown_metrics.clear();
    for (const KnownMetric& k : s.metrics.known())
      s.shown_metrics.push_back({str(k.name), k.value, k.flags, 0});
    *out = s.shown_metrics.data();
    return uint64_t{s.shown_metrics.size()};
  });
}

uint64_t known_groups(lh_run* run, const lh_group_state** out) {
  RunState& s = state(run);
  return or_else(uint64_t{0}, [&] {
    s.shown_groups.clear();
    for (size_t g = 0; g < s.group_names.size(); ++g)
      s.shown_groups.push_back({str(s.group_names[g]), s.group_rates.empty() ? 0 : *s.group_rates[g]});
    *out = s.shown_groups.data();
    return uint64_t{s.shown_groups.size()};
  });
}

const lh_trainer_v0 kTrainer = {
    sizeof(lh_trainer_v0),
    0,
    [](lh_run* run) -> const lh_step* { return &state(run).step; },
    [](lh_run* run) -> const lh_env* { return &state(run).env; },
    [](lh_run* run, lh_trainer_info* out) { copy_table(out, out->size, &state(run).info); },
    [](lh_run* run, lh_str name, double* out) -> lh_bool {
      return or_else(false, [&] { return state(run).metrics.find(view(name), *out); });
    },
    known_metrics,
    known_groups,
    [](lh_run* run, lh_str reason) {
      state(run).stop = or_else(true, [&] {
        state(run).stop_reason = view(reason);
        return true;
      });
    },
    [](lh_run* run) { return str(state(run).failure); },
    [](lh_run* run) { return str(state(run).checkpoint); },
    [](lh_run* run, lh_tensor* const** out) {
      *out = state(run).predictions;
      return state(run).n_predictions;
    }};

const lh_terminal_v0 kTerminal = {
    sizeof(lh_terminal_v0),
    0,
    []() -> lh_bool { return Terminal::get().is_tty() && Terminal::get().enabled(); },
    []() -> lh_bool { return Terminal::get().colour(); },
    []() -> lh_bool { return Terminal::get().enabled(); },
    []() -> int32_t { return Terminal::get().width(); },
    [](lh_str text) { Terminal::get().status_line(view(text)); },
    [](lh_str text) { Terminal::get().print(view(text)); }};

const lh_ranks_v0 kRanks = {
    sizeof(lh_ranks_v0),
    0,
    [](lh_run* run) { return state(run).env.rank; },
    [](lh_run* run) { return state(run).env.world_size; },
    [](lh_run* run, lh_tensor* t, int32_t op) {
      return answer("all_reduce", [&] { state(run).ranks->all_reduce(t, op); });
    },
    [](lh_run* run, lh_tensor* t, int64_t root) {
      return answer("broadcast", [&] { state(run).ranks->broadcast(t, root); });
    },
    [](lh_run* run) -> lh_bool { return state(run).sync_batchnorm && state(run).step.stage == LH_STAGE_FIT; },
    [](lh_run* run) -> int64_t { return state(run).batch ? state(run).batch->counted : 0; }};

}  // namespace

const void* host_service(std::string_view id) {
  if (id == LH_METRICS_SERVICE) return &kMetrics;
  if (id == LH_TRAINER_SERVICE) return &kTrainer;
  if (id == LH_TERMINAL_SERVICE) return &kTerminal;
  if (id == LH_RANKS_SERVICE) return &kRanks;
  return nullptr;
}

RunHandle::RunHandle(const Engine& engine, const lh_engine_config& config) : engine_(engine), state_(engine) {
  run_.host = reinterpret_cast<lh_host_run*>(&state_);
  check(engine_->run_new(&host_table(), &run_, &config));
}

RunHandle::~RunHandle() {
  state_.metrics.begin_epoch();  // gives back the tensors that it holds while the engine is still there
  state_.metrics.begin_evaluation();
  engine_->run_free(&run_);
}

}  // namespace lhost
