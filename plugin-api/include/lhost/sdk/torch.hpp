// lhost/sdk/torch.hpp - the only SDK header with LibTorch: a handle is the address of an at::Tensor.
// C++20 with GCC, as LibTorch's own headers want.
#pragma once
#include <lhost/tensor.h>

#include <torch/autograd.h>
#include <torch/nn.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

namespace lhost {

inline lh_tensor* handle(const torch::Tensor& t) {
  return reinterpret_cast<lh_tensor*>(const_cast<torch::Tensor*>(&t));
}
inline torch::Tensor& tensor(lh_tensor* h) { return *reinterpret_cast<torch::Tensor*>(h); }

inline lh_dtype dtype_of(torch::ScalarType t) {
  switch (t) {
    case torch::kFloat:
      return {LH_DT_FLOAT, 32, 1};
    case torch::kDouble:
      return {LH_DT_FLOAT, 64, 1};
    case torch::kHalf:
      return {LH_DT_FLOAT, 16, 1};
    case torch::kBFloat16:
      return {LH_DT_BFLOAT, 16, 1};
    case torch::kLong:
      return {LH_DT_INT, 64, 1};
    case torch::kInt:
      return {LH_DT_INT, 32, 1};
    case torch::kShort:
      return {LH_DT_INT, 16, 1};
    case torch::kChar:
      return {LH_DT_INT, 8, 1};
    case torch::kByte:
      return {LH_DT_UINT, 8, 1};
    case torch::kBool:
      return {LH_DT_BOOL, 8, 1};
    default:
      throw std::invalid_argument(std::string("a tensor of dtype ") + c10::toString(t) + " cannot cross");
  }
}

// Share of rows whose greatest logit is the label's. logits [N, classes], labels [N] int64; a 0-dim float32.
inline torch::Tensor accuracy(const torch::Tensor& logits, const torch::Tensor& labels) {
  return logits.argmax(-1).eq(labels).to(torch::kFloat).mean();
}

}  // namespace lhost
