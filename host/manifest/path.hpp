// host/manifest/path.hpp - the address of a value: data.train.images, logger[0].use, "a.b".c
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lhost {

struct KeyStep {
  std::string key;              // of a table
  std::optional<size_t> index;  // of a list; then key is empty
  size_t begin = 0, end = 0;    // bytes in the path's text
};
struct KeyPath {
  std::vector<KeyStep> steps;
  std::string error;    // empty if it is a path
  size_t error_at = 0;  // byte
};
KeyPath parse_path(std::string_view);

}  // namespace lhost
