// host/train/schedule.hpp - the learning rates of all groups over time: clock, warm-up, base rates. [train]
//
// A tick is `frequency` optimizer steps or epochs. During W warm-up ticks the rate is base * (t + 1) / (W + 1), so that
// the schedule starts from the base rate at tick W: the same as torch.optim's LinearLR(1 / (W + 1), 1, W) followed by
// the schedule in a SequentialLR with milestone W.
#pragma once
#include "kinds/component.hpp"
#include "train/settings.hpp"

#include <cstdint>
#include <vector>

namespace lhost {

class Schedule {
 public:
  // scheduler: may be empty, then the base rates hold. total_units: steps or epochs to come, -1 = not known.
  Schedule(const Scheduler& scheduler, const ScheduleSettings&, int64_t total_units,
           std::vector<double> base_rates);
  // The rates after `units` steps (by_step) or epochs.
  const std::vector<double>& at(int64_t units);
  bool by_step() const { return settings_.by_step; }
  bool constant() const { return !scheduler_ && warmup_ == 0; }
  int64_t total() const { return total_; }  // ticks; -1 = not known
  void keep_total(int64_t total);           // of a resumed run: growing max_epochs does not bend the curve
  std::vector<double>& base_rates() { return base_; }
  void check() const;  // throws ComponentFailure if the schedule cannot work

 private:
  lh_clock clock(int64_t t) const;
  const Scheduler& scheduler_;
  ScheduleSettings settings_;
  int64_t total_, warmup_ = 0;
  std::vector<double> base_, rates_;
};

}  // namespace lhost
