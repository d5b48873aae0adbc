#include "reduce.hpp"

#include "half.hpp"

#include <lhost/collective.h>

namespace lhost_collective {
namespace {

// A dtype as it is stored, and as it is added.
template <class T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static Sum load(Stored x) { return x; }
  static Stored store(Sum x) { return x; }
};
struct Float16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored x) { return from_f16(x); }
  static Stored store(Sum x) { return to_f16(x); }
};
struct Bfloat16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored x) { return from_bf16(x); }
  static Stored store(Sum x) { return to_bf16(x); }
};

struct Add {
  template <class T>
  static T of(T a, T b) {
    return a + b;
  }
  // wraps, without undefined behaviour
  static int64_t of(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static uint8_t of(uint8_t a, uint8_t b) { return static_cast<uint8_t>(a + b); }
};
template <class T>
bool is_nan(T x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}
// A NaN in a stays: no comparison with it is true.
struct Max {
  template <class T>
  static T of(T a, T b) {
    return b > a || is_nan(b) ? b : a;
  }
};
struct Min {
  template <class T>
  static T of(T a, T b) {
    return b < a || is_nan(b) ? b : a;
  }
};

constexpr size_t kBlock = 1024;  // elements: a block of sums stays in the first cache

// One block; in its own function with a constant count, so that the loops have no remainder.
template <class F, class Op>
inline void block(const void* const* in, size_t n, size_t start, size_t count, typename F::Sum scale,
                  bool scaled, typename F::Stored* out) {
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  alignas(64) Sum sum[kBlock];
  const Stored* first = static_cast<const Stored*>(in[0]) + start;
  for (size_t i = 0; i < count; ++i) sum[i] = F::load(first[i]);
  for (size_t r = 1; r < n; ++r) {
    const Stored* next = static_cast<const Stored*>(in[r]) + start;
    for (size_t i = 0; i < count; ++i) sum[i] = Op::of(sum[i], F::load(next[i]));
  }
  if (scaled)
    for (size_t i = 0; i < count; ++i) sum[i] = static_cast<Sum>(sum[i] * scale);
  for (size_t i = 0; i < count; ++i) out[start + i] = F::store(sum[i]);
}

template <class F, class Op>
void reduce_as(const void* const* in, size_t n, void* out, size_t count, bool average) {
  const auto scale =
      average ? static_cast<typename F::Sum>(1.0 / static_cast<double>(n)) : typename F::Sum(1);
  auto* o = static_cast<typename F::Stored*>(out);
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) block<F, Op>(in, n, i, kBlock, scale, average, o);
  if (i < count) block<F, Op>(in, n, i, count - i, scale, average, o);
}

template <class F>
void reduce_dtype(int32_t op, const void* const* in, size_t n, void* out, size_t count) {
  if (op == LH_REDUCE_MAX) reduce_as<F, Max>(in, n, out, count, false);
  else if (op == LH_REDUCE_MIN) reduce_as<F, Min>(in, n, out, count, false);
  else reduce_as<F, Add>(in, n, out, count, op == LH_REDUCE_AVG);
}

}  // namespace

size_t size_of(Dtype d) noexcept {
  switch (d) {
    case Dtype::f64:
    case Dtype::i64:
      return 8;
    case Dtype::f32:
      return 4;
    case Dtype::f16:
    case Dtype::bf16:
      return 2;
    case Dtype::u8:
      break;
  }
  return 1;
}

const char* name_of(Dtype d) noexcept {
  constexpr const char* names[] = {"float64", "float32", "float16", "bfloat16", "int64", "uint8"};
  return names[static_cast<size_t>(d)];
}

void reduce(Dtype d, int32_t op, const void* const* in, size_t n, void* out, size_t count) noexcept {
  switch (d) {
    case Dtype::f64:
      return reduce_dtype<Plain<double>>(op, in, n, out, count);
    case Dtype::f32:
      return reduce_dtype<Plain<float>>(op, in, n, out, count);
    case Dtype::f16:
      return reduce_dtype<Float16>(op, in, n, out, count);
    case Dtype::bf16:
      return reduce_dtype<Bfloat16>(op, in, n, out, count);
    case Dtype::i64:
      return reduce_dtype<Plain<int64_t>>(op, in, n, out, count);
    case Dtype::u8:
      return reduce_dtype<Plain<uint8_t>>(op, in, n, out, count);
  }
}

void scale(Dtype d, double factor, void* x, size_t count) noexcept {
  if (d == Dtype::f64)
    for (size_t i = 0; i < count; ++i) static_cast<double*>(x)[i] *= factor;
  if (d == Dtype::f32)
    for (size_t i = 0; i < count; ++i) static_cast<float*>(x)[i] *= static_cast<float>(factor);
}

}  // namespace lhost_collective
