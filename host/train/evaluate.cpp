// host/train/evaluate.cpp - one pass over validation, test or predict data, leaving training as it was.
#include "base/failure.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

namespace lhost {
namespace {

// Batches of an evaluation between two questions whether any rank got a signal.
constexpr int64_t kAgreeEvery = 16;

constexpr int32_t kSplitOf[] = {LH_SPLIT_TRAIN, LH_SPLIT_VAL, LH_SPLIT_TEST, LH_SPLIT_PREDICT};

// Training goes on exactly as if there had been no evaluation: modules' modes, gradient recording, counters, random
// numbers. Also when an evaluation ends by an exception.
class Interlude {
 public:
  Interlude(const Engine& engine, RunHandle& handle, const Model& model, int32_t& stage)
      : engine_(engine),
        handle_(handle),
        model_(model),
        stage_(stage),
        old_stage_(stage),
        old_step_(handle.state().step),
        old_info_(handle.state().info) {
    check(engine_->rng_save(handle_.get(), &rng_));
    check(model_->set_mode(model_.self(), LH_MODE_EVAL));
    check(engine_->inference(handle_.get(), 1));
  }
  ~Interlude() {
    drop(engine_->inference(handle_.get(), 0));
    drop(model_->set_mode(model_.self(), LH_MODE_TRAIN));
    lh_view v{};
    lh_status s = engine_.tensor.view(rng_, &v);
    if (!s) s = engine_->rng_load(handle_.get(), &v);
    drop(s);
    engine_.tensor.release(rng_);
    handle_.state().step = old_step_;
    handle_.state().info = old_info_;
    handle_.state().metrics.set_stage(old_stage_);
    stage_ = old_stage_;
  }
  Interlude(const Interlude&) = delete;

 private:
  static void drop(lh_status s) {
    if (s) log(Level::warning, take(s).message);
  }
  const Engine& engine_;
  RunHandle& handle_;
  const Model& model_;
  int32_t& stage_;
  int32_t old_stage_;
  lh_step old_step_;
  lh_trainer_info old_info_;
  lh_tensor* rng_ = nullptr;
};

}  // namespace

bool Trainer::can_validate() const {
  return c_.model->validation_step && !splits_[LH_SPLIT_VAL].samples.empty() &&
         stage_batches(LH_SPLIT_VAL) > 0;
}

void Trainer::evaluate(int32_t stage, int64_t batch_limit, bool sanity) {
  const Interlude interlude(engine_, handle_, c_.model, stage_);
  try {
    pass(stage, batch_limit, sanity);
  } catch (...) {
    failed_place_ = place();  // before the interlude puts the counters of training back
    throw;
  }
}

void Trainer::pass(int32_t stage, int64_t batch_limit, bool sanity) {
  const int32_t split = kSplitOf[stage];
  Feed& data = feed(split);
  if (c_.profiler && (profile_mask_ >> LH_SPAN_EVALUATE & 1)) profile(LH_SPAN_EVALUATE, true);
  lh_step& step = state_.step;
  stage_ = step.stage = stage;
  step.batch = 0;
  step.flags = sanity ? uint32_t{LH_STEP_SANITY} : 0u;
  const std::vector<KnownMetric> known = state_.metrics.take_known();
  state_.metrics.set_stage(stage);
  state_.metrics.begin_evaluation();
  if (c_.strategy->eval_start) check(c_.strategy->eval_start(c_.strategy.self()));
  data.start(splits_[split].samples, step.epoch, 0, batch_limit);
  state_.info.batches = data.batches();
  state_.info.samples = data.total_rows();

  emit(LH_EVENT(stage, LH_ON_START));
  while ((state_.batch = data.next()) != nullptr) {
    if (heard(LH_EVENT(stage, LH_ON_BATCH_START))) emit(LH_EVENT(stage, LH_ON_BATCH_START));
    state_.metrics.set_counted(state_.batch->counted != 0);
    show_place();
    run_program(evaluation_[stage]);
    if (!sanity) post_record(state_.metrics.step_values());
    ++step.batch;
    if (heard(LH_EVENT(stage, LH_ON_BATCH_END))) emit(LH_EVENT(stage, LH_ON_BATCH_END));
    state_.predictions = nullptr;
    state_.n_predictions = 0;
    if (step.batch % kAgreeEvery == 0) agree();
    poll_signal();
  }
  emit_model(LH_EVENT(stage, LH_ON_END));
  state_.metrics.epoch_values();  // known before the callbacks that decide on them
  emit_callbacks(LH_EVENT(stage, LH_ON_END));
  std::vector<Scalar> values = state_.metrics.epoch_values();
  if (stage == kTest)
    for (const Scalar& s : values) result_.test[s.name] = s.value;
  if (sanity) state_.metrics.put_known(known);
  else post_record(std::move(values));
  if (c_.profiler && (profile_mask_ >> LH_SPAN_EVALUATE & 1)) profile(LH_SPAN_EVALUATE, false);
}

void Trainer::sanity_check() {
  if (restored_ || set_.sanity_batches == 0 || !can_validate()) return;
  const int64_t all = stage_batches(LH_SPLIT_VAL);
  evaluate(kValidate, set_.sanity_batches < 0 ? all : std::min(all, set_.sanity_batches), true);
  for (const CheckpointPolicy& p : set_.checkpoints)
    if (p.monitor.rfind("val_", 0) == 0 && !state_.metrics.declared(p.monitor))
      throw Failure(Exit::failed, p.instance + ".monitor: the model's validation_step logs no \"" +
                                      p.monitor + "\" (seen in the check before training)");
}

}  // namespace lhost
