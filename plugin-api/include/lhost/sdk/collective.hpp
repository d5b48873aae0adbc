// lhost/sdk/collective.hpp - write a transport: derive from lhost::Collective, end with LHOST_COLLECTIVE(...).
#pragma once
#include <lhost/collective.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

// Each operation returns its completion, or NULL when it is already complete.
class Collective : public Component {
 public:
  using Handle = lh_collective;
  using Args = lh_collective_args;
  virtual void init(lh_run* run, const lh_env& env) = 0;
  virtual lh_work* all_reduce(const Args&) { return nullptr; }
  virtual lh_work* broadcast(const Args&) { return nullptr; }
  virtual lh_work* all_gather(const Args&) { return nullptr; }
  virtual lh_work* reduce_scatter(const Args&) { return nullptr; }
  virtual lh_work* barrier(lh_process_group*) { return nullptr; }
  virtual void abort(lh_code /*why*/) noexcept {}
};

struct CollectiveKind {
  static constexpr const char* kind = LH_COLLECTIVE_KIND;
  using Base = Collective;
  static void bind() {}
  template <lh_work* (Collective::*f)(const lh_collective_args&)>
  static lh_status operation(lh_collective* h, const lh_collective_args* a, lh_work** out) noexcept {
    return guard("collective", [&] { *out = (detail::self<Collective>(h).*f)(*a); });
  }
  template <class D>
  static lh_collective_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Collective, lh_collective_v0>();
    t.init = [](lh_collective* h, lh_run* run, const lh_env* env) noexcept {
      return guard("init", [&] { self<Collective>(h).init(run, *env); });
    };
#define LHOST_SLOT(f) \
  if (LHOST_OVERRIDES(D, Collective, f)) t.f = operation<&Collective::f>
    LHOST_SLOT(all_reduce);
    LHOST_SLOT(broadcast);
    LHOST_SLOT(all_gather);
    LHOST_SLOT(reduce_scatter);
#undef LHOST_SLOT
    if (LHOST_OVERRIDES(D, Collective, barrier))
      t.barrier = [](lh_collective* h, lh_process_group* g, lh_work** out) noexcept {
        return guard("barrier", [&] { *out = self<Collective>(h).barrier(g); });
      };
    t.abort = [](lh_collective* h, lh_code why) noexcept { self<Collective>(h).abort(why); };
    return t;
  }
};

}  // namespace lhost

#define LHOST_COLLECTIVE(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::CollectiveKind, LH_COLLECTIVE_KIND, Class, Options, name, version, "", 0)
