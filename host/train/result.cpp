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

Exit exit_of(lh_code code) {
  switch (code) {
    case LH_PERMISSION:
    case LH_RESOURCE_EXHAUSTED:
      return Exit::environment;
    case LH_ABI_MISMATCH:
    case LH_PLUGIN_FAULT:
      return Exit::plugin;
    case LH_PEER_LOST:
    case LH_ABORTED:
      return Exit::peer;
    default:
      return Exit::failed;
  }
}

namespace {
void read_numbers(const nlohmann::json& j, std::map<std::string, double>& out) {
  for (const auto& [name, v] : j.items())
    out[name] = v.is_number() ? v.get<double>() : std::strtod(v.get<std::string>().c_str(), nullptr);
}
}  // namespace

bool read_result(const std::string& file, RunResult& r) {
  try {
    const auto j = nlohmann::json::parse(read_file(file));
    j.at("outcome").get_to(r.outcome);
    r.code = static_cast<Exit>(j.at("exit_code").get<int>());
    if (j.contains("error")) {
      j["error"].at("message").get_to(r.error);
      j["error"].at("code").get_to(r.error_code);
      j["error"].at("where").get_to(r.where);
    }
    r.stop_reason = j.value("stop_reason", "");
    for (const auto& [name, s] : j.at("stages").items())
      r.stages[name] = {s.value("epochs", int64_t{0}), s.value("global_step", int64_t{0}), s.at("samples"),
                        s.at("seconds")};
    read_numbers(j.at("metrics").at("last"), r.last);
    read_numbers(j.at("metrics").at("best"), r.best);
    read_numbers(j.at("metrics").at("test"), r.test);
    const auto& checkpoints = j.at("checkpoints");
    if (const auto& best = checkpoints.at("best"); !best.is_null()) {
      best.at("path").get_to(r.best_path);
      r.best_monitor = best.value("monitor", "");
      if (best.contains("value") && best["value"].is_number()) r.best_value = best["value"].get<double>();
    }
    if (const auto& last = checkpoints.at("last"); !last.is_null()) last.get_to(r.last_path);
    for (const auto& [name, v] : j.at("versions").items()) {
      if (name == "plugins") v.get_to(r.plugins);
      else r.versions[name] = v.get<std::string>();
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void write_result(const RunResult& r) { write_atomically(r.run_folder + "/result.json", to_json(r)); }

}  // namespace lhost
