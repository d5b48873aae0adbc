// lhost/sdk/optimizer.hpp - write an optimizer: derive from lhost::Optimizer, end with LHOST_OPTIMIZER(...).
// Options marked hyper() arrive per group in group.hyper, in the order of their declaration.
#pragma once
#include <lhost/optimizer.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

namespace detail {
inline Service<lh_fused_v0> fused_service;
}

class Optimizer : public Component {
 public:
  using Handle = lh_optimizer;
  virtual std::vector<lh_slot> slots() { return {}; }  // state per parameter, zero at the start
  virtual void step(const lh_opt_group& group) = 0;    // once per group and step

 protected:
  // Whole steps in one kernel call, for a class that updates as SGD or Adam does.
  static const lh_fused_v0& fused() { return detail::fused_service.table; }
  static lh_slot like_param(const char* name) {
    return {sizeof(lh_slot), LH_SLOT_LIKE_PARAM, str(name), {0, 0, 0}, 0};
  }
  static lh_slot scalar(const char* name) {
    return {sizeof(lh_slot), LH_SLOT_SCALAR, str(name), {LH_DT_FLOAT, 32, 1}, 0};
  }

 private:
  friend struct OptimizerKind;
  friend void made(Optimizer& o) { o.kept_slots_ = o.slots(); }
  std::vector<lh_slot> kept_slots_;
};

struct OptimizerKind {
  static constexpr const char* kind = LH_OPTIMIZER_KIND;
  using Base = Optimizer;
  static void bind() { detail::fused_service.bind(LH_FUSED_SERVICE); }
  template <class D>
  static lh_optimizer_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Optimizer, lh_optimizer_v0>();
    t.slots = [](lh_optimizer* h, const lh_slot** out) noexcept -> uint64_t {
      const Optimizer& o = self<Optimizer>(h);
      *out = o.kept_slots_.data();
      return o.kept_slots_.size();
    };
    t.step = [](lh_optimizer* h, const lh_opt_group* groups, uint64_t n) noexcept {
      return guard("step", [&] {
        for (uint64_t i = 0; i < n; ++i) self<Optimizer>(h).step(groups[i]);
      });
    };
    return t;
  }
};

}  // namespace lhost

#define LHOST_OPTIMIZER(Class, Options, name, version, flags) \
  LHOST_SINGLE_PLUGIN(::lhost::OptimizerKind, LH_OPTIMIZER_KIND, Class, Options, name, version, "", flags)
