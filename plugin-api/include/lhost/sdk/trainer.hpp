// lhost/sdk/trainer.hpp - the run as models and callbacks see it: counters, metrics, terminal.
#pragma once
#include <lhost/trainer.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

namespace detail {
inline Service<lh_trainer_v0> trainer_service;
inline Service<lh_terminal_v0> terminal_service;
inline Service<lh_metrics_v0> metrics_service;
}  // namespace detail

// Values lent by the host.
template <class T>
class Span {
 public:
  Span(const T* first, uint64_t n) : first_(first), n_(n) {}
  const T* begin() const { return first_; }
  const T* end() const { return first_ + n_; }
  uint64_t size() const { return n_; }

 private:
  const T* first_;
  uint64_t n_;
};

class Trainer {
 public:
  explicit Trainer(lh_run* run) : run_(run) {}
  lh_run* run() const { return run_; }
  int64_t global_step() const { return step().global_step; }  // optimizer rounds done
  int64_t epoch() const { return step().epoch; }              // the running one, from 0
  int64_t batch() const { return step().batch; }
  int64_t samples() const { return step().samples; }
  int32_t stage() const { return step().stage; }
  bool sanity_check() const { return (step().flags & LH_STEP_SANITY) != 0; }
  int64_t rank() const { return detail::trainer_service->env(run_)->rank; }
  int64_t world_size() const { return detail::trainer_service->env(run_)->world_size; }
  lh_trainer_info info() const {
    lh_trainer_info i{};
    i.size = sizeof i;
    detail::trainer_service->info(run_, &i);
    return i;
  }
  bool metric(std::string_view name, double& out) const {
    return detail::trainer_service->metric(run_, str(name), &out) != 0;
  }
  // Last known values, in the order in which they were first logged; lent until the next call of log.
  Span<lh_metric_value> metrics() const {
    const lh_metric_value* first = nullptr;
    const uint64_t n = detail::trainer_service->metrics(run_, &first);
    return {first, n};
  }
  // The optimizer's parameter groups with their rates; lent until the next call.
  Span<lh_group_state> groups() const {
    const lh_group_state* first = nullptr;
    const uint64_t n = detail::trainer_service->groups(run_, &first);
    return {first, n};
  }
  // End training after the running step or epoch, once min_epochs and min_steps are met.
  void stop(std::string_view reason) { detail::trainer_service->stop(run_, str(reason)); }
  std::string_view failure() const { return view(detail::trainer_service->failure(run_)); }
  std::string_view checkpoint() const { return view(detail::trainer_service->checkpoint(run_)); }
  // What predict_step returned for the running batch; lent until the hook returns.
  Span<lh_tensor*> predictions() const {
    lh_tensor* const* first = nullptr;
    const uint64_t n = detail::trainer_service->predictions(run_, &first);
    return {first, n};
  }

 private:
  const lh_step& step() const { return *detail::trainer_service->step(run_); }
  lh_run* run_;
};

// The only way to the screen.
class Terminal {
 public:
  bool is_tty() const { return detail::terminal_service->is_tty() != 0; }
  bool colour() const { return detail::terminal_service->colour() != 0; }
  bool enabled() const { return detail::terminal_service->enabled() != 0; }
  int32_t width() const { return detail::terminal_service->width(); }
  void status_line(std::string_view text) const { detail::terminal_service->status_line(str(text)); }
  void print(std::string_view text) const { detail::terminal_service->print(str(text)); }
};

// log() for everything that is not a model.
class Metrics {
 public:
  explicit Metrics(lh_run* run) : run_(run) {}
  uint32_t declare(std::string_view name, uint32_t flags = 0, int32_t reduce = LH_MEAN) {
    uint32_t id = 0;
    check(detail::metrics_service->declare(run_, str(name), flags, reduce, &id));
    return id;
  }
  void log(uint32_t id, double value, double weight = 1) {
    check(detail::metrics_service->log_number(run_, id, value, weight));
  }

 private:
  lh_run* run_;
};

}  // namespace lhost
