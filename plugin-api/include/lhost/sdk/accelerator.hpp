// lhost/sdk/accelerator.hpp - write an accelerator: derive from lhost::Accelerator, end with LHOST_ACCELERATOR(...).
// For devices that work in order with the host; streams are set in the C table (accelerator.h).
#pragma once
#include <lhost/accelerator.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

class Accelerator : public Component {
 public:
  using Handle = lh_accelerator;
  virtual int32_t score() noexcept = 0;          // 0 = cannot be used here
  virtual uint32_t device_count() noexcept = 0;  // without touching a device
  virtual lh_device open(uint32_t index) = 0;
  virtual void info(lh_accelerator_info&) {}
  virtual void synchronize() {}
  virtual void close() noexcept {}
};

struct AcceleratorKind {
  static constexpr const char* kind = LH_ACCELERATOR_KIND;
  using Base = Accelerator;
  static void bind() {}
  template <class D>
  static lh_accelerator_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Accelerator, lh_accelerator_v0>();
    t.score = [](lh_accelerator* h) noexcept { return self<Accelerator>(h).score(); };
    t.device_count = [](lh_accelerator* h) noexcept { return self<Accelerator>(h).device_count(); };
    t.open = [](lh_accelerator* h, uint32_t index, lh_device* out) noexcept {
      return guard("open", [&] { *out = self<Accelerator>(h).open(index); });
    };
    t.info = [](lh_accelerator* h, lh_accelerator_info* out) noexcept {
      return guard("info", [&] { self<Accelerator>(h).info(*out); });
    };
    if (LHOST_OVERRIDES(D, Accelerator, synchronize))
      t.synchronize = [](lh_accelerator* h) noexcept {
        return guard("synchronize", [&] { self<Accelerator>(h).synchronize(); });
      };
    t.close = [](lh_accelerator* h) noexcept { self<Accelerator>(h).close(); };
    return t;
  }
};

}  // namespace lhost

#define LHOST_ACCELERATOR(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::AcceleratorKind, LH_ACCELERATOR_KIND, Class, Options, name, version, "", 0)
