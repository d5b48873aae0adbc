// host/train/program.cpp - the compiled step: which calls make up a micro-batch, a window's end, an evaluation batch.
#include "base/log.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

#include <ctime>

namespace lhost {
namespace {

int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

}  // namespace

struct Steps {
  using T = Trainer;

  template <int32_t event>
  static lh_status emit(T& t) {
    t.emit(event);
    return nullptr;
  }
  template <int32_t span>
  static lh_status begin_span(T& t) {
    t.c_.profiler->begin(t.c_.profiler.self(), span, monotonic_ns());
    return nullptr;
  }
  template <int32_t span>
  static lh_status end_span(T& t) {
    t.c_.profiler->end(t.c_.profiler.self(), span, monotonic_ns());
    return nullptr;
  }

  // ---- every micro-batch
  static lh_status begin_micro(T& t) {
    return t.c_.strategy->begin_micro(t.c_.strategy.self(), &t.state_.step);
  }
  static lh_status enter(T& t) { return t.c_.precision->enter(t.c_.precision.self(), &t.state_.step); }
  static lh_status leave(T& t) { return t.c_.precision->leave(t.c_.precision.self(), &t.state_.step); }
  static lh_status pre_forward(T& t) {
    return t.c_.strategy->units->pre_forward(t.c_.strategy.self(), LH_ROOT_UNIT, LH_PHASE_FORWARD);
  }
  static lh_status post_forward(T& t) {
    return t.c_.strategy->units->post_forward(t.c_.strategy.self(), LH_ROOT_UNIT, LH_PHASE_FORWARD);
  }
  static lh_status training_step(T& t) {
    t.out_.loss = nullptr;
    t.out_.weight = 0;
    return t.c_.model->training_step(t.c_.model.self(), t.state_.batch, &t.out_);
  }
  // The loss is seeded with this micro-batch's part in its window: rows / rows of the window. Weights that only the
  // model knows cannot be summed beforehand: then the seed is the weight, and the window's end divides once.
  static lh_status weigh(T& t) {
    if (!t.out_.loss) [[unlikely]] {
      t.window_skipped_ += static_cast<double>(t.state_.batch->counted);
      return nullptr;
    }
    if (!(t.out_.weight >= 0)) [[unlikely]]
      return make_status(LH_INVALID_ARGUMENT, "model:" + t.c_.model.identity().name, "training_step",
                         "the weight of its loss is " + exact(t.out_.weight) + ", expected a number > 0");
    const int mode = t.out_.weight > 0 ? 2 : 1;
    if (t.window_mode_ != mode) [[unlikely]] {
      if (t.window_mode_)
        return make_status(
            LH_FAILED_PRECONDITION, "model:" + t.c_.model.identity().name, "training_step",
            "some micro-batches of an accumulation window came with a weight and some without; return "
            "weighted(loss, w) from all of them or from none");
      t.window_mode_ = mode;
    }
    if (mode == 2) t.seed_ = t.state_.batch->counted ? t.out_.weight : 0;
    t.window_weight_ += mode == 2 ? t.seed_ : 0;
    t.window_has_gradient_ = true;
    return nullptr;
  }
  // Before backward of the window's last micro-batch, in which the last bucket may leave.
  static lh_status vote(T& t) {
    if (!t.state_.step.last_micro) return nullptr;
    double* v = t.votes_;
    t.put_wishes();
    v[T::kSkippedRows] = t.window_skipped_;
    v[T::kWeight] = t.window_weight_;
    v[T::kGradients] = t.window_has_gradient_ ? 1 : 0;
    v[T::kSkips] = t.out_.loss ? 0 : 1;
    v[T::kLoss] = v[T::kLossWeight] = 0;
    if (!t.out_.loss || !t.state_.batch->counted) return nullptr;
    double loss = 0;
    lh_bool ready = 0;
    if (lh_status s = t.engine_->scalar(t.out_.loss, &loss, &ready)) return s;
    if (!ready) return nullptr;
    v[T::kLossWeight] = t.out_.weight > 0 ? t.out_.weight : static_cast<double>(t.state_.batch->counted);
    v[T::kLoss] = loss * v[T::kLossWeight];
    return nullptr;
  }
  static lh_status backward(T& t) {
    return t.engine_->backward(t.handle_.get(), t.out_.loss, t.seed_ * t.loss_scale_);
  }
  static lh_status read_loss_scale(T& t) {
    t.loss_scale_ = t.c_.precision->loss_scale(t.c_.precision.self());
    return nullptr;
  }
  static lh_status after_backward(T& t) {
    return t.c_.strategy->after_backward(t.c_.strategy.self(), &t.state_.step);
  }
  static lh_status log_loss(T& t) {
    if (!t.out_.loss) [[unlikely]]
      return nullptr;
    const double weight = t.out_.weight > 0 ? t.out_.weight : static_cast<double>(t.state_.batch->counted);
    return t.state_.metrics.log(t.loss_metric_, t.out_.loss, weight);
  }

