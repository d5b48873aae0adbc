#include "base/text.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace lhost {

std::string grouped(int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n), s;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) s += ' ';
    s += digits[i];
  }
  return n < 0 ? "-" + s : s;
}

namespace {
std::string print(const char* format, double v) {
  char b[64];
  std::snprintf(b, sizeof b, format, v);
  return b;
}
}  // namespace

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (bytes >= 1024 && u < 4) bytes /= 1024, ++u;
  return print(bytes < 10 && u ? "%.1f " : "%.0f ", bytes) + units[u];
}

std::string human_rate(double v) {
  const char* units[] = {"", "k", "M", "G"};
  int u = 0;
  while (v >= 1000 && u < 3) v /= 1000, ++u;
  return print(v < 10 ? "%.1f" : "%.0f", v) + units[u];
}

std::string human_seconds(double s) {
  if (s < 60) return print(s < 10 ? "%.2f s" : "%.1f s", s);
  const auto whole = static_cast<int64_t>(s);
  char b[64];
  if (whole < 3600)
    std::snprintf(b, sizeof b, "%d min %02d s", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  else
    std::snprintf(b, sizeof b, "%lld h %02d min", static_cast<long long>(whole / 3600),
                  static_cast<int>(whole / 60 % 60));
  return b;
}

std::string significant(double v) { return std::isnan(v) ? "nan" : print("%.4g", v); }

std::string exact(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  char b[40];
  return {b, std::to_chars(b, b + sizeof b, v).ptr};
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string s;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) s += separator;
    s += parts[i];
  }
  return s;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t next = text.find(separator, at);
    parts.emplace_back(text.substr(at, next == text.npos ? text.npos : next - at));
    if (next == text.npos) return parts;
    at = next + 1;
  }
}

std::string utc_time(int64_t unix_ns) {
  const std::time_t t = static_cast<std::time_t>(unix_ns / 1000000000);
  std::tm tm{};
  gmtime_r(&t, &tm);
  char b[32];
  std::strftime(b, sizeof b, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return b;
}

}  // namespace lhost
