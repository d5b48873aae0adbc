// step - torch.optim.lr_scheduler.StepLR: the rate times gamma after every step_size ticks.
#include <lhost/sdk/scheduler.hpp>

#include <cmath>

namespace {

struct Options {
  int64_t step_size = 1;
  double gamma = 0.1;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::step_size, "step_size", "ticks between two changes").min(1).required();
    d(&Options::gamma, "gamma", "factor of each change").min(0.0);
  }
};

struct Step : lhost::Scheduler {
  static constexpr const char* summary = "StepLR: times gamma after every step_size ticks";
  explicit Step(const Options& o) : options(o) {}
  double rate(const lh_clock& clock, double base_lr) const override {
    return base_lr * std::pow(options.gamma, static_cast<double>(clock.t / options.step_size));
  }
  Options options;
};

}  // namespace
LHOST_SCHEDULER(Step, Options, "step", "1.0.0")
