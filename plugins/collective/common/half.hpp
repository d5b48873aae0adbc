// half.hpp - float16 and bfloat16 to float32 and back: round to nearest, ties to even, as LibTorch's c10::Half and
// c10::BFloat16 do; denormals are kept; every NaN becomes the one positive quiet NaN, since the sign of a sum of NaNs
// depends on the processor. Free of branches, for loops that vectorise.
#pragma once
#include <cstdint>
#include <cstring>

namespace lhost_collective {

inline float float_of_bits(uint32_t w) noexcept {
  float f;
  std::memcpy(&f, &w, sizeof f);
  return f;
}
inline uint32_t bits_of_float(float f) noexcept {
  uint32_t w;
  std::memcpy(&w, &f, sizeof w);
  return w;
}

inline float from_bf16(uint16_t h) noexcept { return float_of_bits(static_cast<uint32_t>(h) << 16); }

inline uint16_t to_bf16(float f) noexcept {
  const uint32_t w = bits_of_float(f);
  const uint32_t rounded = (w + 0x7FFF + ((w >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((w & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : rounded);
}

// A normal number has its exponent moved and is scaled by a power of two, which is exact; a denormal one is read as the
// mantissa of 0.5 + x * 2^-24.
inline float from_f16(uint16_t h) noexcept {
  const uint32_t w = static_cast<uint32_t>(h) << 16;
  const uint32_t magnitude = w << 1;
  const float normal = float_of_bits((magnitude >> 4) + (0xE0u << 23)) * 0x1.0p-112f;
  const float denormal = float_of_bits((magnitude >> 17) | (126u << 23)) - 0.5f;
  const uint32_t small = magnitude < (1u << 27) ? ~0u : 0u;
  const uint32_t bits = (bits_of_float(denormal) & small) | (bits_of_float(normal) & ~small);
  return float_of_bits((w & 0x80000000u) | bits);
}

// The addition of a number with a suitable exponent makes the processor round at the right bit.
inline uint16_t to_f16(float f) noexcept {
  const uint32_t w = bits_of_float(f), magnitude = w << 1, sign = (w >> 16) & 0x8000u;
  const float scaled = (float_of_bits(w & 0x7FFFFFFF) * 0x1.0p+112f) * 0x1.0p-110f;  // too great: infinity
  const uint32_t exponent = magnitude & 0xFF000000u;
  const uint32_t bias = exponent < 0x71000000u ? 0x71000000u : exponent;
  const uint32_t bits = bits_of_float(float_of_bits((bias >> 1) + 0x07800000u) + scaled);
  const uint32_t rounded = ((bits >> 13) & 0x7C00u) + (bits & 0x0FFFu);
  return static_cast<uint16_t>(magnitude > 0xFF000000u ? 0x7E00u : sign | rounded);
}

}  // namespace lhost_collective
