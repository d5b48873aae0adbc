// lhost/sdk/model.hpp - write a model: derive from lhost::Model, end the file with LHOST_MODEL(...).
// A Model is a torch::nn::Module on one device: no sampler, rank, zero_grad or autocast in it.
#pragma once
#include <lhost/sdk/trainer.hpp>
#include <lhost/sdk/unit.hpp>

#include <string_view>

namespace lhost {

// A batch: tensors by name, [rows, ...]. Lent for one step; a copied Tensor may be kept.
class Batch {
 public:
  explicit Batch(const lh_batch& b) : b_(b) {}
  const torch::Tensor& operator[](std::string_view name) const {
    for (uint32_t i = 0; i < b_.n; ++i)
      if (view(b_.names[i]) == name) return tensor(b_.tensors[i]);
    throw Error(LH_NOT_FOUND, "the batch has no \"" + std::string(name) + "\"; it has " + names());
  }
  const torch::Tensor& first() const { return tensor(b_.tensors[0]); }
  int64_t rows() const { return b_.rows; }

 private:
  std::string names() const {
    std::string s;
    for (uint32_t i = 0; i < b_.n; ++i) s += (i ? ", \"" : "\"") + std::string(view(b_.names[i])) + '"';
    return s;
  }
  const lh_batch& b_;
};

struct LogOptions {  // neither on_step nor on_epoch: training logs on the step, the other stages on the epoch
  bool on_step = false, on_epoch = false;
  bool prog_bar = false;
  int32_t reduce =
      LH_MEAN;        // LH_MEAN, LH_METRIC_SUM, LH_METRIC_MIN, LH_METRIC_MAX: over the epoch and the ranks
  double weight = 0;  // share in the epoch's mean; 0 = the batch's rows
};

class Model : public torch::nn::Module {
 public:
  // The loss of one micro-batch: one element, the mean over its rows. An undefined tensor skips the batch.
  virtual torch::Tensor training_step(const Batch& batch) = 0;
  virtual void validation_step(const Batch&) {}
  // In the test stage a leading "val_" of a metric's name becomes "test_".
  virtual void test_step(const Batch& batch) { validation_step(batch); }
  virtual torch::Tensor predict_step(const Batch&) { return {}; }  // default: forward() of the first tensor

  // Not overridden means not called.
  virtual void on_fit_start() {}
  virtual void on_fit_end() {}
  virtual void on_train_epoch_start() {}
  virtual void on_train_epoch_end() {}
  virtual void on_train_batch_start() {}
  virtual void on_train_batch_end() {}
  virtual void on_before_optimizer_step() {}
  virtual void on_validation_start() {}
  virtual void on_validation_end() {}
  virtual void on_test_start() {}
  virtual void on_test_end() {}
  virtual void save_state(const StateOut&) {}  // beyond parameters and buffers
  virtual void load_state(const StateIn&) {}

 protected:
  // Record a value of one element, any dtype. No synchronisation with a device.
  void log(std::string_view name, const torch::Tensor& value, const LogOptions& o = {}) {
    check(detail::metrics_service->log(trainer_.run(), metric(name, o), handle(value),
                                       o.weight > 0 ? o.weight : weight_));
  }
  void log(std::string_view name, double value, const LogOptions& o = {}) {
    check(detail::metrics_service->log_number(trainer_.run(), metric(name, o), value,
                                              o.weight > 0 ? o.weight : weight_));
  }
  // return weighted(loss, tokens): the accumulation window is the mean weighted by `weight` instead of by rows.
  torch::Tensor weighted(torch::Tensor loss, double weight) {
    if (!(weight > 0) || weight > 1e300)
      throw Error(LH_INVALID_ARGUMENT,
                  "weighted(): the weight is " + std::to_string(weight) +
                      ", expected a number > 0; return an undefined Tensor to skip a batch");
    weight_ = weight;
    explicit_weight_ = true;
    return loss;
  }
  Trainer& trainer() { return trainer_; }

 private:
  template <class, class>
  friend struct ModelPlugin;

  // A name is looked up by address first, as literals are, but text decides: two names may share an address one after
  // the other.
  uint32_t metric(std::string_view name, const LogOptions& o) {
    for (const Known& k : known_)
      if (k.ptr == name.data() && k.text == name) return k.id;
    for (const Known& k : known_)
      if (k.text == name) return k.id;
    const uint32_t flags = (o.on_step ? uint32_t{LH_ON_STEP} : 0u) |
                           (o.on_epoch ? uint32_t{LH_ON_EPOCH} : 0u) |
                           (o.prog_bar ? uint32_t{LH_PROG_BAR} : 0u);
    uint32_t id = 0;
    check(detail::metrics_service->declare(trainer_.run(), str(name), flags, o.reduce, &id));
    known_.push_back({name.data(), std::string(name), id});
    return id;
  }
  struct Known {
    const char* ptr;
    std::string text;
    uint32_t id;
  };
  std::vector<Known> known_;
  Trainer trainer_{detail::creating_run};
  double weight_ = 1;
  bool explicit_weight_ = false;
};

// The C table over one model class.
template <class M, class Options>
struct ModelPlugin {
  using Handle = lh_model;
  struct Entry {
    std::string name;
    torch::Tensor tensor;
    uint32_t unit, flags, alias_of;
  };
  struct UnitEntry {
    std::string name;
    UnitTag* tag;
    uint32_t parent;
    std::vector<uint32_t> params;
  };

