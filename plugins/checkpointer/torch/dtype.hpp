// dtype.hpp - the element types of a torch file: PyTorch's storage classes and the ABI's dtypes, one table for reading
// and writing. A type that is not here is refused on saving and delivered as LH_LEAF_UNKNOWN on loading.
#pragma once
#include <lhost/abi.h>

#include <string_view>

namespace torch_file {

struct StorageClass {
  std::string_view name;  // in the module torch
  lh_dtype dtype;
};

inline constexpr StorageClass kStorageClasses[] = {
    {"DoubleStorage", {LH_DT_FLOAT, 64, 1}}, {"FloatStorage", {LH_DT_FLOAT, 32, 1}},
    {"HalfStorage", {LH_DT_FLOAT, 16, 1}},   {"BFloat16Storage", {LH_DT_BFLOAT, 16, 1}},
    {"LongStorage", {LH_DT_INT, 64, 1}},     {"IntStorage", {LH_DT_INT, 32, 1}},
    {"ShortStorage", {LH_DT_INT, 16, 1}},    {"CharStorage", {LH_DT_INT, 8, 1}},
    {"ByteStorage", {LH_DT_UINT, 8, 1}},     {"BoolStorage", {LH_DT_BOOL, 8, 1}},
};

inline const StorageClass* find_storage_class(lh_dtype d) {
  for (const StorageClass& c : kStorageClasses)
    if (c.dtype.code == d.code && c.dtype.bits == d.bits && c.dtype.lanes == d.lanes) return &c;
  return nullptr;
}

// `global` as a pickle names it: "torch.FloatStorage"
inline const StorageClass* find_storage_class(std::string_view global) {
  constexpr std::string_view kModule = "torch.";
  if (global.substr(0, kModule.size()) != kModule) return nullptr;
  for (const StorageClass& c : kStorageClasses)
    if (global.substr(kModule.size()) == c.name) return &c;
  return nullptr;
}

}  // namespace torch_file
