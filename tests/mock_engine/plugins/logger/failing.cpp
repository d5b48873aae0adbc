// failing.cpp - a logger that fails or is slow, as told. For tests.
#include <lhost/sdk/logger.hpp>

#include <chrono>
#include <thread>

namespace {

struct Options {
  bool fail_open = false, fail_record = true;
  int64_t slow_ms = 0;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::fail_open, "fail_open", "fail when opened");
    d(&Options::fail_record, "fail_record", "fail on every record");
    d(&Options::slow_ms, "slow_ms", "milliseconds that each record takes").min(0);
  }
};

struct Failing : lhost::Logger {
  explicit Failing(const Options& o) : o_(o) {}
  void open(const lh_run_info&) override {
    if (o_.fail_open) throw lhost::Error(LH_PERMISSION, "told to fail when opened");
  }
  void record(const lh_record& r) override {
    if (o_.slow_ms) std::this_thread::sleep_for(std::chrono::milliseconds(o_.slow_ms));
    if (o_.fail_record)
      throw lhost::Error(LH_UNAVAILABLE,
                         "told to fail on the record of step " + std::to_string(r.global_step));
  }
  Options o_;
};

}  // namespace
LHOST_LOGGER(Failing, Options, "failing", "1.0.0")
