// acme.periodic.cpp - a strategy of one's own in C++: replicas train alone and are averaged every few steps.
#include <lhost/sdk/strategy.hpp>

struct Options {
  double every = 8;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::every, "every", "optimizer steps between two averagings").min(1);
  }
};

struct PeriodicAveraging : lhost::Strategy {
  explicit PeriodicAveraging(const Options& o) : every(int64_t(o.every)) {}
  int64_t every;
  void plan(lhost::Plan& plan) override { plan.replicate(plan.all_parameters()); }
  void fit_start() override { broadcast(params(), /*root=*/0).wait(); }
  void after_step(const lhost::Step& step) override {
    if (step.global_step % every == 0) all_reduce(params(), lhost::ReduceOp::avg).wait();
  }
};
LHOST_STRATEGY(PeriodicAveraging, Options, "acme.periodic", "1.0.0")
