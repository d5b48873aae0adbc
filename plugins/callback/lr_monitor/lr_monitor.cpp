// lr_monitor - records the learning rate of every parameter group: "lr", and "lr/<group>" for named groups.
#include <lhost/sdk/callback.hpp>

#include <map>

namespace {

enum class Interval { kStep, kEpoch };

struct Options {
  Interval interval = Interval::kStep;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::interval, "interval", "record at each optimizer step or once an epoch")
        .choices({"step", "epoch"});
  }
};

struct LrMonitor : lhost::Callback {
  static constexpr const char* summary = "records the learning rate of every parameter group";
  explicit LrMonitor(const Options& o) : interval(o.interval) {}
  // the rate that this very step is going to use
  void on_before_optimizer_step() override {
    if (interval == Interval::kStep) record(LH_ON_STEP);
  }
  void on_train_epoch_start() override {
    if (interval == Interval::kEpoch) record(LH_ON_EPOCH);
  }

 private:
  void record(uint32_t flags) {
    for (const lh_group_state& g : trainer().groups()) {
      const std::string name(lhost::view(g.name));
      auto known = ids_.find(name);
      if (known == ids_.end()) {
        const uint32_t id = metrics().declare(name.empty() ? "lr" : "lr/" + name, flags);
        known = ids_.emplace(name, id).first;
      }
      metrics().log(known->second, g.lr);
    }
  }
  Interval interval;
  std::map<std::string, uint32_t> ids_;  // metric of each group
};

}  // namespace
LHOST_CALLBACK(LrMonitor, Options, "lr_monitor", "1.0.0")
