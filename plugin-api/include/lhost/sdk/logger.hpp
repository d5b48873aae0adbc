// lhost/sdk/logger.hpp - write a logger: derive from lhost::Logger, end the file with LHOST_LOGGER(...).
#pragma once
#include <lhost/logger.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

// All calls come from one background thread: they may block. A throw is an error of the logger (logger.h).
class Logger : public Component {
 public:
  using Handle = lh_logger;
  virtual void open(const lh_run_info& run) = 0;
  virtual void params(const lh_pair*, uint64_t /*n*/) {}
  virtual void record(const lh_record& record) = 0;
  virtual void flush() {}
  virtual void close(lh_code /*outcome*/, std::string_view /*message*/) {}
};

struct LoggerKind {
  static constexpr const char* kind = LH_LOGGER_KIND;
  using Base = Logger;
  static void bind() {}
  template <class D>
  static lh_logger_v1 table() {
    using detail::self;
    auto t = detail::object_table<D, Logger, lh_logger_v1>();
    t.open = [](lh_logger* h, const lh_run_info* i) noexcept {
      return guard("open", [&] { self<Logger>(h).open(*i); });
    };
    if (LHOST_OVERRIDES(D, Logger, params))
      t.params = [](lh_logger* h, const lh_pair* p, uint64_t n) noexcept {
        return guard("params", [&] { self<Logger>(h).params(p, n); });
      };
    t.record = [](lh_logger* h, const lh_record* r) noexcept {
      return guard("record", [&] { self<Logger>(h).record(*r); });
    };
    if (LHOST_OVERRIDES(D, Logger, flush))
      t.flush = [](lh_logger* h) noexcept { return guard("flush", [&] { self<Logger>(h).flush(); }); };
    if (LHOST_OVERRIDES(D, Logger, close))
      t.close = [](lh_logger* h, lh_code c, lh_str m) noexcept {
        return guard("close", [&] { self<Logger>(h).close(c, view(m)); });
      };
    return t;
  }
};

}  // namespace lhost

#define LHOST_LOGGER(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::LoggerKind, LH_LOGGER_KIND, Class, Options, name, version, "", 0)