  // ---- every optimizer step
  static lh_status sync_grads(T& t) {
    return t.c_.strategy->sync_grads(t.c_.strategy.self(), &t.state_.step);
  }
  static lh_status sum_votes(T& t) {
    return answer("agree", [&] { t.ranks_.all_reduce(t.votes_tensor_, LH_REDUCE_SUM); });
  }
  // From here on the window's numbers are those of all ranks.
  static lh_status count_votes(T& t) {
    const double* v = t.votes_;
    t.read_wishes();
    t.window_skipped_ = v[T::kSkippedRows];
    t.window_weight_ = v[T::kWeight];
    t.window_has_gradient_ = v[T::kGradients] > 0;
    if (v[T::kLossWeight] > 0) t.state_.metrics.set_last(t.loss_metric_, v[T::kLoss] / v[T::kLossWeight]);
    return nullptr;
  }
  static lh_status scale_window(T& t) {
    return t.window_scale_ == 1 ? nullptr : t.engine_->scale_grads(t.handle_.get(), t.window_scale_);
  }
  static lh_status clip_norm(T& t) {
    lh_tensor* square_sum = nullptr;
    if (lh_status s = t.engine_->grad_square_sum(t.handle_.get(), &square_sum)) return s;
    return t.engine_->clip_norm(t.handle_.get(), square_sum, t.set_.clip);
  }
  static lh_status clip_value(T& t) { return t.engine_->clip_value(t.handle_.get(), t.set_.clip); }
  static lh_status optimize(T& t) {
    const lh_opt_group* groups = nullptr;
    uint64_t n = 0;
    if (lh_status s = t.engine_->gradient_groups(t.handle_.get(), &groups, &n)) return s;
    return t.c_.optimizer->step(t.c_.optimizer.self(), groups, n);
  }
  static lh_status drop_grads(T& t) {
    ++t.state_.step.global_step;
    return t.engine_->drop_grads(t.handle_.get());
  }
  static lh_status after_step(T& t) {
    return t.c_.strategy->after_step(t.c_.strategy.self(), &t.state_.step);
  }
  static lh_status update_precision(T& t) { return t.c_.precision->update(t.c_.precision.self(), 0); }

  // ---- every evaluation batch
  static lh_status validation_step(T& t) {
    return t.c_.model->validation_step(t.c_.model.self(), t.state_.batch);
  }
  static lh_status test_step(T& t) { return t.c_.model->test_step(t.c_.model.self(), t.state_.batch); }
  static lh_status predict_step(T& t) {
    return t.c_.model->predict_step(t.c_.model.self(), t.state_.batch, &t.state_.predictions,
                                    &t.state_.n_predictions);
  }
};

// Leaves out what nobody declared. shown: how the watched page calls it, where that is not `who`.
void Trainer::add(Program& program, bool declared, const char* who, lh_status (*f)(Trainer&),
                  const char* shown) {
  if (declared) program.push_back({f, who, watch_.page.add_operation(shown ? shown : who)});
}

void Trainer::compile() {
  compile_micro();
  compile_sync();
  compile_window();
  compile_evaluation();
}

void Trainer::compile_micro() {
  const lh_strategy_v0& s = c_.strategy.table();
  const lh_precision_v0& p = c_.precision.table();
  const auto profiled = [&](int32_t span) { return (profile_mask_ >> span & 1) != 0; };
  const bool hook = heard(LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_START));
  const auto units = s.units;
  Program& m = micro_;
  add(m, hook, "a hook", Steps::emit<LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_START)>);
  add(m, s.begin_micro, "the strategy", Steps::begin_micro);
  add(m, profiled(LH_SPAN_FORWARD), "the profiler", Steps::begin_span<LH_SPAN_FORWARD>);
  add(m, p.enter, "the precision backend", Steps::enter);
  add(m, units && units->pre_forward, "the strategy", Steps::pre_forward);
  add(m, true, "the model's training_step", Steps::training_step);
  add(m, units && units->post_forward, "the strategy", Steps::post_forward);
  add(m, p.leave, "the precision backend", Steps::leave);
  add(m, profiled(LH_SPAN_FORWARD), "the profiler", Steps::end_span<LH_SPAN_FORWARD>);
  add(m, p.loss_scale, "the precision backend", Steps::read_loss_scale);
  add(m, true, "the loss", Steps::weigh);
  add(m, !ranks_.alone(), "the votes", Steps::vote);
  add(m, profiled(LH_SPAN_BACKWARD), "the profiler", Steps::begin_span<LH_SPAN_BACKWARD>);
  add(m, true, "backward", Steps::backward);
  add(m, profiled(LH_SPAN_BACKWARD), "the profiler", Steps::end_span<LH_SPAN_BACKWARD>);
  add(m, s.after_backward, "the strategy", Steps::after_backward);
  add(m, true, "the metrics", Steps::log_loss);
}

