// common/adam.hpp - what adam and adamw share: all but the kind of weight decay and its default.
#pragma once
#include <lhost/sdk/optimizer.hpp>

namespace lhost {

template <bool decoupled>
struct AdamOptions {
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = decoupled ? 0.01 : 0.0;
  bool amsgrad = false, maximize = false;
  static void describe(Describe<AdamOptions>& d) {
    using O = AdamOptions;
    d(&O::lr, "lr", "learning rate").min(0.0).hyper();
    d(&O::betas, "betas", "decay of the running means of gradient and squared gradient")
        .range(0.0, 1.0)
        .min_len(2);
    d(&O::eps, "eps", "added to the root").min(0.0).hyper();
    d(&O::weight_decay, "weight_decay", decoupled ? "decoupled weight decay" : "L2 penalty").min(0.0).hyper();
    d(&O::amsgrad, "amsgrad", "divide by the greatest second moment so far");
    d(&O::maximize, "maximize", "climb instead of descend");
  }
};

template <bool decoupled>
class AdamRule : public Optimizer {
 public:
  static constexpr const char* summary =
      decoupled ? "torch.optim.AdamW: Adam with decoupled weight decay" : "torch.optim.Adam";
  explicit AdamRule(const AdamOptions<decoupled>& o) : amsgrad_(o.amsgrad) {
    if (o.betas.size() != 2)
      throw Error(LH_INVALID_ARGUMENT,
                  "betas: found " + std::to_string(o.betas.size()) + " numbers, expected 2");
    for (double b : o.betas)
      if (!(b >= 0 && b < 1))
        throw Error(LH_INVALID_ARGUMENT,
                    "betas: found " + detail::literal(b) + ", expected a number in [0, 1)");
    beta1_ = o.betas[0];
    beta2_ = o.betas[1];
    if (decoupled) flags_ |= LH_FUSED_DECOUPLED;
    if (o.amsgrad) flags_ |= LH_FUSED_AMSGRAD;
    if (o.maximize) flags_ |= LH_FUSED_MAXIMIZE;
  }
  std::vector<lh_slot> slots() override {
    std::vector<lh_slot> s = {like_param("exp_avg"), like_param("exp_avg_sq"), scalar("step")};
    if (amsgrad_) s.push_back(like_param("max_exp_avg_sq"));
    return s;
  }
  void step(const lh_opt_group& group) override {
    const double* h = group.hyper;
    const lh_adam_args args = {sizeof args, flags_, h[0], beta1_, beta2_, h[1], h[2]};
    check(fused().adam(&group, &args));
  }

 private:
  double beta1_ = 0, beta2_ = 0;
  const bool amsgrad_;
  uint32_t flags_ = 0;
};

}  // namespace lhost
