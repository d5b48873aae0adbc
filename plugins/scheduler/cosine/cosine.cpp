// cosine - torch.optim.lr_scheduler.CosineAnnealingLR in its closed form. After a t_max of its own it rises again, as
// there; where the end of training is its end, a training that is continued keeps the least rate.
#include <lhost/sdk/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace {

struct Options {
  double eta_min = 0;
  std::optional<int64_t> t_max;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::eta_min, "eta_min", "least rate").min(0.0);
    d(&Options::t_max, "t_max", "ticks from the base rate to the least; none = to the end of training")
        .min(1);
  }
};

struct Cosine : lhost::Scheduler {
  static constexpr const char* summary = "CosineAnnealingLR: down to eta_min along a cosine";
  explicit Cosine(const Options& o) : options(o) {}
  void check(const lh_clock& clock) override {
    if (clock.total < 0 && !options.t_max)
      throw lhost::Error(
          LH_INVALID_ARGUMENT,
          "the length of training is not known, so the cosine has no end; set scheduler.t_max, or "
          "trainer.max_epochs or trainer.max_steps");
  }
  double rate(const lh_clock& clock, double base_lr) const override {
    const int64_t length = std::max<int64_t>(1, options.t_max.value_or(clock.total));
    const int64_t t = options.t_max ? clock.t : std::min(clock.t, length);
    const double angle = M_PI * static_cast<double>(t) / static_cast<double>(length);
    return options.eta_min + (base_lr - options.eta_min) * (1 + std::cos(angle)) / 2;
  }
  Options options;
};

}  // namespace
LHOST_SCHEDULER(Cosine, Options, "cosine", "1.0.0")
