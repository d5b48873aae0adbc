// host/base/text.hpp - small texts for people: numbers, sizes, times, lists.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lhost {

std::string grouped(int64_t n);             // 17226 -> "17 226"
std::string human_bytes(double bytes);      // "68 KiB", "1.4 GiB"
std::string human_rate(double per_second);  // "5.9k", "160k", "12"
std::string human_seconds(double s);        // "0.16 s", "2 min 05 s", "1 h 02 min"
std::string significant(double v);          // "0.2132", "1.3e-05": for the screen, 4 digits
std::string exact(double v);                // shortest text that reads back the same; "nan", "inf", "-inf"
std::string join(const std::vector<std::string>&, std::string_view separator);
std::vector<std::string> split(std::string_view, char separator);
std::string utc_time(int64_t unix_ns);  // "2026-11-30T20:47:09Z"

}  // namespace lhost