void Trainer::compile_sync() {
  // A supervisor suspects a rank last that shows to wait for the others.
  constexpr const char* waits = "collective: the gradients of the other ranks";
  const lh_strategy_v0& s = c_.strategy.table();
  Program& y = sync_;
  const bool votes = !ranks_.alone() && !(topology_.flags & LH_CARRIES_VOTES);
  const bool timed = (profile_mask_ >> LH_SPAN_SYNC & 1) != 0 && (s.sync_grads || votes);
  add(y, timed, "the profiler", Steps::begin_span<LH_SPAN_SYNC>);
  add(y, s.sync_grads, "the strategy", Steps::sync_grads, waits);
  add(y, votes, "the votes", Steps::sum_votes, waits);
  add(y, timed, "the profiler", Steps::end_span<LH_SPAN_SYNC>);
  add(y, !ranks_.alone(), "the votes", Steps::count_votes);
}

void Trainer::compile_window() {
  const lh_strategy_v0& s = c_.strategy.table();
  const lh_precision_v0& p = c_.precision.table();
  const bool profiled = (profile_mask_ >> LH_SPAN_OPTIMIZER & 1) != 0;
  const bool hook = heard(LH_EVENT(LH_STAGE_FIT, LH_ON_BEFORE_STEP));
  Program& w = window_;
  add(w, true, "the engine", Steps::scale_window);
  add(w, hook, "a hook", Steps::emit<LH_EVENT(LH_STAGE_FIT, LH_ON_BEFORE_STEP)>);
  add(w, profiled, "the profiler", Steps::begin_span<LH_SPAN_OPTIMIZER>);
  add(w, set_.clip > 0 && !set_.clip_by_value, "the engine", Steps::clip_norm);
  add(w, set_.clip > 0 && set_.clip_by_value, "the engine", Steps::clip_value);
  add(w, true, "the optimizer", Steps::optimize);
  add(w, profiled, "the profiler", Steps::end_span<LH_SPAN_OPTIMIZER>);
  add(w, true, "the engine", Steps::drop_grads);
  add(w, s.after_step, "the strategy", Steps::after_step);
  add(w, p.update, "the precision backend", Steps::update_precision);
}

void Trainer::compile_evaluation() {
  const lh_precision_v0& p = c_.precision.table();
  const auto units = c_.strategy->units;
  lh_status (*const steps[])(Trainer&) = {nullptr, Steps::validation_step, Steps::test_step,
                                          Steps::predict_step};
  const char* names[] = {"", "the model's validation_step", "the model's test_step",
                         "the model's predict_step"};
  for (int stage = kValidate; stage <= kPredict; ++stage) {
    Program& e = evaluation_[stage];
    add(e, p.enter, "the precision backend", Steps::enter);
    add(e, units && units->pre_forward, "the strategy", Steps::pre_forward);
    add(e, true, names[stage], steps[stage]);
    add(e, units && units->post_forward, "the strategy", Steps::post_forward);
    add(e, p.leave, "the precision backend", Steps::leave);
  }
}

// ---- events

void Trainer::subscribe() {
  const auto listen = [&](auto& c, size_t callback) {
    hook_names_.push_back(c.identity().kind + ":" + c.identity().name);
    const auto call = [](void* o, int32_t e) {
      const auto& x = *static_cast<std::remove_reference_t<decltype(c)>*>(o);
      return x->on_event(x.self(), e);
    };
    const int32_t* ids = nullptr;
    const uint64_t n = c->events(c.self(), &ids);
    for (uint64_t i = 0; i < n; ++i)
      if (ids[i] >= 0 && ids[i] < 64)  // others: events of a newer host
        listeners_[ids[i]].push_back({call, &c, callback, {nullptr, hook_names_.back().c_str()}});
  };
  hook_names_.reserve(c_.callbacks.size() + 1);
  if (c_.model->events && c_.model->on_event) listen(c_.model, kModel);
  for (size_t i = 0; i < c_.callbacks.size(); ++i) listen(c_.callbacks[i], i);
}

void Trainer::emit(int32_t event) {
  emit_model(event);
  emit_callbacks(event);
}

// Calls one listener as an operation of its own, so that an exception that leaves it has a name.
lh_status Trainer::tell(const Listener& l, int32_t event) {
  const bool timed = (profile_mask_ >> LH_SPAN_CALLBACK & 1) != 0;
  const Op* before = std::exchange(current_, &l.op);
  if (timed) profile(LH_SPAN_CALLBACK, true);
  lh_status s = l.call(l.owner, event);
  if (timed) profile(LH_SPAN_CALLBACK, false);
  current_ = before;
  return s;
}

void Trainer::emit_model(int32_t event) {
  for (const Listener& l : listeners_[event])
    if (l.callback == kModel) check(tell(l, event));
}

void Trainer::emit_callbacks(int32_t event) {
  for (size_t i = 0; i < listeners_[event].size(); ++i) {
    const Listener& l = listeners_[event][i];
    if (l.callback == kModel) continue;
    lh_status s = tell(l, event);
    if (!s) [[likely]]
      continue;
    if (l.callback >= set_.callback_warns.size() || !set_.callback_warns[l.callback]) raise(s);
    const PluginError e = take(s);
    log(Level::warning, e.component + ": " + e.message + "; it is not called any more (on_error = \"warn\")");
    const size_t gone = l.callback;
    for (auto& list : listeners_) std::erase_if(list, [&](const Listener& x) { return x.callback == gone; });
    --i;
  }
}

}  // namespace lhost
