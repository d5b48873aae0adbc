#include "train/metrics.hpp"

#include "kinds/component.hpp"
#include "train/ranks.hpp"
#include "train/settings.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace lhost {

Metrics::~Metrics() {
  clear(kTrain);
  clear(kEval);
}

uint32_t Metrics::declare(std::string_view name, uint32_t flags, int32_t reduce) {
  const auto refuse = [&](const std::string& why) {
    throw ComponentFailure(PluginError{LH_INVALID_ARGUMENT, "metrics", "log", why});
  };
  const auto bad = [](char c) { return static_cast<unsigned char>(c) < 32; };
  if (name.empty()) refuse("a metric needs a name");
  if (std::any_of(name.begin(), name.end(), bad))
    refuse("the name of a metric holds a control character; use letters, digits, _ - . / and spaces");
  if (reduce < LH_MEAN || reduce > LH_METRIC_MAX)
    refuse("unknown reduction for the metric \"" + std::string(name) + '"');
  for (uint32_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].name != name) continue;
    if (metrics_[i].flags != flags || metrics_[i].reduce != reduce)
      refuse(
          name == "loss"
              ? "the host logs the training loss as \"loss\" by itself; choose another name, or leave it out"
              : "the metric \"" + std::string(name) +
                    "\" was logged before with other options; use one set per name");
    return i;
  }
  metrics_.push_back({std::string(name), flags, reduce, {}});
  return static_cast<uint32_t>(metrics_.size() - 1);
}

bool Metrics::declared(std::string_view name) const {
  return std::any_of(metrics_.begin(), metrics_.end(), [&](const Metric& m) { return m.name == name; });
}

bool Metrics::on_epoch(const Metric& m, int part) const {
  return (m.flags & LH_ON_EPOCH) || (part == kEval && !(m.flags & LH_ON_STEP));
}
bool Metrics::on_step(const Metric& m, int part) const {
  return (m.flags & LH_ON_STEP) || (part == kTrain && !(m.flags & LH_ON_EPOCH));
}

void Metrics::accumulate(const Metric& m, Accumulator& a, double value, double weight) {
  switch (m.reduce) {
    case LH_METRIC_SUM:
      a.value += value;
      break;
    // NaN stays, whenever it came: no comparison with it is true
    case LH_METRIC_MIN:
      if (!a.count || value < a.value || std::isnan(value)) a.value = value;
      break;
    case LH_METRIC_MAX:
      if (!a.count || value > a.value || std::isnan(value)) a.value = value;
      break;
    default:
      a.value += value * weight;
      a.weight += weight;
  }
  ++a.count;
}

void Metrics::add(Metric& m, double value, double weight) {
  Accumulator& a = m.of[part()];
  a.last = value;
  a.fresh = a.seen = true;
  if (counted_ && on_epoch(m, part())) accumulate(m, a, value, weight);
}

lh_status Metrics::log(uint32_t id, lh_tensor* scalar, double weight) {
  if (id >= metrics_.size())
    return make_status(LH_INVALID_ARGUMENT, "metrics", "log", "an unknown metric id");
  Metric& m = metrics_[id];
  double value = 0;
  lh_bool ready = 0;
  if (lh_status s = engine_->scalar(scalar, &value, &ready)) {
    const PluginError e = take(s);
    return make_status(e.code, e.component, e.where, "log(\"" + m.name + "\"): " + e.message);
  }
  if (ready) {
    add(m, value, weight);
    return nullptr;
  }
  Accumulator& a = m.of[part()];
  if (!on_epoch(m, part())) {  // only the newest can ever be asked for
    for (Pending& p : a.pending) engine_.tensor.release(p.handle);
    a.pending.clear();
  }
  lh_tensor* kept = nullptr;
  if (lh_status s = engine_.tensor.retain(scalar, &kept)) return s;
  a.pending.push_back({kept, weight, counted_});
  a.fresh = a.seen = true;
  return nullptr;
}

lh_status Metrics::log_number(uint32_t id, double value, double weight) {
  if (id >= metrics_.size())
    return make_status(LH_INVALID_ARGUMENT, "metrics", "log", "an unknown metric id");
  add(metrics_[id], value, weight);
  return nullptr;
}

// Read what was left on a device. The only place that waits for it.
void Metrics::settle(Metric& m, int part) {
  Accumulator& a = m.of[part];
  for (Pending& p : a.pending) {
    double value = 0;
    check(engine_.ops.to_host(p.handle, &value));
    engine_.tensor.release(p.handle);
    a.last = value;
    if (p.counted && on_epoch(m, part)) accumulate(m, a, value, p.weight);
  }
  a.pending.clear();
}

double Metrics::reduced(const Metric& m, const Accumulator& a) {
  if (m.reduce != LH_MEAN) return a.value;
  return a.weight != 0 ? a.value / a.weight : std::numeric_limits<double>::quiet_NaN();
}

void Metrics::merge(int32_t reduce, Accumulator& into, const Accumulator& other) {
  if (other.count == 0) return;
  const bool smaller = other.value < into.value || std::isnan(other.value);
  const bool larger = other.value > into.value || std::isnan(other.value);
  if (reduce == LH_METRIC_MIN || reduce == LH_METRIC_MAX) {
    if (into.count == 0 || (reduce == LH_METRIC_MIN ? smaller : larger)) into.value = other.value;
  } else {
    into.value += other.value;
  }
  into.weight += other.weight;
  into.count += other.count;
}

