// lhost/sdk/precision.hpp - write a precision backend: derive from lhost::Precision, end with LHOST_PRECISION(...).
#pragma once
#include <lhost/precision.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

class Precision : public Component {
 public:
  using Handle = lh_precision;
  virtual void policy(lh_policy& out) = 0;
  virtual void enter(const lh_step&) {}
  virtual void leave(const lh_step&) {}
  virtual double loss_scale() noexcept { return 1; }
  virtual void update(bool /*found_inf*/) {}
};

struct PrecisionKind {
  static constexpr const char* kind = LH_PRECISION_KIND;
  using Base = Precision;
  static void bind() {}
  template <class D>
  static lh_precision_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Precision, lh_precision_v0>();
    t.policy = [](lh_precision* h, lh_policy* out) noexcept {
      return guard("policy", [&] { self<Precision>(h).policy(*out); });
    };
    if (LHOST_OVERRIDES(D, Precision, enter))
      t.enter = [](lh_precision* h, const lh_step* s) noexcept {
        return guard("enter", [&] { self<Precision>(h).enter(*s); });
      };
    if (LHOST_OVERRIDES(D, Precision, leave))
      t.leave = [](lh_precision* h, const lh_step* s) noexcept {
        return guard("leave", [&] { self<Precision>(h).leave(*s); });
      };
    if (LHOST_OVERRIDES(D, Precision, loss_scale))
      t.loss_scale = [](lh_precision* h) noexcept { return self<Precision>(h).loss_scale(); };
    if (LHOST_OVERRIDES(D, Precision, update))
      t.update = [](lh_precision* h, lh_bool found_inf) noexcept {
        return guard("update", [&] { self<Precision>(h).update(found_inf != 0); });
      };
    return t;
  }
};

}  // namespace lhost

#define LHOST_PRECISION(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::PrecisionKind, LH_PRECISION_KIND, Class, Options, name, version, "", 0)
