// plugins/logger/jsonl/jsonl.cpp - logger "jsonl": one JSON object a line and record:
//   {"global_step":50,"epoch":2,"samples":3200,"unix_time":1700000000.125000,"stage":"fit",
//    "metrics":{"loss":0.25}}
// Numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity".
#include <lhost/step.h>
#include <cmath>
#include <lhost/sdk/logger.hpp>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "../common/append_file.hpp"

namespace {

struct Options {
  std::string file = "metrics.jsonl";
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::file, "file", "name of the file in the run's folder");
  }
};

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* stage_name(int32_t stage) {
  switch (stage) {
    case LH_STAGE_FIT:
      return "fit";
    case LH_STAGE_VALIDATE:
      return "validate";
    case LH_STAGE_TEST:
      return "test";
    case LH_STAGE_PREDICT:
      return "predict";
    default:
      return "unknown";
  }
}

class JsonlLogger final : public lhost::Logger {
 public:
  static constexpr const char* summary = "a JSON object a line and record";
  explicit JsonlLogger(const Options& o) : name_(checked_name("file", o.file)) {}

  void save_state(const lhost::StateOut& s) override {
    flush();
    s.put("position", file_.position());
  }
  void load_state(const lhost::StateIn& s) override { s.get("position", keep_); }

  void open(const lh_run_info& run) override {
    const std::string path = std::string(lhost::view(run.dir)) + "/" + name_;
    if (!(run.flags & LH_RUN_RESUMED)) return file_.create(path);
    const std::string text = read_back(path).substr(0, static_cast<size_t>(keep_));
    file_.reopen(path, static_cast<int64_t>(text.rfind('\n') + 1));  // without a line that a crash cut short
  }

  void record(const lh_record& r) override {
    line_.clear();
    member("{\"global_step\":", r.global_step);
    member(",\"epoch\":", r.epoch);
    member(",\"samples\":", r.samples);
    line_ += ",\"unix_time\":";
    append_seconds(line_, r.unix_time_ns);
    line_.append(",\"stage\":\"").append(stage_name(r.stage)).append("\",\"metrics\":{");
    for (uint64_t i = 0; i < r.n_scalars; ++i) {
      if (i) line_ += ',';
      line_ += key(lhost::view(r.scalars[i].name));
      value(r.scalars[i].value);
    }
    line_ += "}}\n";
    file_.append(line_);
  }

  void flush() override { file_.flush(); }
  void close(lh_code, std::string_view) override { file_.close(); }

 private:
  void member(const char* name, int64_t v) {
    line_ += name;
    append_number(line_, v);
  }
  void value(double v) {
    if (std::isnan(v)) line_ += "\"NaN\"";
    else if (std::isinf(v)) line_ += v > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    else append_number(line_, v);
  }
  // A metric's name as JSON with its colon, escaped once.
  const std::string& key(std::string_view name) {
    const auto known = keys_.find(name);
    if (known != keys_.end()) return known->second;
    return keys_.emplace(name, json_string(name) + ':').first->second;
  }

  const std::string name_;
  int64_t keep_ = std::numeric_limits<int64_t>::max();  // all complete lines
  AppendFile file_;
  std::string line_;
  std::map<std::string, std::string, std::less<>> keys_;
};

}  // namespace

LHOST_LOGGER(JsonlLogger, Options, "jsonl", "0.1.0")
