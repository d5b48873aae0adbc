// reduce.hpp - what ranks do to each other's numbers: out[i] = in[0][i] op in[1][i] op ... always in rank order, so that
// every transport and every way to cut a message gives the same bits. No LibTorch. [any]
#pragma once
#include <cstddef>
#include <cstdint>

namespace lhost_collective {

enum class Dtype : uint8_t { f64, f32, f16, bf16, i64, u8 };
size_t size_of(Dtype) noexcept;
const char* name_of(Dtype) noexcept;

// op is LH_REDUCE_*. float16 and bfloat16 are added in float32 and rounded once, to nearest, ties to even. AVG is the sum
// times (T)(1.0 / n), of floating dtypes only. MAX and MIN: NaN wins. uint8 and int64 wrap. out may be one of in.
void reduce(Dtype, int32_t op, const void* const* in, size_t n, void* out, size_t count) noexcept;
// x *= factor, in x's own precision; float32 and float64.
void scale(Dtype, double factor, void* x, size_t count) noexcept;

}  // namespace lhost_collective
