// progress - the only painter: a status line with bar, rate, time to go, metrics; on a pipe one line per epoch.
// A call per batch costs one reading of the clock; painting happens refresh_per_second times a second.
#include "line.hpp"

#include <lhost/sdk/callback.hpp>

#include <chrono>
#include <cstdlib>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostMetrics = 6;    // when the model flagged none
constexpr double kLongestWait = 1e6;  // seconds; more would not fit the clock

struct Options {
  double refresh_per_second = 10;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::refresh_per_second, "refresh_per_second",
      "paintings of the bar; 0 = no bar, one line per epoch")
        .min(0.0);
  }
};

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string v;
    for (const char* c = value; *c; ++c)
      if (*c != '-') v += static_cast<char>(*c | 0x20);
    return v.find("utf8") != v.npos;
  }
  return false;
}

struct Progress : lhost::Callback {
  static constexpr const char* summary =
      "shows how far the run is: a bar on a terminal, one line an epoch elsewhere";
  explicit Progress(const Options& o) : refresh(o.refresh_per_second) {
    if (refresh > 0)
      interval = std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(std::min(1 / refresh, kLongestWait)));
  }

  void on_fit_start() override { fitting = true; }
  void on_train_epoch_start() override {
    const int64_t epochs = trainer().info().max_epochs;
    char label[64];
    const auto epoch = static_cast<long long>(trainer().epoch() + 1);
    const auto digits = static_cast<int>(std::to_string(epochs).size());
    if (epochs > 0)
      std::snprintf(label, sizeof label, "epoch %*lld/%lld", digits, epoch, static_cast<long long>(epochs));
    else std::snprintf(label, sizeof label, "epoch %lld", epoch);
    begin(train, label);
    steps_before = trainer().global_step();
  }
  void on_train_batch_end() override { advance(train); }
  void on_train_epoch_end() override {
    train.line.seconds = since(train);
    train.line.metrics = metrics_to_show();
    steps = trainer().global_step() - steps_before;
    if (!painting && terminal.enabled()) terminal.print(progress::plain(train.line, steps));
  }
  void on_fit_end() override {
    fitting = false;
    clear();
    if (painting && steps > 0) terminal.print(progress::plain(train.line, steps));  // where the bar ended
  }

  void on_validation_start() override { begin(other, trainer().sanity_check() ? "check" : "validate"); }
  void on_validation_batch_end() override { advance(other); }
  void on_validation_end() override {
    if (fitting) train.start += Clock::now() - other.start;  // the epoch's rate is of training alone
    else clear();
  }
  void on_test_start() override { begin(other, "test"); }
  void on_test_batch_end() override { advance(other); }
  void on_test_end() override { clear(); }
  void on_predict_start() override { begin(other, "predict"); }
  void on_predict_batch_end() override { advance(other); }
  void on_predict_end() override { clear(); }
  void on_exception() override { clear(); }

 private:
  struct Pass {  // one epoch of training, or one evaluation
    progress::Line line;
    Clock::time_point start;
    int64_t first = -1;  // batch it began with: not 0 after a resume in mid-epoch
  };

  static double since(const Pass& pass) {
    return std::chrono::duration<double>(Clock::now() - pass.start).count();
  }

  void begin(Pass& pass, std::string label) {
    painting = refresh > 0 && terminal.enabled() && terminal.is_tty();
    pass.line.label = std::move(label);
    pass.line.metrics.clear();
    pass.line.total = trainer().info().batches;
    pass.first = -1;
    pass.start = Clock::now();
  }
  void advance(Pass& pass) {
    if (!painting) return;
    if (pass.first < 0) pass.first = trainer().batch();
    const auto now = Clock::now();
    if (now < next_paint) return;
    next_paint = now + interval;
    progress::Line& line = pass.line;
    line.done = trainer().batch() + 1;
    line.counted = line.done - pass.first;
    line.seconds = std::chrono::duration<double>(now - pass.start).count();
    if (fitting) line.metrics = metrics_to_show();
    terminal.status_line(progress::render(line, {terminal.width(), utf8, terminal.colour()}));
  }
  void clear() {
    if (painting) terminal.status_line("");
  }

  // Those that the model flagged, and the loss; if it flagged none, the first few.
  std::vector<std::pair<std::string, double>> metrics_to_show() {
    std::vector<std::pair<std::string, double>> flagged, all;
    bool any = false;
    for (const lh_metric_value& m : trainer().metrics()) {
      const std::pair<std::string, double> shown(lhost::view(m.name), m.value);
      const bool bar = (m.flags & LH_PROG_BAR) != 0;
      any = any || bar;
      if (bar || shown.first == "loss") flagged.push_back(shown);
      if (all.size() < kMostMetrics) all.push_back(shown);
    }
    return any ? flagged : all;
  }

  const double refresh;
  Clock::duration interval{};
  Clock::time_point next_paint{};
  lhost::Terminal terminal;
  const bool utf8 = locale_is_utf8();
  bool painting = false;  // a terminal, and the bar is wanted
  bool fitting = false;
  Pass train, other;
  int64_t steps_before = 0, steps = 0;  // of the epoch
};

}  // namespace
LHOST_CALLBACK(Progress, Options, "progress", "1.0.0")
