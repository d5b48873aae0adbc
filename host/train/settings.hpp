// host/train/settings.hpp - everything that the loop needs to know of the manifest, as plain data.
// Filled by assembly; host/train knows no manifest.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lhost {

enum Stage : int32_t { kFit = 0, kValidate = 1, kTest = 2, kPredict = 3 };  // LH_STAGE_*
const char* stage_name(int32_t stage);                                      // "fit"
const char* split_name(int32_t split);                                      // "train"

struct Limit {  // limit_*_batches
  bool is_share = true;
  double share = 1;
  int64_t batches = 0;
};

struct CheckpointPolicy {  // one [[checkpoint]]
  std::string instance;    // "checkpoint[0]"
  std::string dir = "checkpoints", filename = "{epoch}-{step}";
  std::string monitor;  // empty: the newest is the best
  bool larger_is_better = false;
  int64_t save_top_k = 1;
  enum class Last { no, copy, link } save_last = Last::no;
  std::optional<int64_t> every_n_epochs, every_n_steps;
  bool weights_only = false, on_exception = false, on_signal = true;
};

struct ScheduleSettings {
  int64_t warmup_ticks = 0;
  double warmup_share = 0;  // of all ticks; used when warmup_ticks is 0
  bool by_step = false;     // else by epoch
  int64_t frequency = 1;
};

struct GroupSettings {  // one [[optimizer.group]]; the base group has an empty match
  std::string name, match;
  std::vector<double> hyper;  // one per LH_O_HYPER option of the optimizer
  bool lr_from_command_line = false;
};

struct Settings {
  std::string name, dir;  // run folder: <dir>/<name>/version_N
  uint64_t seed = 42;
  std::vector<int32_t> stages;

  std::optional<int64_t> max_epochs;  // nothing: 1000 unless max_steps is set; -1: no limit
  int64_t min_epochs = 0, max_steps = -1, min_steps = 0;
  Limit limits[4];  // by split
  int64_t accumulate = 1;
  double clip = 0;  // 0 = off
  bool clip_by_value = false;
  int64_t log_every = 50, val_every_epochs = 1, sanity_batches = 2;
  int32_t threads = 0;
  std::vector<int64_t> devices;  // of this machine, by local rank; empty: "auto"
  int64_t num_nodes = 1;
  bool sync_batchnorm = false;
  int64_t max_restarts = 0;
  double timeout_s = 600, connect_timeout_s = 300;  // of the collective
  bool check_collectives = false;
  bool flush_denormal = true;

  int64_t batch_size = 32;
  bool shuffle = true, drop_last = false;
  std::optional<double> split_train, split_val;
  int32_t data_threads = 0;

  std::vector<std::string> hyper_names;  // of the optimizer; one is "lr"
  std::vector<GroupSettings> groups;     // [0] is the base group
  ScheduleSettings schedule;
  std::vector<CheckpointPolicy> checkpoints;
  std::vector<bool> logger_stops, callback_warns;  // on_error, parallel to the lists of components
  bool profiler_stops = false;

  std::string resume;  // "", "last", "best", "auto" or a path
  bool resume_strict = true;

  std::string manifest;  // the resolved manifest as TOML, secrets masked
  std::vector<std::pair<std::string, std::string>> hyper_parameters;  // flattened, for loggers
  std::string host_version;
};

}  // namespace lhost
