// lhost/sdk/batch_norm.hpp - lhost::BatchNorm1d and BatchNorm2d: torch's own, which with `trainer.sync_batchnorm = true`
// and several ranks take mean and variance over the rows of all ranks (torch.nn.SyncBatchNorm). Names of parameters and
// buffers do not change. The result is that of one process on the joined batch, however uneven the ranks' parts are.
//
// Per call: one exchange of 2 x channels + 1 float64 numbers for each rank in forward, one of 2 x channels in backward.
// Every rank must call its layers in the same order.
#pragma once
#include <lhost/ranks.h>
#include <lhost/sdk/plugin.hpp>
#include <lhost/sdk/torch.hpp>

#include <cmath>
#include <string>

namespace lhost {

namespace detail {

inline Service<lh_ranks_v0> ranks_service;

struct JointStatistics {
  torch::Tensor mean, variance;  // float64, one for each channel; the variance is the biased one
  double rows = 0;               // values of one channel, over all ranks
};

// Per channel over rows and space, in float64; x is [N, C, ...].
inline std::vector<int64_t> all_but_channels(const torch::Tensor& x) {
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}
inline torch::Tensor along_channels(const torch::Tensor& v, const torch::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = v.size(0);
  return v.to(x.scalar_type()).view(shape);
}

// Count, mean and sum of squared differences of each rank, combined in rank order (Chan, Golub and LeVeque 1979).
inline JointStatistics joint_statistics(lh_run* run, const torch::Tensor& x) {
  const int64_t channels = x.size(1), ranks = ranks_service->world_size(run), rank = ranks_service->rank(run);
  const auto dims = all_but_channels(x);
  const torch::Tensor wide = x.detach().to(torch::kDouble);
  const double rows =
      ranks_service->counted(run) ? static_cast<double>(x.numel()) / static_cast<double>(channels) : 0;
  torch::Tensor parts = torch::zeros({ranks, 2 * channels + 1}, torch::kDouble);
  if (rows > 0) {
    const torch::Tensor mean = wide.mean(dims);
    parts[rank].narrow(0, 0, channels).copy_(mean);
    parts[rank].narrow(0, channels, channels).copy_((wide - along_channels(mean, wide)).square().sum(dims));
    parts[rank][2 * channels] = rows;
  }
  check(ranks_service->all_reduce(run, handle(parts), 0 /* LH_REDUCE_SUM: every rank fills its own row */));
  JointStatistics out;
  out.mean = torch::zeros({channels}, torch::kDouble);
  torch::Tensor squares = torch::zeros({channels}, torch::kDouble);
  for (int64_t r = 0; r < ranks; ++r) {
    const double n = parts[r][2 * channels].item<double>();
    if (n == 0) continue;
    const torch::Tensor delta = parts[r].narrow(0, 0, channels) - out.mean;
    const double total = out.rows + n;
    squares += parts[r].narrow(0, channels, channels) + delta.square() * (out.rows * n / total);
    out.mean += delta * (n / total);
    out.rows = total;
  }
  out.variance = squares / out.rows;
  return out;
}

struct JointNorm : torch::autograd::Function<JointNorm> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const torch::Tensor& mean, const torch::Tensor& inverse_deviation, double rows,
                               int64_t run) {
    ctx->save_for_backward({x, weight, mean, inverse_deviation});
    ctx->saved_data["rows"] = rows;
    ctx->saved_data["run"] = run;
    torch::Tensor y = (x - along_channels(mean, x)) * along_channels(inverse_deviation, x);
    if (weight.defined()) y = y * along_channels(weight, x) + along_channels(bias, x);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const double rows = ctx->saved_data["rows"].toDouble();
    auto* run = reinterpret_cast<lh_run*>(ctx->saved_data["run"].toInt());
    const auto dims = all_but_channels(x);
    const torch::Tensor& dy = grads[0];
    const torch::Tensor normal = (x - along_channels(saved[2], x)) * along_channels(saved[3], x);
    const torch::Tensor sum = dy.to(torch::kDouble).sum(dims),
                        with_normal = (dy * normal).to(torch::kDouble).sum(dims);
    torch::Tensor joint = torch::cat({sum, with_normal});
    check(ranks_service->all_reduce(run, handle(joint), 0 /* LH_REDUCE_SUM */));
    joint /= rows;
    const bool counts = ranks_service->counted(run) != 0;  // else these rows had no part in the statistics
    const int64_t channels = x.size(1);
    torch::Tensor dx = dy - along_channels(joint.narrow(0, 0, channels), x) -
                       normal * along_channels(joint.narrow(0, channels, channels), x);
    dx = dx * along_channels(saved[3], x);
    if (weight.defined()) dx = dx * along_channels(weight, x);
    if (!counts) dx = torch::zeros_like(dx);
    torch::Tensor dw, db;
    if (weight.defined()) dw = with_normal.to(weight.scalar_type()), db = sum.to(weight.scalar_type());
    return {dx, dw, db, torch::Tensor(), torch::Tensor(), torch::Tensor(), torch::Tensor()};
  }
};

// Base: torch's implementation for some number of dimensions.
template <class Base>
class SyncedBatchNormImpl : public Base {
 public:
  using Base::Base;
  torch::Tensor forward(const torch::Tensor& x) {
    if (!this->is_training() || !run_) return Base::forward(x);
    if (!ranks_service.table.size) ranks_service.bind(LH_RANKS_SERVICE);
    if (!ranks_service->sync_batchnorm(run_)) return Base::forward(x);
    const JointStatistics s = joint_statistics(run_, x);
    update_running(s);
    const torch::Tensor inverse = (s.variance + this->options.eps()).rsqrt();
    return JointNorm::apply(x, this->weight, this->bias, s.mean, inverse, s.rows,
                            reinterpret_cast<int64_t>(run_));
  }

 private:
  void update_running(const JointStatistics& s) {
    if (!this->running_mean.defined()) return;
    torch::NoGradGuard off;
    this->num_batches_tracked += 1;
    const auto momentum = this->options.momentum();
    const double share =
        momentum ? *momentum : 1.0 / static_cast<double>(this->num_batches_tracked.template item<int64_t>());
    const double unbiased = s.rows > 1 ? s.rows / (s.rows - 1) : 1;
    this->running_mean.mul_(1 - share).add_(s.mean.to(this->running_mean.scalar_type()), share);
    this->running_var.mul_(1 - share).add_((s.variance * unbiased).to(this->running_var.scalar_type()),
                                           share);
  }
  lh_run* run_ = creating_run;
};

}  // namespace detail

class BatchNorm1dImpl : public detail::SyncedBatchNormImpl<torch::nn::BatchNorm1dImpl> {
 public:
  using SyncedBatchNormImpl::SyncedBatchNormImpl;
};
class BatchNorm2dImpl : public detail::SyncedBatchNormImpl<torch::nn::BatchNorm2dImpl> {
 public:
  using SyncedBatchNormImpl::SyncedBatchNormImpl;
};
TORCH_MODULE(BatchNorm1d);
TORCH_MODULE(BatchNorm2d);

}  // namespace lhost
