// early_stopping - ends training when a metric no longer improves.
// It looks after each validation of fit; patience counts looks.
#include <lhost/sdk/callback.hpp>

#include <cmath>
#include <limits>
#include <optional>

namespace {

enum class Mode { kAuto, kMin, kMax };

struct Options {
  std::string monitor;
  Mode mode = Mode::kAuto;
  int64_t patience = 3;
  double min_delta = 0;
  std::optional<double> stopping_threshold, divergence_threshold;
  bool check_finite = true, strict = true;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::monitor, "monitor", "the metric to watch").required();
    d(&Options::mode, "mode",
      "is less or more of it better; auto: less of ..._loss and ..._err, more of ..._acc")
        .choices({"auto", "min", "max"});
    d(&Options::patience, "patience", "validations without improvement after which training ends").min(0);
    d(&Options::min_delta, "min_delta", "a change counts as improvement only above this").min(0.0);
    d(&Options::stopping_threshold, "stopping_threshold", "stop as soon as the metric is better than this");
    d(&Options::divergence_threshold, "divergence_threshold",
      "stop as soon as the metric is worse than this");
    d(&Options::check_finite, "check_finite", "stop when the metric is not a finite number");
    d(&Options::strict, "strict", "fail if the metric does not exist at a validation");
  }
};

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

// The same names as [[checkpoint]] monitor knows; another one has to be told.
bool wants_less(const Options& o) {
  if (o.mode != Mode::kAuto) return o.mode == Mode::kMin;
  const auto ends_in = [&](std::string_view end) {
    return o.monitor.size() >= end.size() && o.monitor.substr(o.monitor.size() - end.size()) == end;
  };
  if (ends_in("loss") || ends_in("err")) return true;
  if (ends_in("acc")) return false;
  throw lhost::Error(LH_INVALID_ARGUMENT, "monitor: is a low or a high \"" + o.monitor +
                                              "\" better? add mode = \"min\" or mode = \"max\"");
}

struct EarlyStopping : lhost::Callback {
  static constexpr const char* summary = "ends training when a metric no longer improves";
  explicit EarlyStopping(const Options& o)
      : options(o),
        less_is_better(wants_less(o)),
        best(less_is_better ? std::numeric_limits<double>::infinity()
                            : -std::numeric_limits<double>::infinity()) {}

  void on_validation_end() override {
    if (trainer().sanity_check() || !fitting) return;
    double current = 0;
    if (!trainer().metric(options.monitor, current)) return missing();
    looked = true;
    const std::string reason = verdict(current);
    if (!reason.empty()) trainer().stop("early_stopping: " + options.monitor + " " + reason);
  }
  void on_fit_start() override { fitting = true; }
  void on_fit_end() override {
    fitting = false;
    if (!looked)
      lhost::log(LH_LOG_WARN, "\"" + options.monitor +
                                  "\" was never looked at: no validation ran in this fit that has it");
  }
  void save_state(const lhost::StateOut& out) override {
    out.put("wait", wait);
    out.put("best", best);
  }
  void load_state(const lhost::StateIn& in) override {
    in.get("wait", wait);
    in.get("best", best);
  }

 private:
  bool better(double a, double b) const { return less_is_better ? a < b : a > b; }

  // Why training should end, or nothing. The order of the questions is Lightning's.
  std::string verdict(double current) {
    if (options.check_finite && !std::isfinite(current))
      return "is " + number(current) + ", not a finite number; best " + number(best);
    if (options.stopping_threshold && better(current, *options.stopping_threshold))
      return "= " + number(current) + " is better than the stopping threshold " +
             number(*options.stopping_threshold);
    if (options.divergence_threshold && better(*options.divergence_threshold, current))
      return "= " + number(current) + " is worse than the divergence threshold " +
             number(*options.divergence_threshold);
    const double step = less_is_better ? options.min_delta : -options.min_delta;
    if (better(current + step, best)) {
      best = current;
      wait = 0;
      return {};
    }
    if (++wait < options.patience) return {};
    return "did not improve in " + std::to_string(wait) + (wait == 1 ? " validation" : " validations") +
           " (mode \"" + (less_is_better ? "min" : "max") + "\"); best " + number(best);
  }

  void missing() {
    std::string names;
    for (const lh_metric_value& m : trainer().metrics())
      names += (names.empty() ? "\"" : ", \"") + std::string(lhost::view(m.name)) + '"';
    const std::string text = "there is no metric \"" + options.monitor + "\" at this validation; " +
                             (names.empty() ? "nothing has been logged yet" : "known are " + names);
    if (options.strict)
      throw lhost::Error(
          LH_NOT_FOUND,
          text + "; correct callback.monitor, log it in validation_step, or set strict = false");
    if (!warned) lhost::log(LH_LOG_WARN, text + "; not looking");
    warned = true;
  }

  const Options options;
  const bool less_is_better;
  double best;
  int64_t wait = 0;  // looks since the last improvement
  bool fitting = false, looked = false, warned = false;
};

}  // namespace
LHOST_CALLBACK(EarlyStopping, Options, "early_stopping", "1.0.0")
