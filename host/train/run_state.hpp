// host/train/run_state.hpp - what a run is at this moment, as services show it to plugins. One per run; made before any
// component, gone after all of them. [train]
#pragma once
#include "train/metrics.hpp"
#include "train/settings.hpp"

#include <lhost/trainer.h>

namespace lhost {

struct RunState {
  explicit RunState(const Engine& engine) : metrics(engine) {}

  lh_step step{sizeof(lh_step), 0, 0, 0, 0, 0, 0, 1, 0, LH_STAGE_FIT, 0};
  lh_env env{sizeof(lh_env), 0, 1, 0, 1, 0, 1, 0, {nullptr, 0}, 0, {nullptr, 0}, 0, 0};
  lh_trainer_info info{sizeof(lh_trainer_info), 0, {nullptr, 0}, {nullptr, 0}, -1, -1, 0, 0};
  Metrics metrics;
  Ranks* ranks = nullptr;           // set before any component sees the run
  bool sync_batchnorm = false;      // of this run's training
  const lh_batch* batch = nullptr;  // the running one
  bool stop = false;                // somebody asked to end training
  std::string stop_reason;
  std::string failure;     // during LH_ON_EXCEPTION
  std::string checkpoint;  // during LH_ON_CHECKPOINT
  std::vector<std::string> group_names;
  std::vector<double*> group_rates;  // the live learning rate of each group
  lh_tensor* const* predictions = nullptr;
  uint64_t n_predictions = 0;
  std::vector<lh_metric_value> shown_metrics;  // answers that stay valid until the next question
  std::vector<lh_group_state> shown_groups;
};

// An lh_run as this host makes it: the engine's half is there from construction to destruction.
class RunHandle {
 public:
  RunHandle(const Engine&, const lh_engine_config&);
  ~RunHandle();
  RunHandle(const RunHandle&) = delete;
  lh_run* get() { return &run_; }
  RunState& state() { return state_; }

 private:
  const Engine& engine_;
  RunState state_;
  lh_run run_{};
};

const void* host_service(std::string_view id);  // services.cpp: metrics, trainer, terminal

}  // namespace lhost
