// lhost/sdk/launcher.hpp - write a launcher: derive from lhost::Launcher, end with LHOST_LAUNCHER(...).
#pragma once
#include <lhost/launcher.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

class Launcher : public Component {
 public:
  using Handle = lh_launcher;
  // 0..100, and in `why` what was seen: "TORCHELASTIC_RUN_ID is set"
  virtual int32_t detect(const lh_launch_spec&, std::string& /*why*/) { return 0; }
  virtual void env(const lh_launch_spec&, lh_env& out) = 0;
  virtual int64_t start(const lh_rank_start&) { return 0; }  // gives the process

 private:
  friend struct LauncherKind;
  std::string why_;
};

struct LauncherKind {
  static constexpr const char* kind = LH_LAUNCHER_KIND;
  using Base = Launcher;
  static void bind() {}
  template <class D>
  static lh_launcher_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Launcher, lh_launcher_v0>();
    t.detect = [](lh_launcher* h, const lh_launch_spec* s, lh_str* why) noexcept -> int32_t {
      Launcher& x = self<Launcher>(h);
      x.why_.clear();
      try {
        const int32_t score = x.detect(*s, x.why_);
        *why = str(x.why_);
        return score;
      } catch (...) {
        return 0;
      }
    };
    t.env = [](lh_launcher* h, const lh_launch_spec* s, lh_env* out) noexcept {
      return guard("env", [&] { self<Launcher>(h).env(*s, *out); });
    };
    if (LHOST_OVERRIDES(D, Launcher, start))
      t.start = [](lh_launcher* h, const lh_rank_start* s, int64_t* pid) noexcept {
        return guard("start", [&] { *pid = self<Launcher>(h).start(*s); });
      };
    return t;
  }
};

}  // namespace lhost

#define LHOST_LAUNCHER(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::LauncherKind, LH_LAUNCHER_KIND, Class, Options, name, version, "", 0)
#define LHOST_FORKING_LAUNCHER(Class, Options, name, version)                                     \
  LHOST_SINGLE_PLUGIN(::lhost::LauncherKind, LH_LAUNCHER_KIND, Class, Options, name, version, "", \
                      LH_LAUNCHER_FORKS)
