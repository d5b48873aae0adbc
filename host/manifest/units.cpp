// host/manifest/units.cpp - see units.hpp. Decimal arithmetic in 128 bits, so that "0.1s" is 100 000 000 ns.
#include "manifest/units.hpp"

#include <charconv>
#include <limits>
#include <string>

namespace lhost {
namespace {

__extension__ typedef __int128 Wide;
constexpr int kMostDigits = 18, kMostScale = 36;

struct Unit {
  std::string_view name;
  int64_t factor;
};
constexpr Unit kSizes[] = {{"B", 1},
                           {"kB", 1000},
                           {"KB", 1000},
                           {"MB", 1000000},
                           {"GB", 1000000000},
                           {"TB", 1000000000000},
                           {"KiB", int64_t{1} << 10},
                           {"MiB", int64_t{1} << 20},
                           {"GiB", int64_t{1} << 30},
                           {"TiB", int64_t{1} << 40}};
constexpr Unit kTimes[] = {{"d", 86400000000000}, {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
                           {"ms", 1000000},       {"us", 1000},         {"ns", 1}};

bool digit(char c) { return c >= '0' && c <= '9'; }

struct Decimal {
  Wide mantissa = 0;
  int scale = 0;  // value = mantissa / 10^scale
};

// "12.5" or "1e-09" from the front of s. Digits beyond the 18th behind the point do not matter.
std::optional<Decimal> take_decimal(std::string_view& s) {
  Decimal d;
  int digits = 0;
  size_t i = 0;
  for (; i < s.size() && digit(s[i]); ++i) {
    if (d.mantissa > 0 || s[i] != '0') ++digits;
    if (digits > kMostDigits) return std::nullopt;
    d.mantissa = d.mantissa * 10 + (s[i] - '0');
  }
  if (i == 0) return std::nullopt;
  if (i + 1 < s.size() && s[i] == '.' && digit(s[i + 1])) {
    for (++i; i < s.size() && digit(s[i]); ++i) {
      if (digits >= kMostDigits || d.scale >= kMostDigits) continue;
      if (d.mantissa > 0 || s[i] != '0') ++digits;
      d.mantissa = d.mantissa * 10 + (s[i] - '0');
      ++d.scale;
    }
  }
  if (i + 1 < s.size() && s[i] == 'e' &&
      (digit(s[i + 1]) || (s[i + 1] == '-' && i + 2 < s.size() && digit(s[i + 2])))) {
    int exponent = 0;
    const auto [end, error] = std::from_chars(s.data() + i + 1, s.data() + s.size(), exponent);
    if (error != std::errc() || exponent > 18 || exponent < -18) return std::nullopt;
    i = static_cast<size_t>(end - s.data());
    d.scale -= exponent;
    for (; d.scale < 0; ++d.scale) {
      if (d.mantissa > std::numeric_limits<int64_t>::max()) return std::nullopt;
      d.mantissa *= 10;
    }
  }
  s.remove_prefix(i);
  return d.scale <= kMostScale ? std::optional(d) : std::nullopt;
}

// d x factor to the nearest integer, if it fits.
std::optional<int64_t> times(Decimal d, int64_t factor) {
  constexpr Wide most = std::numeric_limits<int64_t>::max();
  if (d.mantissa > most) return std::nullopt;
  Wide power = 1;
  for (int i = 0; i < d.scale; ++i) power *= 10;
  const Wide product = d.mantissa * factor, whole = product / power;
  const Wide rounded = whole + (product % power >= power - product % power ? 1 : 0);
  return rounded <= most ? std::optional(static_cast<int64_t>(rounded)) : std::nullopt;
}

// 01:30:00 or 2:01:30:00: days, hours, minutes, seconds.
std::optional<int64_t> parse_clock(std::string_view s) {
  int64_t part[4] = {};
  int n = 0;
  for (bool more = true; more;) {
    if (n == 4) return std::nullopt;
    const size_t colon = s.find(':');
    const std::string_view field = s.substr(0, colon);
    if (field.empty() || field.size() > 6 || field.find_first_not_of("0123456789") != field.npos)
      return std::nullopt;
    for (char c : field) part[n] = part[n] * 10 + (c - '0');
    ++n;
    more = colon != s.npos;
    if (more) s.remove_prefix(colon + 1);
  }
  if (n < 3) return std::nullopt;
  const int64_t days = n == 4 ? part[0] : 0, hours = part[n - 3], minutes = part[n - 2],
                seconds = part[n - 1];
  if (minutes > 59 || seconds > 59 || (n == 4 && hours > 23)) return std::nullopt;
  const Wide ns = Wide(((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000000000;
  return ns <= std::numeric_limits<int64_t>::max() ? std::optional(static_cast<int64_t>(ns)) : std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view s) {
  const auto number = take_decimal(s);
  if (!number) return std::nullopt;
  if (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  for (const Unit& unit : kSizes) {
    if (s == unit.name) return times(*number, unit.factor);
  }
  return std::nullopt;
}

std::optional<int64_t> parse_duration(std::string_view s) {
  if (s.find(':') != s.npos) return parse_clock(s);
  int64_t total = 0, smallest = std::numeric_limits<int64_t>::max();
  do {
    const auto number = take_decimal(s);
    if (!number) return std::nullopt;
    if (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    const std::string_view name = s.substr(0, s.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
    int64_t factor = 0;
    for (const Unit& unit : kTimes) factor = unit.name == name ? unit.factor : factor;
    if (factor == 0 || factor >= smallest) return std::nullopt;  // 1h30m: from large to small, each once
    const auto ns = times(*number, factor);
    if (!ns || __builtin_add_overflow(total, *ns, &total)) return std::nullopt;
    smallest = factor;
    s.remove_prefix(name.size());
  } while (!s.empty());
  return total;
}

std::optional<double> parse_share(std::string_view s) {
  if (s.empty() || s.back() != '%' || !digit(s.front())) return std::nullopt;
  s.remove_suffix(1);
  if (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), percent);
  if (error != std::errc() || end != s.data() + s.size() || !(percent >= 0 && percent <= 100))
    return std::nullopt;
  return percent / 100;
}

}  // namespace lhost
