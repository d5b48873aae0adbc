#include "train/schedule.hpp"

#include <cmath>

namespace lhost {

Schedule::Schedule(const Scheduler& scheduler, const ScheduleSettings& settings, int64_t total_units,
                   std::vector<double> base_rates)
    : scheduler_(scheduler), settings_(settings), base_(std::move(base_rates)), rates_(base_) {
  keep_total(total_units < 0 ? -1 : (total_units + settings_.frequency - 1) / settings_.frequency);
}

void Schedule::keep_total(int64_t total) {
  total_ = total;
  warmup_ = settings_.warmup_ticks;
  if (warmup_ == 0 && settings_.warmup_share > 0 && total_ > 0)
    warmup_ = static_cast<int64_t>(std::llround(settings_.warmup_share * static_cast<double>(total_)));
}

lh_clock Schedule::clock(int64_t t) const {
  return {sizeof(lh_clock), 0, t - warmup_, total_ < 0 ? -1 : std::max<int64_t>(0, total_ - warmup_)};
}

void Schedule::check() const {
  if (settings_.warmup_share > 0 && total_ < 0)
    throw ComponentFailure(
        PluginError{LH_INVALID_ARGUMENT, "scheduler", "warmup",
                    "a share of a run without end is not defined; set trainer.max_epochs or "
                    "trainer.max_steps, or give warmup as a number of ticks"});
  if (!scheduler_ || !scheduler_->check) return;
  const lh_clock c = clock(warmup_);
  lhost::check(scheduler_->check(scheduler_.self(), &c));
}

const std::vector<double>& Schedule::at(int64_t units) {
  const int64_t t = units / settings_.frequency;
  for (size_t g = 0; g < base_.size(); ++g) {
    if (t < warmup_) {
      rates_[g] = base_[g] * static_cast<double>(t + 1) / static_cast<double>(warmup_ + 1);
    } else if (scheduler_) {
      const lh_clock c = clock(t);
      lhost::check(scheduler_->rate(scheduler_.self(), &c, base_[g], &rates_[g]));
    } else {
      rates_[g] = base_[g];
    }
  }
  return rates_;
}

}  // namespace lhost
