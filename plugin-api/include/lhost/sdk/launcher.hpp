// lhost/sdk/launcher.hpp - write a launcher: derive from lhost::Launcher, end with LHOST_LAUNCHER(...).
#pragma once
#include <lhost/launcher.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

class Launcher : public Component {
 public:
  using Handle = lh_launcher;
  virtual int32_t detect() noexcept { return 0; }
  virtual void env(const lh_launch_spec&, lh_env& out) = 0;
  virtual int32_t launch(const lh_launch_spec&) { return 0; }
  virtual void signal(int32_t) noexcept {}
};

struct LauncherKind {
  static constexpr const char* kind = LH_LAUNCHER_KIND;
  using Base = Launcher;
  static void bind() {}
  template <class D>
  static lh_launcher_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Launcher, lh_launcher_v0>();
    t.detect = [](lh_launcher* h) noexcept { return self<Launcher>(h).detect(); };
    t.env = [](lh_launcher* h, const lh_launch_spec* s, lh_env* out) noexcept {
      return guard("env", [&] { self<Launcher>(h).env(*s, *out); });
    };
    if (LHOST_OVERRIDES(D, Launcher, launch))
      t.launch = [](lh_launcher* h, const lh_launch_spec* s, int32_t* code) noexcept {
        return guard("launch", [&] { *code = self<Launcher>(h).launch(*s); });
      };
    if (LHOST_OVERRIDES(D, Launcher, signal))
      t.signal = [](lh_launcher* h, int32_t sig) noexcept { self<Launcher>(h).signal(sig); };
    return t;
  }
};

}  // namespace lhost

#define LHOST_LAUNCHER(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::LauncherKind, LH_LAUNCHER_KIND, Class, Options, name, version, "", 0)
