// tests/mock_engine/tensors.cpp - "lhost.tensor/0" and "lhost.tensor_ops/0", and values from memory.
#include "run.hpp"

namespace mock {
namespace {

lh_status view(lh_tensor* h, lh_view* out) {
  const Tensor& t = tensor(h);
  *out = {t.data(),
          {LH_DEVICE_CPU, 0},
          static_cast<int32_t>(t.shape().size()),
          to_dlpack(t.type()),
          t.shape().data(),
          t.strides().data(),
          0};
  return nullptr;
}

lh_status empty(lh_run*, lh_device device, lh_dtype dtype, const int64_t* shape, uint32_t ndim, uint32_t,
                lh_tensor** out) {
  return guard("tensor.empty", [&] {
    if (device.type != LH_DEVICE_CPU) throw std::invalid_argument("the mock engine has the CPU only");
    const std::vector<int64_t> sizes(shape, shape + ndim);
    for (int64_t d : sizes)
      if (d < 0) throw std::invalid_argument("a dimension of " + std::to_string(d));
    *out = handle(*new Tensor(from_dlpack(dtype), sizes));
  });
}

lh_status narrow(lh_tensor* h, int64_t start, int64_t len, lh_tensor** out) {
  return guard("tensor.narrow", [&] {
    const Tensor& t = tensor(h);
    if (t.shape().empty() || start < 0 || len < 0 || start + len > t.shape()[0])
      throw std::invalid_argument(
          "rows " + std::to_string(start) + " to " + std::to_string(start + len) + " of a tensor of " +
          (t.shape().empty() ? "no dimension" : std::to_string(t.shape()[0]) + " rows"));
    std::vector<int64_t> shape = t.shape();
    shape[0] = len;
    *out = handle(*new Tensor(t.view(start * t.strides()[0], shape)));
  });
}

void scale(const Tensor& x, double a) {
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, a * x.get(i));
}

void axpby(const Tensor& y, double a, const Tensor& x, double b) {
  if (x.numel() != y.numel()) throw std::invalid_argument("axpby of tensors of different size");
  for (int64_t i = 0; i < y.numel(); ++i) y.set(i, a * x.get(i) + b * y.get(i));
}

// The element of a view whose dimensions count row-major, whatever its strides are.
int64_t position(const lh_view& v, int64_t i) {
  if (!v.strides) return i;
  int64_t at = 0;
  for (int32_t d = v.ndim; d-- > 0;) {
    at += i % v.shape[d] * v.strides[d];
    i /= v.shape[d];
  }
  return at;
}

}  // namespace

void assign(const Tensor& dst, const lh_view& src) {
  const std::vector<int64_t> shape(src.shape, src.shape + src.ndim);
  if (shape != dst.shape()) {
    const auto text = [](const std::vector<int64_t>& s) {
      std::string t = "[";
      for (int64_t d : s) t += (t.size() > 1 ? ", " : "") + std::to_string(d);
      return t + "]";
    };
    throw std::invalid_argument("found values of shape " + text(shape) + ", expected " + text(dst.shape()));
  }
  const Type type = from_dlpack(src.dtype);
  const auto* bytes = static_cast<const std::byte*>(src.data) + src.byte_offset;
  const Tensor one(type, {});
  for (int64_t i = 0; i < dst.numel(); ++i) {
    std::memcpy(one.data(), bytes + static_cast<size_t>(position(src, i)) * bytes_of(type), bytes_of(type));
    if (type == dst.type())
      std::memcpy(dst.data() + static_cast<size_t>(i) * bytes_of(type), one.data(), bytes_of(type));
    else dst.set(i, one.get(0));
  }
}

const lh_tensor_v0 tensor_table = {
    sizeof(lh_tensor_v0),
    0,
    [](lh_tensor* h, lh_tensor** out) {
      return guard("tensor.retain", [&] { *out = handle(*new Tensor(tensor(h))); });
    },
    [](lh_tensor* h) {
      if (h) delete &tensor(h);
    },
    view,
    empty,
    narrow,
    [](const lh_tensor* h) -> lh_bool { return reinterpret_cast<const Tensor*>(h)->unique(); },
    [](const lh_list* l) -> uint64_t { return l->tensors.size(); },
    [](const lh_list* l, uint64_t i) { return handle(l->tensors[i]); },
};

const lh_tensor_ops_v0 ops_table = {
    sizeof(lh_tensor_ops_v0),
    0,
    [](lh_tensor* x, double v) { return guard("ops.fill", [&] { tensor(x).fill(v); }); },
    [](lh_tensor* dst, lh_tensor* src) {
      return guard("ops.copy", [&] { tensor(dst).copy_from(tensor(src)); });
    },
    [](lh_tensor* x, double a) { return guard("ops.scale", [&] { scale(tensor(x), a); }); },
    [](lh_tensor* y, double a, lh_tensor* x, double b) {
      return guard("ops.axpby", [&] { axpby(tensor(y), a, tensor(x), b); });
    },
    [](lh_tensor* x, double* out) {
      return guard("ops.to_host", [&] {
        if (tensor(x).numel() != 1) throw std::invalid_argument("expected a tensor of one element");
        *out = tensor(x).get(0);
      });
    },
};

}  // namespace mock
