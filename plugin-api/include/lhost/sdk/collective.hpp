// lhost/sdk/collective.hpp - write a transport: derive from lhost::Collective, end with LHOST_COLLECTIVE(...).
// An operation that is not overridden stays NULL: the run is refused where somebody needs it.
#pragma once
#include <lhost/collective.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

// Each operation returns its completion, or NULL when it is already complete.
class Collective : public Component {
 public:
  using Handle = lh_collective;
  using Args = lh_collective_args;
  virtual void init(lh_run* run, const lh_collective_init&) = 0;
  virtual lh_process_group* group(const int64_t* /*ranks*/, uint64_t /*n*/) { return nullptr; }
  virtual void group_free(lh_process_group*) noexcept {}
  virtual lh_work* all_reduce(const Args&) { return nullptr; }
  virtual lh_work* reduce(const Args&) { return nullptr; }
  virtual lh_work* broadcast(const Args&) { return nullptr; }
  virtual lh_work* all_gather(const Args&) { return nullptr; }
  virtual lh_work* gather(const Args&) { return nullptr; }
  virtual lh_work* reduce_scatter(const Args&) { return nullptr; }
  virtual lh_work* scatter(const Args&) { return nullptr; }
  virtual lh_work* all_to_all(const Args&) { return nullptr; }
  virtual lh_work* send(const Args&) { return nullptr; }
  virtual lh_work* recv(const Args&) { return nullptr; }
  virtual lh_work* barrier(const Args&) { return nullptr; }
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
    t.init = [](lh_collective* h, lh_run* run, const lh_collective_init* a) noexcept {
      return guard("init", [&] { self<Collective>(h).init(run, *a); });
    };
    if (LHOST_OVERRIDES(D, Collective, group)) {
      t.group = [](lh_collective* h, const int64_t* ranks, uint64_t n, lh_process_group** out) noexcept {
        return guard("group", [&] { *out = self<Collective>(h).group(ranks, n); });
      };
      t.group_free = [](lh_collective* h, lh_process_group* g) noexcept {
        self<Collective>(h).group_free(g);
      };
    }
#define LHOST_SLOT(f) \
  if (LHOST_OVERRIDES(D, Collective, f)) t.f = operation<&Collective::f>
    LHOST_SLOT(all_reduce);
    LHOST_SLOT(reduce);
    LHOST_SLOT(broadcast);
    LHOST_SLOT(all_gather);
    LHOST_SLOT(gather);
    LHOST_SLOT(reduce_scatter);
    LHOST_SLOT(scatter);
    LHOST_SLOT(all_to_all);
    LHOST_SLOT(send);
    LHOST_SLOT(recv);
    LHOST_SLOT(barrier);
#undef LHOST_SLOT
    t.abort = [](lh_collective* h, lh_code why) noexcept { self<Collective>(h).abort(why); };
    return t;
  }
};

}  // namespace lhost

#define LHOST_COLLECTIVE(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::CollectiveKind, LH_COLLECTIVE_KIND, Class, Options, name, version, "", 0)