  std::shared_ptr<M> model;  // named_modules() needs the shared_ptr
  std::vector<Entry> entries;
  std::vector<UnitEntry> units;
  std::vector<bool> modes;         // of each module while an evaluation runs
  torch::Tensor loss, prediction;  // lent to the host until the next step
  lh_tensor* prediction_handle = nullptr;

  explicit ModelPlugin(const Options& o) : model(make(o)) {
    units.push_back({"", nullptr, LH_ROOT_UNIT, {}});
    // Python's state_dict order: a module's own parameters, then its buffers, then its children.
    for (auto& m : model->named_modules("", true)) {
      const uint32_t unit = enter_module(m.key(), *m.value());
      const std::string prefix = m.key().empty() ? "" : m.key() + ".";
      for (auto& p : m.value()->named_parameters(false)) add(prefix + p.key(), p.value(), unit, false);
      for (auto& b : m.value()->named_buffers(false)) add(prefix + b.key(), b.value(), unit, true);
    }
  }
  static std::shared_ptr<M> make(const Options& o) {
    if constexpr (std::is_constructible_v<M, const Options&>) return std::make_shared<M>(o);
    else return std::make_shared<M>();
  }
  // The innermost unit around a module.
  uint32_t enter_module(const std::string& name, torch::nn::Module& m) {
    uint32_t around = LH_ROOT_UNIT;
    for (uint32_t u = 1; u < units.size(); ++u)
      if (name.starts_with(units[u].name + ".")) around = u;
    auto* tag = dynamic_cast<UnitTag*>(&m);
    if (!tag) return around;
    tag->unit = static_cast<uint32_t>(units.size());
    units.push_back({name, tag, around, {}});
    return tag->unit;
  }
  // The copy shares the module's TensorImpl, so the engine's set_data() reaches the module's own tensor.
  void add(const std::string& name, const torch::Tensor& t, uint32_t unit, bool buffer) {
    if (!t.defined()) return;
    const auto index = static_cast<uint32_t>(entries.size());
    for (uint32_t i = 0; i < index; ++i)
      if (entries[i].tensor.is_same(t)) return void(entries.push_back({name, t, unit, LH_P_ALIAS, i}));
    const uint32_t flags = buffer ? uint32_t{LH_P_BUFFER} : t.requires_grad() ? uint32_t{LH_P_TRAINABLE} : 0u;
    entries.push_back({name, t, unit, flags, index});
    if (!buffer) units[unit].params.push_back(index);
  }

  static ModelPlugin& self(lh_model* m) { return *reinterpret_cast<ModelPlugin*>(m); }

  static lh_status param(lh_model* m, uint32_t i, lh_param_info* out, lh_tensor** borrowed) noexcept {
    return guard("param", [&] {
      Entry& e = self(m).entries.at(i);
      const uint32_t size = out->size;
      *out = {size,
              i,
              e.unit,
              e.flags,
              str(e.name),
              dtype_of(e.tensor.scalar_type()),
              static_cast<int32_t>(e.tensor.dim()),
              e.tensor.sizes().data(),
              e.tensor.numel(),
              e.alias_of,
              0};
      *borrowed = handle(e.tensor);
    });
  }
  static lh_status unit(lh_model* m, uint32_t i, lh_unit_info* out) noexcept {
    return guard("unit", [&] {
      UnitEntry& u = self(m).units.at(i);
      const uint32_t size = out->size;
      *out = {size, i, u.parent, 0, str(u.name), u.params.data(), u.params.size()};
    });
  }
  static lh_status attach(lh_model* m, const lh_unit_calls* calls) noexcept {
    for (UnitEntry& u : self(m).units)
      if (u.tag) u.tag->calls = calls->enter ? calls : nullptr;
    return nullptr;
  }
  static lh_status set_mode(lh_model* m, int32_t mode) noexcept {
    return guard("set_mode", [&] {
      ModelPlugin& s = self(m);
      auto modules = s.model->modules();
      if (mode == LH_MODE_EVAL) {
        s.modes.clear();
        for (auto& x : modules) s.modes.push_back(x->is_training());
        return s.model->eval();
      }
      // train() of a module also sets its children, which come later in the list and so get their own mode last
      for (size_t i = 0; i < s.modes.size() && i < modules.size(); ++i) modules[i]->train(s.modes[i]);
    });
  }
  void begin(const lh_batch& b) {
    model->weight_ = static_cast<double>(b.counted);
    model->explicit_weight_ = false;
  }
  static lh_status training_step(lh_model* m, const lh_batch* b, lh_step_out* out) noexcept {
    return guard("training_step", [&] {
      ModelPlugin& s = self(m);
      s.begin(*b);
      s.loss = s.model->training_step(Batch(*b));
      out->loss = s.loss.defined() ? handle(s.loss) : nullptr;
      out->weight = s.model->explicit_weight_ ? s.model->weight_ : 0;
    });
  }
  static lh_status validation_step(lh_model* m, const lh_batch* b) noexcept {
    return guard("validation_step", [&] {
      self(m).begin(*b);
      self(m).model->validation_step(Batch(*b));
    });
  }
  static lh_status test_step(lh_model* m, const lh_batch* b) noexcept {
    return guard("test_step", [&] {
      self(m).begin(*b);
      self(m).model->test_step(Batch(*b));
    });
  }
  static lh_status predict_step(lh_model* m, const lh_batch* b, lh_tensor* const** outs,
                                uint64_t* n) noexcept {
    return guard("predict_step", [&] {
      ModelPlugin& s = self(m);
      s.begin(*b);
      if constexpr (LHOST_OVERRIDES(M, Model, predict_step)) s.prediction = s.model->predict_step(Batch(*b));
      else if constexpr (predicts_by_forward) s.prediction = s.model->forward(Batch(*b).first());
      s.prediction_handle = s.prediction.defined() ? handle(s.prediction) : nullptr;
      *outs = &s.prediction_handle;
      *n = s.prediction_handle ? 1 : 0;
    });
  }
  template <class X>
  static auto has_forward(int)
      -> decltype(torch::Tensor(std::declval<X&>().forward(torch::Tensor())), std::true_type());
  template <class>
  static std::false_type has_forward(...);
  static constexpr bool predicts_by_forward = decltype(has_forward<M>(0))::value;

