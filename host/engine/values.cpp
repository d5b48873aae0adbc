// host/engine/values.cpp - values that leave and enter: one number, a whole tensor, the generator's state.
#include "engine/run.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <cstring>
#include <mutex>

namespace lhost::engine {
namespace {

void check_one_element(const at::Tensor& t) {
  if (!t.defined()) refuse(LH_INVALID_ARGUMENT, "log: expected one element, found an undefined tensor");
  if (t.numel() != 1)
    refuse(LH_INVALID_ARGUMENT,
           "log: expected one element, found shape " + c10::str(t.sizes()) + "; take its mean() or sum()");
}

// The memory behind a view, borrowed. Strides NULL: contiguous.
at::Tensor borrow(const lh_view& v) {
  const auto options = at::TensorOptions(scalar_type(v.dtype));
  if (v.device.type != LH_DEVICE_CPU)
    refuse(LH_UNIMPLEMENTED, "found device type " + std::to_string(v.device.type) + "; expected host memory");
  char* data = static_cast<char*>(v.data) + v.byte_offset;
  const at::IntArrayRef shape(v.shape, static_cast<size_t>(v.ndim));
  if (!v.strides) return at::from_blob(data, shape, options);
  return at::from_blob(data, shape, at::IntArrayRef(v.strides, static_cast<size_t>(v.ndim)), options);
}

}  // namespace

double element(const at::Tensor& t) {
  check_one_element(t);
  if (t.is_cpu() && t.scalar_type() == at::kFloat) return *static_cast<const float*>(t.const_data_ptr());
  if (t.is_cpu() && t.scalar_type() == at::kDouble) return *static_cast<const double*>(t.const_data_ptr());
  return t.item().toDouble();
}

bool scalar(const at::Tensor& t, double* out) {
  check_one_element(t);
  if (!t.is_cpu()) return false;
  *out = element(t);
  return true;
}

at::Tensor to_host(at::Tensor& t) { return with_memory(t).detach().to(at::kCPU).contiguous(); }

void assign(at::Tensor& dst, const lh_view& src) {
  const at::Tensor values = borrow(src);
  if (dst.sizes() != values.sizes())
    refuse(LH_INVALID_ARGUMENT,
           "found shape " + c10::str(values.sizes()) + ", expected " + c10::str(dst.sizes()));
  c10::AutoGradMode off(false);
  with_memory(dst).copy_(values);
}

at::Tensor rng_save() {
  at::Generator g = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(g.mutex());
  return g.get_state();
}

void rng_load(const lh_view& src) {
  const at::Tensor bytes = borrow(src);
  at::Generator g = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(g.mutex());
  const int64_t expected = g.get_state().numel();
  if (bytes.scalar_type() != at::kByte || bytes.dim() != 1 || bytes.numel() != expected)
    refuse(LH_DATA_LOSS, std::string("found a generator state of ") + c10::toString(bytes.scalar_type()) +
                             " " + c10::str(bytes.sizes()) + ", expected " + std::to_string(expected) +
                             " bytes");
  g.set_state(bytes.contiguous());
}

}  // namespace lhost::engine
