// host/engine/dtype.cpp - DLPack's dtypes and LibTorch's.
#include "engine/run.hpp"

namespace lhost::engine {
namespace {

struct Pair {
  at::ScalarType type;
  lh_dtype dtype;
};
constexpr Pair kPairs[] = {{at::kFloat, {LH_DT_FLOAT, 32, 1}},     {at::kDouble, {LH_DT_FLOAT, 64, 1}},
                           {at::kLong, {LH_DT_INT, 64, 1}},        {at::kHalf, {LH_DT_FLOAT, 16, 1}},
                           {at::kBFloat16, {LH_DT_BFLOAT, 16, 1}}, {at::kInt, {LH_DT_INT, 32, 1}},
                           {at::kShort, {LH_DT_INT, 16, 1}},       {at::kChar, {LH_DT_INT, 8, 1}},
                           {at::kByte, {LH_DT_UINT, 8, 1}},        {at::kBool, {LH_DT_BOOL, 8, 1}}};

}  // namespace

at::ScalarType scalar_type(lh_dtype d) {
  for (const Pair& p : kPairs)
    if (p.dtype.code == d.code && p.dtype.bits == d.bits && d.lanes <= 1) return p.type;
  refuse(LH_INVALID_ARGUMENT, "found a dtype with code " + std::to_string(d.code) + ", " +
                                  std::to_string(d.bits) + " bits, " + std::to_string(d.lanes) +
                                  " lanes; expected float16/32/64, bfloat16, int8/16/32/64, uint8 or bool");
}

lh_dtype dtype_of(at::ScalarType t) {
  for (const Pair& p : kPairs)
    if (p.type == t) return p.dtype;
  refuse(LH_UNIMPLEMENTED,
         std::string("a tensor of dtype ") + c10::toString(t) + " cannot cross the plugin interface");
}

}  // namespace lhost::engine
