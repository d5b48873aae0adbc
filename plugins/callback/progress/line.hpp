// line.hpp - the text of one progress line: pure functions of what is known and how wide the screen is.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace progress {

struct Style {
  int32_t width = 80;
  bool utf8 = true, colour = false;
};
struct Line {
  std::string label;            // "epoch 4/20"
  int64_t done = 0, total = 0;  // micro-batches; total <= 0: not known
  int64_t counted = 0;          // of `done`, those that took `seconds`
  double seconds = 0;
  std::vector<std::pair<std::string, double>> metrics;
};

// Five or six characters for usual values: 0.213, 2.303, 41.50, 812.4, 0.0418. Padded to `width` from the left.
inline std::string number(double v, int width = 0) {
  const double a = std::fabs(v);
  if (std::isnan(v)) v = a;  // without the sign that no person asks for
  const char* format = !std::isfinite(v) || a == 0 ? "%*.3f"
                       : a >= 1e5 || a < 1e-3      ? "%*.1e"
                       : a >= 1000                 ? "%*.0f"
                       : a >= 100                  ? "%*.1f"
                       : a >= 10                   ? "%*.2f"
                       : a >= 0.1                  ? "%*.3f"
                                                   : "%*.4f";
  char text[32];
  std::snprintf(text, sizeof text, format, width, v);
  return text;
}

// Four characters for usual rates: "5.9k", " 593", "59.3", "5.93".
inline std::string rate(double per_second) {
  const double r = per_second;
  char text[32];
  if (r >= 999.5e3) std::snprintf(text, sizeof text, "%.3gM", r / 1e6);
  else if (r >= 9950) std::snprintf(text, sizeof text, "%3.0fk", r / 1e3);
  else if (r >= 999.5) std::snprintf(text, sizeof text, "%.1fk", r / 1e3);
  else std::snprintf(text, sizeof text, r >= 99.95 ? "%4.0f" : r >= 9.995 ? "%.1f" : "%.2f", r);
  return text;
}

inline std::string clock(double seconds) {
  const auto s = static_cast<long long>(std::min(seconds, 1e9));
  char text[40];
  std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  return text;
}

inline std::string bar(int64_t done, int64_t total, int32_t cells, const Style& style) {
  const auto halves = static_cast<int32_t>(
      std::clamp(2.0 * cells * static_cast<double>(done) / static_cast<double>(total), 0.0, 2.0 * cells));
  const int32_t full = halves / 2, half = halves % 2, rest = cells - full - half;
  auto repeat = [](const char* cell, int32_t n) {
    std::string s;
    for (int32_t i = 0; i < n; ++i) s += cell;
    return s;
  };
  if (!style.utf8) return repeat("#", full) + repeat("-", half + rest);
  const std::string front = repeat("━", full) + repeat("╸", half);
  // without colour the part to come needs a shape of its own
  if (!style.colour) return front + repeat("─", rest);
  return "\x1b[36m" + front + "\x1b[0m\x1b[2m" + repeat("━", rest) + "\x1b[0m";
}

// "  loss 0.213" for each metric.
inline std::vector<std::string> metric_texts(const Line& line, int width = 0) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : line.metrics) texts.push_back("  " + name + " " + number(value, width));
  return texts;
}

// At most width - 1 columns: a line that fills the last one wraps on some terminals. Too narrow: metrics go first,
// the last one first, then time to go and rate, then the bar.
inline std::string render(const Line& line, const Style& style) {
  const auto room = static_cast<size_t>(std::max(style.width - 1, 1));
  const bool known = line.total > 0;
  char count[64];
  const auto digits = static_cast<int>(std::to_string(line.total).size());
  if (known)
    std::snprintf(count, sizeof count, " %3.0f%% %*lld/%lld",
                  100.0 * static_cast<double>(line.done) / static_cast<double>(line.total), digits,
                  static_cast<long long>(line.done), static_cast<long long>(line.total));
  else std::snprintf(count, sizeof count, "  %lld batches", static_cast<long long>(line.done));

  std::vector<std::string> tail;
  const double speed = line.seconds > 0 ? static_cast<double>(line.counted) / line.seconds : 0;
  if (speed > 0) {
    tail.push_back("  " + rate(speed) + " it/s");
    if (known) tail.push_back("  " + clock(static_cast<double>(line.total - line.done) / speed));
  }
  for (std::string& m : metric_texts(line)) tail.push_back(std::move(m));

  std::string text = line.label;
  size_t used = line.label.size() + std::string(count).size();
  if (used > room) return (text + count).substr(0, room);
  const int32_t wanted = std::clamp(style.width / 4, 8, 34);
  const auto cells = std::min(wanted, static_cast<int32_t>(room - used) - 1);
  if (known && cells >= 4) {
    text += " " + bar(line.done, line.total, cells, style);
    used += static_cast<size_t>(cells) + 1;
  }
  text += count;
  for (const std::string& part : tail) {
    if (used + part.size() > room) break;  // bytes are at least columns, so this never wraps
    text += part;
    used += part.size();
  }
  return text;
}

// One line per epoch for files and pipes, in columns that stand still.
inline std::string plain(const Line& line, int64_t steps) {
  char text[64];
  std::snprintf(text, sizeof text, line.seconds < 100 ? "  %lld steps  %.2f s" : "  %lld steps  %.0f s",
                static_cast<long long>(steps), line.seconds);
  std::string s = line.label + text;
  for (const std::string& m : metric_texts(line, 6)) s += m;
  return s;
}

}  // namespace progress