namespace {

struct Line {  // one metric of one rank, on its way
  double value, weight;
  int64_t count;
};

void write_line(std::string& text, const std::string& name, const Line& line) {
  const auto length = static_cast<uint32_t>(name.size());
  text.append(reinterpret_cast<const char*>(&length), sizeof length).append(name);
  text.append(reinterpret_cast<const char*>(&line), sizeof line);
}

std::map<std::string, Line> read_lines(const std::string& text) {
  std::map<std::string, Line> lines;
  for (size_t at = 0; at < text.size();) {
    uint32_t length = 0;
    std::memcpy(&length, text.data() + at, sizeof length);
    const std::string name = text.substr(at + sizeof length, length);
    at += sizeof length + length;
    std::memcpy(&lines[name], text.data() + at, sizeof(Line));
    at += sizeof(Line);
  }
  return lines;
}

// Every rank finds the same first difference, and says the same.
void check_names(const std::vector<std::map<std::string, Line>>& ranks) {
  for (size_t has = 0; has < ranks.size(); ++has)
    for (const auto& [name, line] : ranks[has])
      for (size_t lacks = 0; lacks < ranks.size(); ++lacks)
        if (!ranks[lacks].count(name))
          throw ComponentFailure(PluginError{
              LH_FAILED_PRECONDITION, "metrics", "epoch",
              "the metric \"" + name + "\" was logged on rank " + std::to_string(has) + ", but not on rank " +
                  std::to_string(lacks) + "; log the same metrics on every rank"});
}

}  // namespace

// The values of each metric over all ranks, matched by name, added in rank order.
std::vector<Metrics::Accumulator> Metrics::over_ranks(int part, bool strict) {
  std::vector<Accumulator> out(metrics_.size());
  std::string mine;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    Metric& m = metrics_[i];
    if (!on_epoch(m, part)) continue;
    settle(m, part);
    const Accumulator& a = m.of[part];
    out[i].value = a.value;
    out[i].weight = a.weight;
    out[i].count = a.count;
    if (a.seen) write_line(mine, m.name, {a.value, a.weight, a.count});
  }
  if (!ranks_ || ranks_->alone()) return out;
  std::vector<std::map<std::string, Line>> all;
  for (const std::string& text : ranks_->gather(mine)) all.push_back(read_lines(text));
  if (strict) check_names(all);
  for (size_t i = 0; i < metrics_.size(); ++i) {
    out[i] = {};
    for (const auto& rank : all) {
      const auto line = rank.find(metrics_[i].name);
      if (line == rank.end()) continue;
      Accumulator other;
      other.value = line->second.value;
      other.weight = line->second.weight;
      other.count = line->second.count;
      merge(metrics_[i].reduce, out[i], other);
    }
  }
  return out;
}

// In the test stage a leading "val_" becomes "test_": the same model code names both.
std::string Metrics::shown_name(const std::string& name) const {
  return stage_ == kTest && name.rfind("val_", 0) == 0 ? "test_" + name.substr(4) : name;
}

void Metrics::know(const std::string& name, double value, uint32_t flags) {
  for (KnownMetric& k : known_)
    if (k.name == name) {
      k.value = value;
      return;
    }
  known_.push_back({name, value, flags});
}

std::vector<Scalar> Metrics::step_values() {
  std::vector<Scalar> out;
  for (Metric& m : metrics_) {
    Accumulator& a = m.of[part()];
    if (!a.fresh || !on_step(m, part())) continue;
    settle(m, part());
    a.fresh = false;
    const std::string name = shown_name(m.name);
    const bool both = on_epoch(m, part());
    out.push_back({both ? name + "_step" : name, a.last});
    know(out.back().name, a.last, m.flags);
  }
  return out;
}

std::vector<Scalar> Metrics::epoch_values() {
  std::vector<Scalar> out;
  const std::vector<Accumulator> all = over_ranks(part(), true);
  for (size_t i = 0; i < metrics_.size(); ++i) {
    const Metric& m = metrics_[i];
    const Accumulator& a = all[i];
    if (a.count == 0) continue;
    const std::string name = shown_name(m.name);
    const bool both = on_step(m, part());
    const double value = reduced(m, a);
    out.push_back({both ? name + "_epoch" : name, value});
    if (both) know(out.back().name, value, m.flags);
    know(name, value, m.flags);
  }
  return out;
}

const std::vector<KnownMetric>& Metrics::known() {
  for (Metric& m : metrics_) {
    Accumulator& a = m.of[part()];
    if (!a.fresh || on_epoch(m, part())) continue;  // an epoch's value is not known before its end
    settle(m, part());
    know(shown_name(m.name), a.last, m.flags);
  }
  return known_;
}

bool Metrics::find(std::string_view name, double& out) {
  for (const KnownMetric& k : known())
    if (k.name == name) {
      out = k.value;
      return true;
    }
  return false;
}

void Metrics::clear(int part) {
  for (Metric& m : metrics_) {
    Accumulator& a = m.of[part];
    for (Pending& p : a.pending) engine_.tensor.release(p.handle);
    a = {};
  }
}

std::vector<Metrics::Saved> Metrics::save_epoch() {
  std::vector<Saved> out;
  const std::vector<Accumulator> all = over_ranks(kTrain, false);
  for (size_t i = 0; i < metrics_.size(); ++i)
    if (const Accumulator& a = all[i]; a.count)
      out.push_back({metrics_[i].name, metrics_[i].flags, metrics_[i].reduce, a.value, a.weight, a.count});
  return out;
}

void Metrics::load_epoch(const std::vector<Saved>& saved) {
  for (const Saved& s : saved) {
    Accumulator& a = metrics_[declare(s.name, s.flags, s.reduce)].of[kTrain];
    a.value = s.value;
    a.weight = s.weight;
    a.count = s.count;
    a.seen = true;
  }
}

}  // namespace lhost
