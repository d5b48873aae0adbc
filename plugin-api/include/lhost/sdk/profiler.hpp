// lhost/sdk/profiler.hpp - write a profiler: derive from lhost::Profiler, end with LHOST_PROFILER(...).
#pragma once
#include <lhost/profiler.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

class Profiler : public Component {
 public:
  using Handle = lh_profiler;
  virtual uint64_t start(const lh_run_info& run) = 0;  // the mask of spans wanted
  virtual void begin(int32_t span, int64_t monotonic_ns) noexcept = 0;
  virtual void end(int32_t span, int64_t monotonic_ns) noexcept = 0;
  virtual std::string stop() = 0;  // writes the report; returns its text for the terminal

 private:
  friend struct ProfilerKind;
  std::string summary_;
};

struct ProfilerKind {
  static constexpr const char* kind = LH_PROFILER_KIND;
  using Base = Profiler;
  static void bind() {}
  template <class D>
  static lh_profiler_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Profiler, lh_profiler_v0>();
    t.start = [](lh_profiler* h, const lh_run_info* i, uint64_t* mask) noexcept {
      return guard("start", [&] { *mask = self<Profiler>(h).start(*i); });
    };
    t.begin = [](lh_profiler* h, int32_t s, int64_t ns) noexcept { self<Profiler>(h).begin(s, ns); };
    t.end = [](lh_profiler* h, int32_t s, int64_t ns) noexcept { self<Profiler>(h).end(s, ns); };
    t.stop = [](lh_profiler* h, lh_str* summary) noexcept {
      return guard("stop", [&] {
        Profiler& p = self<Profiler>(h);
        p.summary_ = p.stop();
        *summary = str(p.summary_);
      });
    };
    return t;
  }
};

}  // namespace lhost

#define LHOST_PROFILER(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::ProfilerKind, LH_PROFILER_KIND, Class, Options, name, version, "", 0)
