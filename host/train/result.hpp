// host/train/result.hpp - what a run came to: the content of result.json.
#pragma once
#include "base/failure.hpp"

#include <lhost/abi.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lhost {

struct StageResult {
  int64_t epochs = 0, global_step = 0, samples = 0;
  double seconds = 0;
};

struct RunResult {
  std::string outcome = "done";  // done | failed | interrupted | refused
  Exit code = Exit::done;
  std::string error, error_code, where;  // of a failure: text, "LH_DATA_LOSS"-like code, component and place
  std::string run_folder;
  std::map<std::string, StageResult> stages;  // "fit", "test"
  std::map<std::string, double> last, best, test;
  std::string best_path, best_monitor, last_path;
  std::optional<double> best_value;
  std::string stop_reason;
  std::map<std::string, std::string> versions;
  std::map<std::string, std::string> plugins;  // "optimizer:adamw" -> version
};

std::string to_json(const RunResult&);
bool read_result(const std::string& file, RunResult&);  // false: there is none, or it cannot be read
Exit exit_of(lh_code);                                  // of a run that a component's error ended
void write_result(const RunResult&);                    // <run folder>/result.json, atomically
const char* code_name(int32_t code);                    // LH_DATA_LOSS -> "DATA_LOSS"

}  // namespace lhost
