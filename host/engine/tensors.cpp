// host/engine/tensors.cpp - "lhost.tensor/0" and "lhost.tensor_ops/0": a handle is the address of an at::Tensor.
#include "engine/run.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

namespace lhost::engine {
namespace {

lh_device place_of(const at::Tensor& t) {
  if (t.is_cpu()) return {LH_DEVICE_CPU, 0};
  if (t.is_cuda()) return {LH_DEVICE_CUDA, t.get_device()};
  refuse(LH_UNIMPLEMENTED, "a tensor on " + t.device().str() + " cannot cross the plugin interface");
}

lh_status retain(lh_tensor* h, lh_tensor** out) {
  return guard("tensor.retain", [&] { *out = handle(*new at::Tensor(tensor(h))); });
}
void release(lh_tensor* h) { delete reinterpret_cast<at::Tensor*>(h); }

lh_status view_of(lh_tensor* h, lh_view* out) {
  return guard("tensor.view", [&] {
    const at::Tensor& t = tensor(h);
    if (!t.defined()) refuse(LH_INVALID_ARGUMENT, "found an undefined tensor; expected one with values");
    // A storage that was freed (a flat group's full values) has no address.
    out->data = t.storage().nbytes() ? t.mutable_data_ptr() : nullptr;
    out->device = place_of(t);
    out->ndim = static_cast<int32_t>(t.dim());
    out->dtype = dtype_of(t.scalar_type());
    out->shape = const_cast<int64_t*>(t.sizes().data());
    out->strides = const_cast<int64_t*>(t.strides().data());
    out->byte_offset = 0;
  });
}

lh_status empty(lh_run*, lh_device device, lh_dtype dtype, const int64_t* shape, uint32_t ndim,
                uint32_t flags, lh_tensor** out) {
  return guard("tensor.empty", [&] {
    if (device.type != LH_DEVICE_CPU)
      refuse(LH_UNIMPLEMENTED,
             "found device type " + std::to_string(device.type) + "; this engine has the cpu only");
    if (flags & LH_EMPTY_PINNED)
      refuse(LH_UNIMPLEMENTED, "pinned memory needs an accelerator; leave LH_EMPTY_PINNED out");
    const at::IntArrayRef sizes(shape, ndim);
    const auto type = scalar_type(dtype);
    *out = handle(*new at::Tensor(flags & LH_EMPTY_ZEROED ? at::zeros(sizes, type) : at::empty(sizes, type)));
  });
}

lh_status narrow(lh_tensor* h, int64_t start, int64_t len, lh_tensor** out) {
  return guard("tensor.narrow", [&] {
    const at::Tensor& t = tensor(h);
    const int64_t rows = t.dim() ? t.size(0) : 0;
    if (start < 0 || len < 0 || len > rows || start > rows - len)
      refuse(LH_OUT_OF_RANGE, "found rows [" + std::to_string(start) + ", " + std::to_string(start) + " + " +
                                  std::to_string(len) + "); the tensor has " + std::to_string(rows));
    *out = handle(*new at::Tensor(t.narrow(0, start, len)));
  });
}

lh_bool unique(const lh_tensor* h) {
  const at::Tensor& t = *reinterpret_cast<const at::Tensor*>(h);
  return t.defined() && t.use_count() == 1 && t.storage().use_count() == 1;
}

// Values change behind autograd's back: allowed on parameters, recorded nowhere.
template <class F>
lh_status without_autograd(const char* where, F&& f) {
  return guard(where, [&] {
    c10::AutoGradMode off(false);
    f();
  });
}
at::Tensor& values(lh_tensor* h) { return with_memory(tensor(h)); }

}  // namespace

at::Tensor& with_memory(at::Tensor& t) {
  if (!t.defined()) refuse(LH_INVALID_ARGUMENT, "found an undefined tensor; expected one with values");
  if (t.numel() && !t.storage().nbytes())
    refuse(LH_FAILED_PRECONDITION,
           "the tensor's memory is freed (a transient flat group); allocate it first");
  return t;
}

const lh_tensor_v0 tensor_table = {
    sizeof(lh_tensor_v0),
    0,
    retain,
    release,
    view_of,
    empty,
    narrow,
    unique,
    [](const lh_list* l) -> uint64_t { return l->tensors.size(); },
    [](const lh_list* l, uint64_t i) -> lh_tensor* {
      return i < l->tensors.size() ? handle(l->tensors[i]) : nullptr;
    },
};

const lh_tensor_ops_v0 tensor_ops_table = {
    sizeof(lh_tensor_ops_v0),
    0,
    [](lh_tensor* x, double v) { return without_autograd("ops.fill", [&] { values(x).fill_(v); }); },
    [](lh_tensor* dst, lh_tensor* src) {
      return without_autograd("ops.copy", [&] {
        at::Tensor &to = values(dst), &from = values(src);
        if (to.sizes() != from.sizes())
          refuse(LH_INVALID_ARGUMENT,
                 "found shape " + c10::str(from.sizes()) + ", expected " + c10::str(to.sizes()));
        to.copy_(from);
      });
    },
    [](lh_tensor* x, double a) { return without_autograd("ops.scale", [&] { values(x).mul_(a); }); },
    [](lh_tensor* y, double a, lh_tensor* x, double b) {
      return without_autograd("ops.axpby", [&] {
        if (b != 1.0) values(y).mul_(b);
        values(y).add_(values(x), a);
      });
    },
    [](lh_tensor* x, double* out) { return guard("ops.to_host", [&] { *out = element(values(x)); }); },
};

}  // namespace lhost::engine
