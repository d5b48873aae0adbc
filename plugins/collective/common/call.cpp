#include "call.hpp"

#include <lhost/sdk/plugin.hpp>

#include <optional>

namespace lhost_collective {
namespace {

struct Tensor {
  char* data;
  Dtype dtype;
  size_t count;
  std::vector<int64_t> shape;
};

[[noreturn]] void invalid(Kind k, const std::string& why) {
  throw lhost::Error(LH_INVALID_ARGUMENT, std::string(name_of(k)) + ": " + why);
}

std::optional<Dtype> dtype_of(lh_dtype d) {
  if (d.lanes != 1) return {};
  if (d.code == LH_DT_FLOAT && d.bits == 64) return Dtype::f64;
  if (d.code == LH_DT_FLOAT && d.bits == 32) return Dtype::f32;
  if (d.code == LH_DT_FLOAT && d.bits == 16) return Dtype::f16;
  if (d.code == LH_DT_BFLOAT && d.bits == 16) return Dtype::bf16;
  if (d.code == LH_DT_INT && d.bits == 64) return Dtype::i64;
  if (d.code == LH_DT_UINT && d.bits == 8) return Dtype::u8;
  return {};
}

bool contiguous(const lh_view& v) {
  if (!v.strides) return true;
  int64_t expected = 1;
  for (int32_t i = v.ndim; i-- > 0;) {
    if (v.shape[i] == 0) return true;
    if (v.shape[i] != 1 && v.strides[i] != expected) return false;
    expected *= v.shape[i];
  }
  return true;
}

Tensor look(Kind k, const char* which, lh_tensor* handle, const lh_tensor_v0& tensors) {
  if (!handle) invalid(k, std::string("this rank has to give `") + which + "`, which is NULL");
  lh_view v{};
  lhost::check(tensors.view(handle, &v));
  if (v.device.type != LH_DEVICE_CPU)
    invalid(k, std::string("`") + which +
                   "` is not in the memory of the CPU, the only one that this transport reaches");
  const auto dtype = dtype_of(v.dtype);
  if (!dtype)
    invalid(k, std::string("the dtype of `") + which + "` (code " + std::to_string(v.dtype.code) + ", " +
                   std::to_string(v.dtype.bits) +
                   " bits) is none of float64, float32, float16, bfloat16, int64 and uint8");
  if (!contiguous(v)) invalid(k, std::string("`") + which + "` is not contiguous");
  Tensor t{static_cast<char*>(v.data) + v.byte_offset, *dtype, 1, {v.shape, v.shape + v.ndim}};
  for (const int64_t s : t.shape) t.count *= static_cast<size_t>(s);
  return t;
}

// How often `in` and `out` hold a part, and whether only the root (or all but it) has the tensor.
struct Form {
  bool in, out, in_parts, out_parts, same_shape;
};
Form form_of(Kind k, bool root) {
  switch (k) {
    case Kind::all_reduce:
      return {true, true, false, false, true};
    case Kind::reduce:
      return {true, root, false, false, true};
    case Kind::broadcast:
      return {root, true, false, false, true};
    case Kind::all_gather:
      return {true, true, false, true, false};
    case Kind::gather:
      return {true, root, false, true, false};
    case Kind::reduce_scatter:
      return {true, true, true, false, false};
    case Kind::scatter:
      return {root, true, true, false, false};
    case Kind::all_to_all:
      return {true, true, true, true, true};
    case Kind::send:
      return {true, false, false, false, false};
    case Kind::recv:
      return {false, true, false, false, false};
    case Kind::barrier:
      break;
  }
  return {false, false, false, false, false};
}

size_t part(Kind k, const char* which, const Tensor& t, bool parts, size_t n) {
  if (!parts) return t.count;
  if (t.count % n != 0)
    invalid(k, std::string("`") + which + "` has " + std::to_string(t.count) +
                   " elements, which is no multiple of the " + std::to_string(n) + " ranks");
  return t.count / n;
}

void check_root(const lh_collective_args& a, Call& c, size_t me, size_t n) {
  const bool pair = c.kind == Kind::send || c.kind == Kind::recv;
  if (a.root < 0 || a.root >= static_cast<int64_t>(n))
    invalid(c.kind, "rank " + std::to_string(a.root) + " is not in the group of " + std::to_string(n));
  if (pair && a.root == static_cast<int64_t>(me)) invalid(c.kind, "a rank cannot be its own peer");
  c.root = static_cast<int32_t>(a.root);
}

bool rooted(Kind k) {
  return k == Kind::reduce || k == Kind::broadcast || k == Kind::gather || k == Kind::scatter ||
         k == Kind::send || k == Kind::recv;
}

void check_reduction(const Call& c) {
  if (c.op < LH_REDUCE_SUM || c.op > LH_REDUCE_MIN)
    invalid(c.kind, "there is no reduction " + std::to_string(c.op));
  if (c.op == LH_REDUCE_AVG && (c.dtype == Dtype::i64 || c.dtype == Dtype::u8))
    invalid(c.kind, std::string("an average of ") + name_of(c.dtype) + " would be cut off; take the sum");
}

}  // namespace

Call read_call(Kind kind, const lh_collective_args& a, const lh_tensor_v0& tensors, size_t me, size_t n) {
  Call c;
  c.kind = kind;
  c.op = a.op;
  if (rooted(kind)) check_root(a, c, me, n);
  const Form form = form_of(kind, c.root == static_cast<int32_t>(me));
  std::optional<Tensor> in, out;
  if (form.in) in = look(kind, "in", a.in, tensors);
  if (form.out) out = look(kind, "out", a.out, tensors);
  if (in) c.in = in->data, c.dtype = in->dtype, c.count = part(kind, "in", *in, form.in_parts, n);
  if (out) {
    const size_t count = part(kind, "out", *out, form.out_parts, n);
    if (in && in->dtype != out->dtype)
      invalid(kind, std::string("`in` is ") + name_of(in->dtype) + ", `out` " + name_of(out->dtype));
    if (in && (count != c.count || (form.same_shape && in->shape != out->shape)))
      invalid(kind, "`in` has the shape " + list(in->shape) + ", `out` " + list(out->shape) +
                        ", in a group of " + std::to_string(n));
    c.out = out->data, c.dtype = out->dtype, c.count = count;
  }
  if (c.reduces()) check_reduction(c);
  return c;
}

const char* name_of(Kind k) noexcept {
  constexpr const char* names[] = {"all_reduce", "reduce",         "broadcast", "all_gather",
                                   "gather",     "reduce_scatter", "scatter",   "all_to_all",
                                   "send",       "recv",           "barrier"};
  return names[static_cast<size_t>(k)];
}

std::string describe(const Call& c) {
  constexpr const char* reductions[] = {"", " (average)", " (maximum)", " (minimum)"};
  std::string s = name_of(c.kind);
  if (c.kind == Kind::barrier) return s;
  if (c.reduces()) s += reductions[c.op];
  s += " of " + std::to_string(c.count) + " " + name_of(c.dtype);
  if (c.kind == Kind::send) s += " to rank " + std::to_string(c.root);
  else if (c.kind == Kind::recv) s += " from rank " + std::to_string(c.root);
  else if (c.root >= 0) s += " with root " + std::to_string(c.root);
  return s;
}

std::string list(const std::vector<int64_t>& values) {
  std::string s = "[";
  for (const int64_t v : values) s += (s.size() > 1 ? ", " : "") + std::to_string(v);
  return s + "]";
}

}  // namespace lhost_collective