  struct Hook {
    int32_t event;
    void (Model::*f)();
    bool wanted;
  };
  static const std::vector<Hook>& hooks() {
#define LHOST_HOOK(stage, what, f) \
  { LH_EVENT(stage, what), &Model::f, LHOST_OVERRIDES(M, Model, f) }
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
        LHOST_HOOK(LH_STAGE_TEST, LH_ON_START, on_test_start),
        LHOST_HOOK(LH_STAGE_TEST, LH_ON_END, on_test_end)};
#undef LHOST_HOOK
    return all;
  }
  static uint64_t events(lh_model*, const int32_t** ids) noexcept {
    static const std::vector<int32_t> wanted = [] {
      std::vector<int32_t> v;
      for (const Hook& h : hooks())
        if (h.wanted) v.push_back(h.event);
      return v;
    }();
    *ids = wanted.data();
    return wanted.size();
  }
  static lh_status on_event(lh_model* m, int32_t event) noexcept {
    return guard("hook", [&] {
      for (const Hook& h : hooks())
        if (h.event == event) return ((*self(m).model).*h.f)();
    });
  }

  static lh_model_v0 make_table() {
    lh_model_v0 t{};
    t.size = sizeof t;
    t.destroy = [](lh_model* m) noexcept { delete &self(m); };
    if (LHOST_OVERRIDES(M, Model, save_state))
      t.save_state = [](lh_model* m, const lh_state_out* s) noexcept {
        return guard("save_state", [&] { self(m).model->save_state(StateOut(s)); });
      };
    if (LHOST_OVERRIDES(M, Model, load_state))
      t.load_state = [](lh_model* m, const lh_state_in* s) noexcept {
        return guard("load_state", [&] { self(m).model->load_state(StateIn(s)); });
      };
    t.unit_count = [](lh_model* m) noexcept { return static_cast<uint32_t>(self(m).units.size()); };
    t.unit = unit;
    t.param_count = [](lh_model* m) noexcept { return static_cast<uint32_t>(self(m).entries.size()); };
    t.param = param;
    t.events = events;
    t.attach = attach;
    t.set_mode = set_mode;
    t.training_step = training_step;
    if (LHOST_OVERRIDES(M, Model, validation_step)) t.validation_step = validation_step;
    if (LHOST_OVERRIDES(M, Model, test_step) || t.validation_step) t.test_step = test_step;
    if (LHOST_OVERRIDES(M, Model, predict_step) || predicts_by_forward) t.predict_step = predict_step;
    t.on_event = on_event;
    return t;
  }
};

namespace detail {
template <class M, class Options>
struct Summary<ModelPlugin<M, Options>> : Summary<M> {};
}  // namespace detail

template <class M, class Options>
struct ModelKind {
  static constexpr const char* kind = LH_MODEL_KIND;
  using Base = ModelPlugin<M, Options>;
  static void bind() {
    detail::trainer_service.bind(LH_TRAINER_SERVICE);
    detail::metrics_service.bind(LH_METRICS_SERVICE);
  }
  template <class>
  static lh_model_v0 table() {
    return Base::make_table();
  }
};

}  // namespace lhost

#define LHOST_MODEL(Class, Options, name, version)                                                          \
  LH_PLUGIN_NOTE(name, version, "", LH_MODEL_KIND ":" name, TORCH_VERSION);                                 \
  extern "C" LH_EXPORT const lh_plugin* lh_plugin_v1(void) LH_NX {                                          \
    return ::lhost::detail::single_plugin<::lhost::ModelKind<Class, Options>,                               \
                                          ::lhost::ModelPlugin<Class, Options>, Options>(name, version, 0); \
  }
