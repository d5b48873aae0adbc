// host/train/metrics.hpp - log(): values on the step and over the epoch, kept apart for training and evaluation.
// The service "lhost.metrics/0" stands on it. [train]
#pragma once
#include "train/engine.hpp"

#include <lhost/metrics.h>

#include <string>
#include <string_view>
#include <vector>

namespace lhost {

class Ranks;

struct Scalar {
  std::string name;
  double value;
};
struct KnownMetric {  // last known value, for callbacks, names of checkpoints, result.json
  std::string name;
  double value;
  uint32_t flags;
};

class Metrics {
 public:
  explicit Metrics(const Engine& engine) : engine_(engine) {}
  ~Metrics();

  uint32_t declare(std::string_view name, uint32_t flags, int32_t reduce);  // throws ComponentFailure
  lh_status log(uint32_t id, lh_tensor* scalar, double weight);
  lh_status log_number(uint32_t id, double value, double weight);

  // Values of an epoch are reduced over these ranks: then epoch_values and save_epoch are called by all of them together.
  void set_ranks(Ranks* ranks) { ranks_ = ranks; }
  // false: the running batch only keeps the others company; what is logged is in no value.
  void set_counted(bool counted) { counted_ = counted; }
  // The step's value of a metric where the ranks have agreed on one.
  void set_last(uint32_t id, double value) { metrics_[id].of[part()].last = value; }

  void set_stage(int32_t stage) { stage_ = stage; }
  void begin_epoch() { clear(kTrain); }
  void begin_evaluation() { clear(kEval); }
  std::vector<KnownMetric> take_known() {
    return known_;
  }  // a sanity check puts back what was known before it
  void put_known(std::vector<KnownMetric> k) { known_ = std::move(k); }
  bool declared(std::string_view name) const;

  // What a record of this moment holds. step: values of the running micro-batch that were logged since the last one;
  // epoch: reduced ones of the running stage. Each also becomes known.
  std::vector<Scalar> step_values();
  std::vector<Scalar> epoch_values();
  const std::vector<KnownMetric>& known();  // brought up to date first
  bool find(std::string_view name, double& out);

  // The accumulators of a training epoch cut by a checkpoint.
  struct Saved {
    std::string name;
    uint32_t flags;
    int32_t reduce;
    double value, weight;
    int64_t count;
  };
  std::vector<Saved> save_epoch();
  void load_epoch(const std::vector<Saved>&);
  void restore_known(const std::string& name, double value, uint32_t flags) { know(name, value, flags); }

 private:
  enum { kTrain = 0, kEval = 1 };
  struct Pending {  // still on a device
    lh_tensor* handle;
    double weight;
    bool counted;
  };
  struct Accumulator {
    double last = 0, value = 0, weight = 0;
    int64_t count = 0;
    bool seen = false;   // logged since the last clear, counted or not
    bool fresh = false;  // logged since the last step record
    std::vector<Pending> pending;
  };
  struct Metric {
    std::string name;
    uint32_t flags;
    int32_t reduce;
    Accumulator of[2];
  };
  int part() const { return stage_ == 0 ? kTrain : kEval; }
  bool on_epoch(const Metric& m, int part) const;
  bool on_step(const Metric& m, int part) const;
  void add(Metric& m, double value, double weight);
  static void accumulate(const Metric& m, Accumulator& a, double value, double weight);
  void settle(Metric& m, int part);
  void clear(int part);
  void know(const std::string& name, double value, uint32_t flags);
  std::string shown_name(const std::string& name) const;
  static double reduced(const Metric& m, const Accumulator& a);
  static void merge(int32_t reduce, Accumulator& into, const Accumulator& other);
  std::vector<Accumulator> over_ranks(int part, bool strict);

  const Engine& engine_;
  std::vector<Metric> metrics_;
  std::vector<KnownMetric> known_;
  Ranks* ranks_ = nullptr;  // NULL: there is one rank
  bool counted_ = true;
  int32_t stage_ = 0;
};

}  // namespace lhost
