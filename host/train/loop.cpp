// host/train/loop.cpp - epochs, accumulation windows, records.
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

#include <cmath>
#include <ctime>

namespace lhost {

void Trainer::post_record(std::vector<Scalar> scalars) {
  if (log_writer_.empty() || scalars.empty()) return;
  log_writer_.check();
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  log_writer_.post({stage_, state_.step.global_step, state_.step.epoch, state_.step.samples,
                    t.tv_sec * 1000000000LL + t.tv_nsec, std::move(scalars)});
}

bool Trainer::minima_met() const {
  return state_.step.epoch >= set_.min_epochs && state_.step.global_step >= set_.min_steps;
}
bool Trainer::finished() const {
  const int64_t max_epochs = state_.info.max_epochs;
  return (max_epochs >= 0 && state_.step.epoch >= max_epochs) ||
         (set_.max_steps >= 0 && state_.step.global_step >= set_.max_steps) || (stopping() && minima_met());
}

void Trainer::apply_schedule() {
  const lh_step& s = state_.step;
  const std::vector<double>& rates = schedule_->at(schedule_->by_step() ? s.global_step : s.epoch);
  for (size_t g = 0; g < hyper_.size(); ++g) hyper_[g][lr_index_] = rates[g];
  state_.step.lr = rates[0];
}

void Trainer::fit() {
  stage_ = kFit;
  state_.step.stage = LH_STAGE_FIT;
  state_.metrics.set_stage(kFit);
  state_.info.samples = static_cast<int64_t>(splits_[LH_SPLIT_TRAIN].samples.size());
  state_.info.batches = epoch_batches_;
  if (finished()) {
    if (restored_)
      log(Level::warning, "nothing left to train: epoch " + std::to_string(state_.step.epoch) + ", step " +
                              std::to_string(state_.step.global_step) +
                              " is where trainer.max_epochs = " + std::to_string(state_.info.max_epochs) +
                              ", max_steps = " + std::to_string(set_.max_steps) + " ends; set more to go on");
    return;
  }
  sanity_check();
  apply_schedule();
  check(c_.model->set_mode(c_.model.self(), LH_MODE_TRAIN));
  if (c_.strategy->fit_start) check(c_.strategy->fit_start(c_.strategy.self()));
  emit(LH_EVENT(LH_STAGE_FIT, LH_ON_START));
  if (!restored_rng_.empty()) {
    const int64_t size = static_cast<int64_t>(restored_rng_.size());
    int64_t shape[1] = {size};
    lh_view v{restored_rng_.data(), {LH_DEVICE_CPU, 0}, 1, {LH_DT_UINT, 8, 1}, shape, nullptr, 0};
    check(engine_->rng_load(handle_.get(), &v));
    restored_rng_.clear();
  }
  fitting_ = true;
  while (!finished()) train_epoch();
  fitting_ = false;
  emit(LH_EVENT(LH_STAGE_FIT, LH_ON_END));
}

void Trainer::train_epoch() {
  lh_step& step = state_.step;
  Feed& train = feed(LH_SPLIT_TRAIN);
  train.start(epoch_order(splits_[LH_SPLIT_TRAIN].samples, set_.shuffle, set_.seed, step.epoch), step.epoch,
              step.batch, epoch_batches_);
  if (!mid_epoch_) state_.metrics.begin_epoch();
  mid_epoch_ = false;
  validated_ = false;
  emit(LH_EVENT(LH_STAGE_FIT, LH_ON_EPOCH_START));
  const bool complete = train_batches();

  // final before any validation hook runs
  state_.metrics.epoch_values();
  warn_of_divergence();
  const bool due = complete && (step.epoch + 1) % set_.val_every_epochs == 0;
  const bool before_stop = !complete && stopping();  // one validation of what is left, if none was due
  if (can_validate() && (due || before_stop)) {
    evaluate(kValidate, stage_batches(LH_SPLIT_VAL), false);
    validated_ = true;
  }
  emit(LH_EVENT(LH_STAGE_FIT, LH_ON_EPOCH_END));
  post_record(state_.metrics.epoch_values());
  if (complete) {
    epoch_done_ = true;
    ++step.epoch;
    if (!schedule_->by_step()) apply_schedule();  // before the checkpoint of that epoch
    --step.epoch;
  }
  save_point([&](CheckpointKeeper& k) { k.at_epoch_end(moment()); });
  epoch_done_ = false;
  agree();
  if (complete) {
    ++step.epoch;
    step.batch = boundary_batch_ = 0;
  }
}

// Training goes on: a scheduler or a callback may have an answer. But nobody should find out from the result only.
void Trainer::warn_of_divergence() {
  double loss = 0;
  if (diverged_ || !state_.metrics.find("loss", loss) || std::isfinite(loss)) return;
  diverged_ = true;
  log(Level::warning, "the loss is " + exact(loss) + " at the end of epoch " +
                          std::to_string(state_.step.epoch) + ", step " +
                          std::to_string(state_.step.global_step) +
                          "; a lower optimizer.lr or trainer.gradient_clip_val may help");
}

// The batches of one epoch. Signals, step limits and requests to stop are seen at step boundaries.
bool Trainer::train_batches() {
  lh_step& step = state_.step;
  Feed& train = feed(LH_SPLIT_TRAIN);
  const bool data_span = (profile_mask_ >> LH_SPAN_DATA & 1) != 0,
             step_span = (profile_mask_ >> LH_SPAN_STEP & 1) != 0;
  while (step.batch < epoch_batches_) {
    if (step.micro == 0) begin_window();
    if (step_span) profile(LH_SPAN_STEP, true);
    if (data_span) profile(LH_SPAN_DATA, true);
    state_.batch = train.next();
    if (data_span) profile(LH_SPAN_DATA, false);
    step.last_micro = step.micro + 1 == step.micro_count;
    const auto rows = static_cast<double>(train.global_rows(step.batch));
    seed_ = static_cast<double>(state_.batch->counted * topology_.data_count) / window_rows_;
    state_.metrics.set_counted(state_.batch->counted != 0);
    show_place();
    run_program(micro_);
    step.samples += static_cast<int64_t>(rows);
    ++step.batch;
    const bool boundary = step.last_micro != 0;
    bool stepped = false;
    if (boundary) stepped = finish_window();
    else ++step.micro;
    if (heard(LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_END))) emit(LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_END));
    if (step_span) profile(LH_SPAN_STEP, false);
    if (!boundary) continue;
    if (stepped && may_save_at(step.global_step))
      save_point([&](CheckpointKeeper& k) { k.at_step(moment()); });
    poll_signal();
    if (step.batch == epoch_batches_) break;
    if (step.global_step == set_.max_steps || (stopping() && minima_met())) return false;
  }
  return true;
}

