// host/manifest/host_types.cpp - the types that only host keys have (HostType).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 with sanitizers, inside libstdc++'s <regex>
#endif
#include "manifest/convert.hpp"
#include "manifest/units.hpp"

#include <algorithm>
#include <numeric>
#include <regex>

namespace lhost {
namespace {

constexpr int64_t kMostDevices = 4096;
constexpr size_t kLongestPattern = 1000;  // std::regex recurses over its pattern

}  // namespace

// n = 0: a count in u.i; n = 1: a share in u.f.
bool Conversion::count_or_share(const Node& v, double most) {
  if (v.type == Node::Type::integer && v.integer >= 0) {
    plain_.value.u.i = v.integer;
    return true;
  }
  std::optional<double> share;
  if (v.type == Node::Type::floating) share = v.floating;
  if (v.type == Node::Type::string) share = parse_share(v.string);
  plain_.value.n = 1;
  plain_.value.u.f = share.value_or(0);
  return (share && *share >= 0 && *share <= most) || fail(v);
}

bool Conversion::limit(const Node& v) { return count_or_share(v, 1.0); }

bool Conversion::warmup(const Node& v) {
  return v.type == Node::Type::floating ? fail(v) : count_or_share(v, 1.0);
}

bool Conversion::devices(const Node& v) {
  std::vector<int64_t>& ids = plain_.ints;
  if (v.type == Node::Type::string && v.string == "auto") return true;
  if (v.type == Node::Type::integer && v.integer >= 1 && v.integer <= kMostDevices) {
    ids.resize(static_cast<size_t>(v.integer));
    std::iota(ids.begin(), ids.end(), 0);
  } else if (v.type == Node::Type::array && !v.array.empty()) {
    for (size_t i = 0; i < v.array.size(); ++i) {
      const Node& x = v.array[i];
      const std::string key = key_ + "[" + std::to_string(i) + "]";
      if (x.type != Node::Type::integer || x.integer < 0 || x.integer >= kMostDevices) {
        return fail(x.source, key,
                    "found " + found(x, spec_, texts_) + ", expected the number of a device, from 0");
      }
      if (std::find(ids.begin(), ids.end(), x.integer) != ids.end()) {
        return fail(x.source, key,
                    "device " + std::to_string(x.integer) + " is given twice; remove one of the two");
      }
      ids.push_back(x.integer);
    }
  } else {
    return fail(v);
  }
  plain_.value.n = static_cast<uint32_t>(ids.size());
  return true;
}

bool Conversion::save_last(const Node& v) {
  const bool link = v.type == Node::Type::string && v.string == "link";
  plain_.value.u.i = link ? 2 : v.boolean ? 1 : 0;
  return link || v.type == Node::Type::boolean || fail(v);
}

bool Conversion::regex(const Node& v) {
  if (!string(v)) return false;
  if (v.string.size() > kLongestPattern) {
    return fail(v.source, key_,
                "found a pattern of " + std::to_string(v.string.size()) + " characters, expected at most " +
                    std::to_string(kLongestPattern));
  }
  try {
    std::regex{v.string};
    return true;
  } catch (const std::regex_error& e) {
    return fail(v.source, key_,
                "found " + found(v, spec_, texts_) + ", expected a regular expression (" + e.what() + ")");
  }
}

}  // namespace lhost
