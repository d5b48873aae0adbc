// simple - how often each span ran and how long: profile.txt in the run's folder, and a table at the end.
// begin and end touch one preallocated array; wall time runs from the first begin to the last end.
#include <lhost/sdk/profiler.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>

namespace {

constexpr const char* kNames[LH_SPAN_COUNT] = {"step",      "data",     "forward",  "backward",  "sync",
                                               "optimizer", "callback", "evaluate", "checkpoint"};

struct Total {
  int64_t count = 0, total = 0, least = INT64_MAX, most = 0;  // nanoseconds
  int64_t began = 0;
  int32_t depth = 0;  // a span inside itself counts once
};

struct Simple : lhost::Profiler {
  static constexpr const char* summary = "how often each part of a step ran and how long";
  uint64_t start(const lh_run_info& run) override {
    folder_ = std::string(lhost::view(run.dir));
    file_ = run.rank == 0 ? "profile.txt" : "profile.rank_" + std::to_string(run.rank) + ".txt";
    return (uint64_t{1} << LH_SPAN_COUNT) - 1;
  }

  void begin(int32_t span, int64_t now) noexcept override {
    if (span < 0 || span >= LH_SPAN_COUNT) return;
    Total& t = totals_[static_cast<size_t>(span)];
    if (t.depth++ == 0) t.began = now;
    if (first_ < 0) first_ = now;
  }

  void end(int32_t span, int64_t now) noexcept override {
    if (span < 0 || span >= LH_SPAN_COUNT) return;
    Total& t = totals_[static_cast<size_t>(span)];
    if (t.depth == 0 || --t.depth > 0) return;
    const int64_t ns = now - t.began;
    ++t.count;
    t.total += ns;
    t.least = std::min(t.least, ns);
    t.most = std::max(t.most, ns);
    last_ = std::max(last_, now);
  }

  std::string stop() override {
    const std::string text = table();
    const std::string path = folder_ + "/" + file_;
    std::ofstream out(path);
    out << text << '\n';
    if (!out.flush())
      throw lhost::Error(LH_UNAVAILABLE, "the profile cannot be written to " + path + ": " +
                                             std::strerror(errno) +
                                             "; make the folder writable or remove [profiler]");
    return text;
  }

 private:
  std::string table() const {
    std::array<size_t, LH_SPAN_COUNT> order;
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return totals_[a].total > totals_[b].total; });
    const double wall = first_ < 0 ? 0 : 1e-9 * static_cast<double>(last_ - first_);
    char line[160];
    std::snprintf(line, sizeof line, "%-10s %9s %11s %11s %11s %11s %7s", "span", "count", "total s",
                  "mean ms", "min ms", "max ms", "share");
    std::string text = line;
    for (size_t i : order) {
      const Total& t = totals_[i];
      if (t.count == 0) continue;
      const double total = 1e-9 * static_cast<double>(t.total);
      std::snprintf(line, sizeof line, "\n%-10s %9lld %11.3f %11.3f %11.3f %11.3f %5.1f %%", kNames[i],
                    static_cast<long long>(t.count), total, 1e3 * total / static_cast<double>(t.count),
                    1e-6 * static_cast<double>(t.least), 1e-6 * static_cast<double>(t.most),
                    wall > 0 ? 100 * total / wall : 0.0);
      text += line;
    }
    std::snprintf(line, sizeof line,
                  "\nwall time %.3f s; forward, backward, sync and optimizer are parts of step", wall);
    return text + line;
  }

  std::array<Total, LH_SPAN_COUNT> totals_;
  int64_t first_ = -1, last_ = 0;
  std::string folder_, file_;
};

}  // namespace
LHOST_PROFILER(Simple, lhost::NoOptions, "simple", "1.0.0")
