// fakes.hpp - the services that callbacks ask for, as plain data that a test sets and reads.
#pragma once
#include "support/component.hpp"

#include <lhost/callback.h>
#include <lhost/params.h>
#include <lhost/trainer.h>

namespace lhost_test {

struct FakeRun {
  lh_step step{};
  lh_env env{};
  lh_trainer_info info{};
  std::vector<lh_metric_value> metrics;
  std::vector<lh_group_state> groups;
  std::vector<std::string> stops;

  bool tty = true, colour = false, enabled = true;
  int32_t width = 80;
  std::vector<std::string> painted, printed;

  std::vector<lh_param_info> params;

  struct Logged {
    std::string name;
    uint32_t flags;
    double value;
    bool operator==(const Logged& o) const { return name == o.name && flags == o.flags && value == o.value; }
  };
  std::vector<std::pair<std::string, uint32_t>> declared;
  std::vector<Logged> logged;

  void set_metric(const char* name, double value, uint32_t flags = 0) {
    for (lh_metric_value& m : metrics)
      if (text(m.name) == name) return void(m.value = value);
    metrics.push_back({{name, std::strlen(name)}, value, flags, 0});
  }
  void add_param(const char* name, std::vector<int64_t> shape, uint32_t flags = LH_P_TRAINABLE,
                 uint8_t bits = 32) {
    lh_param_info p{};
    p.size = sizeof p;
    p.index = static_cast<uint32_t>(params.size());
    p.flags = flags;
    p.name = {name, std::strlen(name)};
    p.dtype = {LH_DT_FLOAT, bits, 1};
    p.numel = 1;
    for (int64_t n : shape) p.numel *= n;
    params.push_back(p);
  }
};

// The run of the test that is running.
inline FakeRun& fake() {
  static FakeRun run;
  return run;
}

inline const lh_trainer_v0& trainer_table() {
  static const lh_trainer_v0 table = [] {
    lh_trainer_v0 t{};
    t.size = sizeof t;
    t.step = [](lh_run*) -> const lh_step* { return &fake().step; };
    t.env = [](lh_run*) -> const lh_env* { return &fake().env; };
    t.info = [](lh_run*, lh_trainer_info* out) { *out = fake().info; };
    t.metric = [](lh_run*, lh_str name, double* out) -> lh_bool {
      for (const lh_metric_value& m : fake().metrics)
        if (text(m.name) == text(name)) {
          *out = m.value;
          return 1;
        }
      return 0;
    };
    t.metrics = [](lh_run*, const lh_metric_value** out) -> uint64_t {
      *out = fake().metrics.data();
      return fake().metrics.size();
    };
    t.groups = [](lh_run*, const lh_group_state** out) -> uint64_t {
      *out = fake().groups.data();
      return fake().groups.size();
    };
    t.stop = [](lh_run*, lh_str reason) { fake().stops.push_back(text(reason)); };
    t.failure = [](lh_run*) { return lh_str{"", 0}; };
    t.checkpoint = [](lh_run*) { return lh_str{"", 0}; };
    return t;
  }();
  return table;
}

inline const lh_terminal_v0 terminal_table = {sizeof(lh_terminal_v0),
                                              0,
                                              []() -> lh_bool { return fake().tty; },
                                              []() -> lh_bool { return fake().colour; },
                                              []() -> lh_bool { return fake().enabled; },
                                              [] { return fake().width; },
                                              [](lh_str t) { fake().painted.push_back(text(t)); },
                                              [](lh_str t) { fake().printed.push_back(text(t)); }};

inline const lh_metrics_v0 metrics_table = {
    sizeof(lh_metrics_v0), 0,
    [](lh_run*, lh_str name, uint32_t flags, int32_t, uint32_t* id) -> lh_status {
      *id = static_cast<uint32_t>(fake().declared.size());
      fake().declared.emplace_back(text(name), flags);
      return nullptr;
    },
    [](lh_run*, uint32_t, lh_tensor*, double) -> lh_status { return nullptr; },
    [](lh_run*, uint32_t id, double value, double) -> lh_status {
      const auto& [name, flags] = fake().declared.at(id);
      fake().logged.push_back({name, flags, value});
      return nullptr;
    }};

inline const lh_params_v0& params_table() {
  static const lh_params_v0 table = [] {
    lh_params_v0 t{};
    t.size = sizeof t;
    t.count = [](lh_run*) { return static_cast<uint32_t>(fake().params.size()); };
    t.info = [](lh_run*, uint32_t p, lh_param_info* out) -> lh_status {
      *out = fake().params.at(p);
      return nullptr;
    };
    return t;
  }();
  return table;
}

// A fresh run for each test, and the services in place.
struct CallbackTest : testing::Test {
  CallbackTest() {
    fake() = FakeRun{};
    fake().info.size = sizeof(lh_trainer_info);
    logged().clear();
    services()[LH_TRAINER_SERVICE] = &trainer_table();
    services()[LH_TERMINAL_SERVICE] = &terminal_table;
    services()[LH_METRICS_SERVICE] = &metrics_table;
    services()[LH_PARAMS_SERVICE] = &params_table();
  }
};

class CallbackUnderTest : public Component<lh_callback, lh_callback_v0> {
 public:
  CallbackUnderTest(const std::string& name, const Options& options = {})
      : Component("callback", name, options) {}
  lh_status send(int32_t stage, int32_t what) {
    fake().step.stage = stage;
    return table.on_event(self, LH_EVENT(stage, what));
  }
  void hear(int32_t stage, int32_t what) { call(send(stage, what)); }
  bool subscribes(int32_t event) const {
    const int32_t* ids = nullptr;
    const uint64_t n = table.events(self, &ids);
    for (uint64_t i = 0; i < n; ++i)
      if (ids[i] == event) return true;
    return false;
  }
};

}  // namespace lhost_test
