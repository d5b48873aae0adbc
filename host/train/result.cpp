#include "train/result.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <lhost/abi.h>

#include <nlohmann/json.hpp>

#include <cmath>

namespace lhost {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN: such values are written as strings.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(exact(v)); }
Json numbers(const std::map<std::string, double>& m) {
  Json j = Json::object();
  for (const auto& [name, value] : m) j[name] = number(value);
  return j;
}

Json stage_json(const StageResult& s) {
  Json j = {{"samples", s.samples}, {"seconds", s.seconds}};
  j["samples_per_s"] = s.seconds > 0 ? static_cast<double>(s.samples) / s.seconds : 0.0;
  if (s.epochs || s.global_step) {
    j["epochs"] = s.epochs;
    j["global_step"] = s.global_step;
  }
  return j;
}

}  // namespace

const char* code_name(int32_t code) {
  static const std::map<int32_t, const char*> names = {{LH_OK, "OK"},
                                                       {LH_CANCELLED, "CANCELLED"},
                                                       {LH_UNKNOWN, "UNKNOWN"},
                                                       {LH_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
                                                       {LH_DEADLINE, "DEADLINE"},
                                                       {LH_NOT_FOUND, "NOT_FOUND"},
                                                       {LH_ALREADY_EXISTS, "ALREADY_EXISTS"},
                                                       {LH_PERMISSION, "PERMISSION"},
                                                       {LH_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
                                                       {LH_FAILED_PRECONDITION, "FAILED_PRECONDITION"},
                                                       {LH_ABORTED, "ABORTED"},
                                                       {LH_OUT_OF_RANGE, "OUT_OF_RANGE"},
                                                       {LH_UNIMPLEMENTED, "UNIMPLEMENTED"},
                                                       {LH_INTERNAL, "INTERNAL"},
                                                       {LH_UNAVAILABLE, "UNAVAILABLE"},
                                                       {LH_DATA_LOSS, "DATA_LOSS"},
                                                       {LH_ABI_MISMATCH, "ABI_MISMATCH"},
                                                       {LH_PLUGIN_FAULT, "PLUGIN_FAULT"},
                                                       {LH_PEER_LOST, "PEER_LOST"}};
  const auto i = names.find(code);
  return i == names.end() ? "UNKNOWN" : i->second;
}

std::string to_json(const RunResult& r) {
  Json j;
  j["schema"] = 1;
  j["outcome"] = r.outcome;
  j["exit_code"] = static_cast<int>(r.code);
  if (!r.error.empty()) j["error"] = {{"code", r.error_code}, {"message", r.error}, {"where", r.where}};
  if (!r.stop_reason.empty()) j["stop_reason"] = r.stop_reason;
  j["stages"] = Json::object();
  for (const auto& [name, s] : r.stages) j["stages"][name] = stage_json(s);
  j["metrics"] = {{"last", numbers(r.last)}, {"best", numbers(r.best)}, {"test", numbers(r.test)}};
  Json best = nullptr;
  if (!r.best_path.empty()) {
    best = {{"path", r.best_path}};
    if (!r.best_monitor.empty()) best["monitor"] = r.best_monitor;
    if (r.best_value) best["value"] = number(*r.best_value);
  }
  j["checkpoints"] = {{"best", best}, {"last", r.last_path.empty() ? Json(nullptr) : Json(r.last_path)}};
  j["versions"] = Json::object();
  for (const auto& [name, v] : r.versions) j["versions"][name] = v;
  j["versions"]["plugins"] = Json::object();
  for (const auto& [name, v] : r.plugins) j["versions"]["plugins"][name] = v;
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_result(const RunResult& r) { write_atomically(r.run_folder + "/result.json", to_json(r)); }

}  // namespace lhost
