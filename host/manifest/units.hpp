// host/manifest/units.hpp - values with a unit: sizes, durations, shares. Exact: whole bytes and nanoseconds, rounded
// to the nearest; nothing for what is not one, is negative or does not fit.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lhost {

std::optional<int64_t> parse_size(std::string_view);  // "25MiB", "1.5 GiB", "25MB", "512B" -> bytes
std::optional<int64_t> parse_duration(
    std::string_view);  // "90s", "1h30m", "250ms", "00:30:00", "01:00:00:00" -> ns
std::optional<double> parse_share(std::string_view);  // "5%" -> 0.05

}  // namespace lhost
