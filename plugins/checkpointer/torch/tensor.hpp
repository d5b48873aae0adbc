// tensor.hpp - a tensor of a torch file: what the pickle says of it, checked against its storage record. Throws
// lhost::Error if both cannot be true of one file.
#pragma once
#include "value.hpp"
#include "zip_reader.hpp"

#include <lhost/abi.h>

#include <optional>
#include <vector>

namespace torch_file {

struct Tensor {
  const char* data = nullptr;  // first element, in the file
  lh_dtype dtype{};
  std::vector<int64_t> shape, strides;  // in elements
  uint64_t elements = 0, bytes = 0;     // when contiguous
  bool usable_in_place = false;         // contiguous and aligned
};

// nullopt: a type that is not ours.
std::optional<Tensor> resolve(const Value& tensor, const ZipReader& zip);

// The elements in order into `out`, which has room for tensor.bytes.
void copy_contiguous(const Tensor& tensor, char* out);

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape);

}  // namespace torch_file
