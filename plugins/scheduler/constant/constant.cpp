// constant - the rate stays as given (after the host's warm-up).
#include <lhost/sdk/scheduler.hpp>

struct Constant : lhost::Scheduler {
  static constexpr const char* summary = "the learning rate as it is";
  double rate(const lh_clock&, double base_lr) const override { return base_lr; }
};
LHOST_SCHEDULER(Constant, lhost::NoOptions, "constant", "1.0.0")
