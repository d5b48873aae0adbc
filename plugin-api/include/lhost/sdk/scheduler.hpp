// lhost/sdk/scheduler.hpp - write a schedule: derive from lhost::Scheduler, end with LHOST_SCHEDULER(...).
#pragma once
#include <lhost/scheduler.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

class Scheduler : public Component {
 public:
  using Handle = lh_scheduler;
  virtual void check(const lh_clock&) {}                                 // throw what cannot work
  virtual double rate(const lh_clock& clock, double base_lr) const = 0;  // the learning rate at clock.t
};

struct SchedulerKind {
  static constexpr const char* kind = LH_SCHEDULER_KIND;
  using Base = Scheduler;
  static void bind() {}
  template <class D>
  static lh_scheduler_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Scheduler, lh_scheduler_v0>();
    if (LHOST_OVERRIDES(D, Scheduler, check))
      t.check = [](lh_scheduler* h, const lh_clock* c) noexcept {
        return guard("check", [&] { self<Scheduler>(h).check(*c); });
      };
    t.rate = [](lh_scheduler* h, const lh_clock* c, double base, double* out) noexcept {
      return guard("rate", [&] { *out = self<Scheduler>(h).rate(*c, base); });
    };
    return t;
  }
};

}  // namespace lhost

#define LHOST_SCHEDULER(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::SchedulerKind, LH_SCHEDULER_KIND, Class, Options, name, version, "", 0)