// A window never crosses an epoch: the last one may be shorter, and is divided by its own rows.
void Trainer::begin_window() {
  lh_step& step = state_.step;
  const Feed& train = feed(LH_SPLIT_TRAIN);
  step.micro_count = static_cast<int32_t>(std::min(set_.accumulate, epoch_batches_ - step.batch));
  window_rows_ = 0;
  for (int32_t i = 0; i < step.micro_count; ++i)
    window_rows_ += static_cast<double>(train.global_rows(step.batch + i));
  window_weight_ = window_skipped_ = 0;
  window_mode_ = 0;
  window_has_gradient_ = false;
}

// One rank's skipped batch is everybody's, where that is the whole window; of a longer one its rows are left out.
bool Trainer::window_makes_a_step() const {
  const bool skipped = !ranks_.alone() && state_.step.micro_count == 1 && votes_[kSkips] > 0;
  return window_has_gradient_ && !skipped;
}

// false: the model skipped all of it, there was no optimizer step.
bool Trainer::finish_window() {
  lh_step& step = state_.step;
  step.micro = 0;
  if (window_has_gradient_ || !ranks_.alone()) run_program(sync_);
  const bool steps = window_makes_a_step();
  if (steps) [[likely]] {
    window_scale_ = 1;
    if (window_mode_ == 2) window_scale_ = static_cast<double>(topology_.data_count) / window_weight_;
    else if (window_skipped_ > 0) window_scale_ = window_rows_ / (window_rows_ - window_skipped_);
    if (loss_scale_ != 1) window_scale_ /= loss_scale_;
    run_program(window_);
    if (schedule_->by_step() && !schedule_->constant()) apply_schedule();
    if (set_.log_every > 0 && step.global_step % set_.log_every == 0)
      post_record(state_.metrics.step_values());
  } else if (window_has_gradient_) {
    check(engine_->drop_grads(handle_.get()));
  }
  boundary_batch_ = step.batch;
  boundary_samples_ = step.samples;
  return steps;
}

}  // namespace lhost
