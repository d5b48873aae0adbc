// model.hpp - what reductions must give, written plainly and apart from the plugins: 16-bit numbers by arithmetic on
// exponents, sums in rank order.
#pragma once
#include "rig.hpp"

#include <cmath>
#include <limits>
#include <tuple>

namespace lhost_test {

struct Format {  // of a 16-bit floating dtype
  int exponent_bits, mantissa_bits;
};
constexpr Format kHalf{5, 10}, kBrain{8, 7};

inline float decode(Format f, uint16_t bits) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int exponent = (bits >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << f.exponent_bits) - 1)
    return mantissa ? std::numeric_limits<float>::quiet_NaN()
                    : static_cast<float>(sign * std::numeric_limits<double>::infinity());
  if (exponent == 0) return static_cast<float>(sign * std::ldexp(mantissa, 1 - bias - f.mantissa_bits));
  return static_cast<float>(sign *
                            std::ldexp(mantissa + (1 << f.mantissa_bits), exponent - bias - f.mantissa_bits));
}

inline uint16_t encode(Format f, float x) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1, greatest = (1 << f.exponent_bits) - 1;
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const auto infinity = static_cast<uint16_t>(greatest << f.mantissa_bits);
  if (std::isnan(x)) return static_cast<uint16_t>(infinity | (1 << (f.mantissa_bits - 1)));
  if (std::isinf(x)) return sign | infinity;
  const double magnitude = std::fabs(static_cast<double>(x));
  if (magnitude == 0) return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  double steps = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));  // ties to even
  if (steps >= std::ldexp(2, f.mantissa_bits)) steps /= 2, ++exponent;
  if (exponent + bias >= greatest) return sign | infinity;
  const bool denormal = steps < std::ldexp(1, f.mantissa_bits);
  const int field = denormal ? 0 : exponent + bias;
  const int mantissa = static_cast<int>(steps) - (denormal ? 0 : 1 << f.mantissa_bits);
  return static_cast<uint16_t>(sign | (field << f.mantissa_bits) | mantissa);
}

template <class T>
T combine(T a, T b, int32_t op) {
  if (op == LH_REDUCE_SUM || op == LH_REDUCE_AVG) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else return a + b;
  }
  if constexpr (!std::is_integral_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  if (op == LH_REDUCE_MAX) return b > a ? b : a;
  return b < a ? b : a;
}

template <class T>
std::vector<T> expected(const std::vector<std::vector<T>>& in, int32_t op) {
  std::vector<T> out = in[0];
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t r = 1; r < in.size(); ++r) out[i] = combine(out[i], in[r][i], op);
    if (op == LH_REDUCE_AVG && in.size() > 1)
      out[i] = static_cast<T>(out[i] * static_cast<T>(1.0 / static_cast<double>(in.size())));
  }
  return out;
}
inline std::vector<uint16_t> expected_16(Format f, const std::vector<std::vector<uint16_t>>& in, int32_t op) {
  if (in.size() == 1) return in[0];
  std::vector<std::vector<float>> wide(in.size());
  for (size_t r = 0; r < in.size(); ++r)
    for (const uint16_t x : in[r]) wide[r].push_back(decode(f, x));
  std::vector<uint16_t> out;
  for (const float x : expected(wide, op)) out.push_back(encode(f, x));
  return out;
}

// Numbers of rank r, the same wherever they are asked for. Of 16-bit dtypes every pattern occurs.
inline Tensor numbers(lh_dtype d, int64_t count, int64_t r, uint32_t seed) {
  uint64_t state = seed * 31 + static_cast<uint64_t>(r);
  Tensor t(d, count);
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bits = (state ^ state >> 29) * 0x9E3779B97F4A7C15u;
    const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), -60);
    char* at = t.get()->data + i * d.bits / 8;
    if (d.bits == 64 && d.code == LH_DT_FLOAT) std::memcpy(at, &value, 8);
    else if (d.bits == 32) {
      const auto f = static_cast<float>(value);
      std::memcpy(at, &f, 4);
    } else std::memcpy(at, &bits, d.bits / 8);
  }
  return t;
}

template <class T>
std::string reduced_as(lh_dtype d, int64_t count, int64_t n, uint32_t seed, int32_t op) {
  std::vector<std::vector<T>> in;
  for (int64_t r = 0; r < n; ++r) in.push_back(numbers(d, count, r, seed).template values<T>());
  std::vector<T> out;
  if constexpr (std::is_same_v<T, uint16_t>)
    out = expected_16(d.code == LH_DT_BFLOAT ? kBrain : kHalf, in, op);
  else out = expected(in, op);
  return {reinterpret_cast<const char*>(out.data()), out.size() * sizeof(T)};
}
inline std::string reduced_now(lh_dtype d, int64_t count, int64_t n, uint32_t seed, int32_t op) {
  if (d.bits == 16) return reduced_as<uint16_t>(d, count, n, seed, op);
  if (d.bits == 8) return reduced_as<uint8_t>(d, count, n, seed, op);
  if (d.code == LH_DT_INT) return reduced_as<int64_t>(d, count, n, seed, op);
  if (d.bits == 32) return reduced_as<float>(d, count, n, seed, op);
  return reduced_as<double>(d, count, n, seed, op);
}
// The bytes that a reduction of everyone's numbers(d, count, r, seed) must give. All ranks ask for the same at about the
// same time: one of them computes it.
inline std::string reduced(lh_dtype d, int64_t count, int64_t n, uint32_t seed, int32_t op) {
  using Key = std::tuple<int, int, int64_t, int64_t, uint32_t, int32_t>;
  static std::mutex mutex;
  static Key last{-1, -1, -1, -1, 0, -1};
  static std::string bytes;
  const std::lock_guard lock(mutex);
  const Key key{d.code, d.bits, count, n, seed, op};
  if (key != last) bytes = reduced_now(d, count, n, seed, op), last = key;
  return bytes;
}

}  // namespace lhost_test
