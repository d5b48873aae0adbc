// lhost/sdk/callback.hpp - write a callback: derive from lhost::Callback, override the hooks you want, end the
// file with LHOST_CALLBACK(...). A hook that is not overridden is not subscribed and costs nothing.
#pragma once
#include <lhost/callback.h>
#include <lhost/sdk/plugin.hpp>
#include <lhost/sdk/trainer.hpp>

namespace lhost {

class Callback : public Component {
 public:
  using Handle = lh_callback;
  virtual void on_fit_start() {}
  virtual void on_fit_end() {}
  virtual void on_train_epoch_start() {}
  virtual void on_train_epoch_end() {}
  virtual void on_train_batch_start() {}
  virtual void on_train_batch_end() {}
  virtual void on_before_optimizer_step() {}
  virtual void on_validation_start() {}
  virtual void on_validation_end() {}
  virtual void on_validation_batch_start() {}
  virtual void on_validation_batch_end() {}
  virtual void on_test_start() {}
  virtual void on_test_end() {}
  virtual void on_test_batch_start() {}
  virtual void on_test_batch_end() {}
  virtual void on_predict_start() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_start() {}
  virtual void on_predict_batch_end() {}  // trainer().predictions()
  virtual void on_exception() {}          // trainer().failure(); also when a stage other than fit fails
  virtual void on_save_checkpoint() {}    // trainer().checkpoint() is complete

 protected:
  Trainer& trainer() { return trainer_; }
  lh_run* run() const { return trainer_.run(); }
  Metrics& metrics() { return metrics_; }

 private:
  Trainer trainer_{detail::creating_run};
  Metrics metrics_{detail::creating_run};
};

struct CallbackKind {
  static constexpr const char* kind = LH_CALLBACK_KIND;
  using Base = Callback;
  static void bind() {
    detail::trainer_service.bind(LH_TRAINER_SERVICE);
    detail::terminal_service.bind(LH_TERMINAL_SERVICE);
    detail::metrics_service.bind(LH_METRICS_SERVICE);
  }
  struct Hook {
    int32_t event;
    void (Callback::*f)();
    const char* name;
    bool wanted;
  };
  template <class D>
  static const std::vector<Hook>& hooks() {
#define LHOST_HOOK(stage, what, f) \
  { LH_EVENT(stage, what), &Callback::f, #f, LHOST_OVERRIDES(D, Callback, f) }
    static const std::vector<Hook> all = {
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_START, on_fit_start),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_END, on_fit_end),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_EPOCH_START, on_train_epoch_start),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_EPOCH_END, on_train_epoch_end),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_BATCH_START, on_train_batch_start),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_BATCH_END, on_train_batch_end),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_BEFORE_STEP, on_before_optimizer_step),
        LHOST_HOOK(LH_STAGE_VALIDATE, LH_ON_START, on_validation_start),
        LHOST_HOOK(LH_STAGE_VALIDATE, LH_ON_END, on_validation_end),
        LHOST_HOOK(LH_STAGE_VALIDATE, LH_ON_BATCH_START, on_validation_batch_start),
        LHOST_HOOK(LH_STAGE_VALIDATE, LH_ON_BATCH_END, on_validation_batch_end),
        LHOST_HOOK(LH_STAGE_TEST, LH_ON_START, on_test_start),
        LHOST_HOOK(LH_STAGE_TEST, LH_ON_END, on_test_end),
        LHOST_HOOK(LH_STAGE_TEST, LH_ON_BATCH_START, on_test_batch_start),
        LHOST_HOOK(LH_STAGE_TEST, LH_ON_BATCH_END, on_test_batch_end),
        LHOST_HOOK(LH_STAGE_PREDICT, LH_ON_START, on_predict_start),
        LHOST_HOOK(LH_STAGE_PREDICT, LH_ON_END, on_predict_end),
        LHOST_HOOK(LH_STAGE_PREDICT, LH_ON_BATCH_START, on_predict_batch_start),
        LHOST_HOOK(LH_STAGE_PREDICT, LH_ON_BATCH_END, on_predict_batch_end),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_EXCEPTION, on_exception),
        LHOST_HOOK(LH_STAGE_FIT, LH_ON_CHECKPOINT, on_save_checkpoint)};
#undef LHOST_HOOK
    return all;
  }
  template <class D>
  static lh_callback_v0 table() {
    auto t = detail::object_table<D, Callback, lh_callback_v0>();
    t.events = [](lh_callback*, const int32_t** ids) noexcept {
      static const std::vector<int32_t> wanted = [] {
        std::vector<int32_t> v;
        for (const Hook& h : hooks<D>())
          if (h.wanted) v.push_back(h.event);
        return v;
      }();
      *ids = wanted.data();
      return static_cast<uint64_t>(wanted.size());
    };
    t.on_event = [](lh_callback* c, int32_t event) noexcept -> lh_status {
      for (const Hook& h : hooks<D>())
        if (h.event == event) return guard(h.name, [&] { (detail::self<Callback>(c).*h.f)(); });
      return nullptr;
    };
    return t;
  }
};

}  // namespace lhost

#define LHOST_CALLBACK(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::CallbackKind, LH_CALLBACK_KIND, Class, Options, name, version, "", 0)
