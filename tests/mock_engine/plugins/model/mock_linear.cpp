// mock_linear.cpp - y = W x + b on mock tensors, with gradients written by hand and switches for what a test
// wants to go wrong. W starts at init * (1, 2, 3, ...) in row-major order, b at 0. With units = true:
// y = W (s * x) + b, in the units "scale" (s, starts at 1) and "linear".
//   cross_entropy: mean over rows of -log softmax(y)[label]
//   mse: mean over rows and outputs of (y - label)^2
#include "tensor.hpp"

#include <lhost/model.h>
#include <lhost/sdk/trainer.hpp>

#include <chrono>
#include <cmath>
#include <thread>

namespace {

using mock::Tensor;
using mock::Type;

enum class Loss { cross_entropy, mse };

struct Options {
  int64_t inputs = 2, classes = 2;
  Loss loss = Loss::cross_entropy;
  double init = 0.1, weight = 0, noise = 0, by_rank = 0;
  bool units = false, tied = false, unused = false, count = false, trace = false;
  int64_t throw_at = -1, nan_at = -1, skip_at = -1, sleep_ms = 0, stop_at = -1, only_rank = -1;
  bool bad_shape_loss = false, log_on_epoch = false;
  std::vector<std::string> log;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::inputs, "inputs", "elements of one sample").min(1);
    d(&Options::classes, "classes", "outputs").min(1);
    d(&Options::loss, "loss", "what is minimised").choices({"cross_entropy", "mse"});
    d(&Options::init, "init", "first weight at the start; the others are its multiples");
    d(&Options::weight, "weight", "explicit weight of every micro-batch; 0 = its rows").min(0.0);
    d(&Options::noise, "noise", "inputs are scaled by 1 + noise * u, u drawn from the engine's generator")
        .min(0.0);
    d(&Options::units, "units", "with the units scale and linear");
    d(&Options::tied, "tied", "with tied.weight, a second name of linear.weight");
    d(&Options::unused, "unused", "with unused.weight, a parameter that never has a gradient");
    d(&Options::count, "count", "with count, a buffer that counts training steps");
    d(&Options::trace, "trace", "log every event, mode and the indices of every batch");
    d(&Options::throw_at, "throw_at", "training step (from 0) that throws; -1 = none").min(-1);
    d(&Options::nan_at, "nan_at", "training step whose loss is not a number; -1 = none").min(-1);
    d(&Options::skip_at, "skip_at", "training step that returns no loss; -1 = none").min(-1);
    d(&Options::sleep_ms, "sleep_ms", "milliseconds that each training step takes").min(0);
    d(&Options::stop_at, "stop_at", "training step that asks to stop; -1 = none").min(-1);
    d(&Options::only_rank, "only_rank",
      "throw_at, skip_at, stop_at, sleep_ms, unused and log are for this rank; -1 = all")
        .min(-1);
    d(&Options::by_rank, "by_rank",
      "on rank r init, weight and the steps that count grows by are 1 + r * by_rank times as large; "
      "evaluations log "
      "count as val_count");
    d(&Options::bad_shape_loss, "bad_shape_loss", "return a loss of two elements");
    d(&Options::log_on_epoch, "log_on_epoch", "what `log` names is of the epoch, not of the step");
    d(&Options::log, "log", "names under which training steps log the loss as well");
  }
};

struct Entry {
  std::string name;
  Tensor tensor;
  uint32_t unit, flags, alias_of;
};

class MockLinear : public lhost::Component {
 public:
  using Handle = lh_model;

  explicit MockLinear(const Options& o)
      : o_(o), run_(lhost::detail::creating_run), metrics_(run_), trainer_(run_) {
    random_ = static_cast<const mock::RandomService*>(
        lhost::host->get_service(lhost::host, lhost::str(MOCK_RANDOM_SERVICE)));
    if (o.noise > 0 && !random_) throw lhost::Error(LH_UNIMPLEMENTED, "noise needs the mock engine");
    if (o.by_rank != 0) factor_ = 1 + static_cast<double>(trainer_.rank()) * o.by_rank;
    // as in a state_dict: a module's own buffers before its children
    const uint32_t scale_unit = o.units ? 1 : LH_ROOT_UNIT, linear_unit = o.units ? 2 : LH_ROOT_UNIT;
    if (o.count) add("count", Tensor(Type::i64, {}), LH_ROOT_UNIT, LH_P_BUFFER, count_);
    if (o.units) {
      const Tensor ones(Type::f32, {o.inputs});
      ones.fill(1);
      add("scale.weight", ones, scale_unit, LH_P_TRAINABLE, scale_);
    }
    const Tensor w(Type::f32, {o.classes, o.inputs});
    for (int64_t i = 0; i < w.numel(); ++i) w.set(i, factor_ * o.init * static_cast<double>(i + 1));
    const auto weight_index = static_cast<uint32_t>(entries_.size());
    add("linear.weight", w, linear_unit, LH_P_TRAINABLE, weight_);
    add("linear.bias", Tensor(Type::f32, {o.classes}), linear_unit, LH_P_TRAINABLE, bias_);
    Tensor unused;
    if (o.unused && here()) {
      const Tensor ones(Type::f32, {2});
      ones.fill(1);
      add("unused.weight", ones, LH_ROOT_UNIT, LH_P_TRAINABLE, unused);
    }
    if (o.tied) entries_.push_back({"tied.weight", weight_, LH_ROOT_UNIT, LH_P_ALIAS, weight_index});
  }

  // --- what it is made of
  uint32_t unit_count() const { return o_.units ? 3 : 1; }
  void unit(uint32_t u, lh_unit_info& out) {
    static constexpr const char* kNames[] = {"", "scale", "linear"};
    if (u >= unit_count()) throw lhost::Error(LH_OUT_OF_RANGE, "there is no unit " + std::to_string(u));
    out = {
        out.size, u, LH_ROOT_UNIT, 0, lhost::str(kNames[u]), unit_params_[u].data(), unit_params_[u].size()};
  }
  uint32_t param_count() const { return static_cast<uint32_t>(entries_.size()); }
  void param(uint32_t p, lh_param_info& out, lh_tensor*& borrowed) {
    const Entry& e = entries_.at(p);
    out = {out.size,
           p,
           e.unit,
           e.flags,
           lhost::str(e.name),
           mock::to_dlpack(e.tensor.type()),
           static_cast<int32_t>(e.tensor.shape().size()),
           e.tensor.shape().data(),
           e.tensor.numel(),
           e.alias_of,
           0};
    borrowed = mock::handle(e.tensor);
  }
  void attach(const lh_unit_calls* calls) { calls_ = calls && calls->enter ? calls : nullptr; }
  const std::vector<int32_t>& events() {
    if (o_.trace && events_.empty())
      for (int32_t stage = LH_STAGE_FIT; stage <= LH_STAGE_PREDICT; ++stage)
        for (int32_t what = LH_ON_START; what <= LH_ON_CHECKPOINT; ++what)
          events_.push_back(LH_EVENT(stage, what));
    return events_;
  }

  // --- steps
  void set_mode(int32_t mode) {
    mode_ = mode;
    trace(mode == LH_MODE_EVAL ? "mode eval" : "mode train");
  }
  void training_step(const lh_batch& b, lh_step_out& out) {
    expect_mode(LH_MODE_TRAIN, "training_step");
    trace("training_step" + indices(b));
    const int64_t step = calls_made_++;
    const bool here = this->here();
    if (here && o_.sleep_ms) std::this_thread::sleep_for(std::chrono::milliseconds(o_.sleep_ms));
    if (here && step == o_.stop_at) trainer_.stop("told to stop");
    if (here && step == o_.throw_at)
      throw std::runtime_error("told to throw in training step " + std::to_string(step));
    if (o_.count) count_.set(0, count_.get(0) + factor_);
    const Pass pass = forward(b);
    const double factor = step == o_.nan_at ? std::nan("") : 1.0;
    std::vector<double> dy;  // d loss / d y
    const double value = factor * loss(pass.y, field(b, "label", b.n - 1), dy);
    loss_ = Tensor(Type::f32, o_.bad_shape_loss ? std::vector<int64_t>{2} : std::vector<int64_t>{});
    loss_.fill(value);
    loss_.backward() = [this, pass, dy, factor](double seed) { backward(pass, dy, factor * seed); };
    for (const std::string& name : o_.log)
      if (here)
        metrics_.log(id(name, o_.log_on_epoch ? LH_ON_EPOCH : 0), value, static_cast<double>(b.counted));
    out.loss = here && step == o_.skip_at ? nullptr : mock::handle(loss_);
    out.weight = factor_ * o_.weight;
  }
  void evaluation_step(const lh_batch& b, const char* what) {
    expect_mode(LH_MODE_EVAL, what);
    trace(what + indices(b));
    const Pass pass = forward(b);
    const Tensor label = field(b, "label", b.n - 1);
    std::vector<double> unused;
    const Tensor value(Type::f32, {});
    value.set(0, loss(pass.y, label, unused));
    const auto weight = static_cast<double>(b.counted);
    lhost::check(lhost::detail::metrics_service->log(run_, id("val_loss"), mock::handle(value), weight));
    metrics_.log(id("val_acc"), accuracy(pass.y, label), weight);
    if (o_.count && o_.by_rank != 0) metrics_.log(id("val_count"), count_.get(0), weight);
  }
  lh_tensor* const* predict_step(const lh_batch& b) {
    expect_mode(LH_MODE_EVAL, "predict_step");
    trace("predict_step" + indices(b));
    prediction_ = forward(b).y;
    prediction_handle_ = mock::handle(prediction_);
    return &prediction_handle_;
  }
  void on_event(int32_t event) {
    static constexpr const char* kStages[] = {"fit", "validate", "test", "predict"};
    static constexpr const char* kEvents[] = {"start",       "end",         "epoch_start",
                                              "epoch_end",   "batch_start", "batch_end",
                                              "before_step", "exception",   "checkpoint"};
    trace(std::string("event ") + kStages[event / 16] + "." + kEvents[event % 16]);
  }
  void save_state(const lhost::StateOut& s) override { s.put("training_steps", calls_made_); }
  void load_state(const lhost::StateIn& s) override { s.get("training_steps", calls_made_); }

 private:
  struct Pass {
    Tensor x, h, y;  // h = s * x, or x; y [rows, classes]
  };

  void add(const char* name, const Tensor& t, uint32_t unit, uint32_t flags, Tensor& member) {
    member = t;
    if (flags != LH_P_BUFFER) unit_params_[unit].push_back(param_count());
    entries_.push_back({name, t, unit, flags, param_count()});
  }
  bool here() const { return o_.only_rank < 0 || o_.only_rank == trainer_.rank(); }
  void trace(const std::string& line) const {
    if (o_.trace) lhost::log(LH_LOG_INFO, line);
  }
  void expect_mode(int32_t mode, const char* what) const {
    if (mode_ != mode)
      throw std::logic_error(std::string(what) + " in the mode of " +
                             (mode_ == LH_MODE_EVAL ? "evaluation" : "training"));
  }
  static const Tensor* find(const lh_batch& b, std::string_view name) {
    for (uint32_t i = 0; i < b.n; ++i)
      if (lhost::view(b.names[i]) == name) return &mock::tensor(b.tensors[i]);
    return nullptr;
  }
  static Tensor field(const lh_batch& b, std::string_view name, uint32_t otherwise) {
    const Tensor* t = find(b, name);
    return t ? *t : mock::tensor(b.tensors[otherwise]);
  }
  std::string indices(const lh_batch& b) const {
    std::string s;
    const Tensor* t = o_.trace ? find(b, "index") : nullptr;
    for (int64_t i = 0; t && i < b.rows; ++i) s += ' ' + std::to_string(static_cast<int64_t>(t->get(i)));
    return s;
  }
  uint32_t id(const std::string& name, uint32_t flags = 0) {
    for (const auto& [known, number] : ids_)
      if (known == name) return number;
    return ids_.emplace_back(name, metrics_.declare(name, flags)).second;
  }

  void enter(uint32_t unit, Tensor& t) {
    lh_tensor* io = mock::handle(t);
    if (o_.units && calls_) lhost::check(calls_->enter(calls_->ctx, unit, &io, 1));
  }
  void leave(uint32_t unit, Tensor& t) {
    lh_tensor* io = mock::handle(t);
    if (o_.units && calls_) lhost::check(calls_->exit(calls_->ctx, unit, &io, 1));
  }
  Pass forward(const lh_batch& b) {
    Pass p;
    p.x = field(b, "image", 0);
    if (p.x.numel() != b.rows * o_.inputs)
      throw std::invalid_argument("a sample has " + std::to_string(p.x.numel() / b.rows) +
                                  " elements, expected inputs = " + std::to_string(o_.inputs));
    if (o_.noise > 0 && mode_ == LH_MODE_TRAIN) {
      p.x = p.x.cast(p.x.type());
      const double factor = 1 + o_.noise * random_->uniform(run_);
      for (int64_t i = 0; i < p.x.numel(); ++i) p.x.set(i, factor * p.x.get(i));
    }
    p.h = p.x;
    if (o_.units) {
      enter(1, p.x);
      p.h = Tensor(p.x.type(), {b.rows, o_.inputs});
      for (int64_t i = 0; i < p.h.numel(); ++i) p.h.set(i, scale_.get(i % o_.inputs) * p.x.get(i));
      p.h.set_requires_grad(true);
      leave(1, p.h);
    }
    enter(2, p.h);
    p.y = Tensor(weight_.type(), {b.rows, o_.classes});
    for (int64_t r = 0; r < b.rows; ++r)
      for (int64_t c = 0; c < o_.classes; ++c) {
        double y = bias_.get(c);
        for (int64_t j = 0; j < o_.inputs; ++j)
          y += weight_.get(c * o_.inputs + j) * p.h.get(r * o_.inputs + j);
        p.y.set(r * o_.classes + c, y);
      }
    p.y.set_requires_grad(true);
    leave(2, p.y);
    return p;
  }
  double loss(const Tensor& y, const Tensor& label, std::vector<double>& dy) const {
    const int64_t rows = y.shape()[0], n = o_.classes;
    dy.assign(static_cast<size_t>(rows * n), 0);
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      double* d = &dy[static_cast<size_t>(r * n)];
      sum += o_.loss == Loss::mse ? squares(y, r, label.get(r), d) : entropy(y, r, label.get(r), d);
      for (int64_t c = 0; c < n; ++c) d[c] /= static_cast<double>(rows);
    }
    return sum / static_cast<double>(rows);
  }
  double squares(const Tensor& y, int64_t r, double target, double* d) const {
    double sum = 0;
    const auto n = static_cast<double>(o_.classes);
    for (int64_t c = 0; c < o_.classes; ++c) {
      const double e = y.get(r * o_.classes + c) - target;
      sum += e * e / n;
      d[c] = 2 * e / n;
    }
    return sum;
  }
  double entropy(const Tensor& y, int64_t r, double target, double* d) const {
    const auto label = static_cast<int64_t>(target);
    if (label < 0 || label >= o_.classes)
      throw std::out_of_range("label " + std::to_string(label) + " is outside 0.." +
                              std::to_string(o_.classes - 1));
    double greatest = y.get(r * o_.classes), total = 0;
    for (int64_t c = 1; c < o_.classes; ++c) greatest = std::fmax(greatest, y.get(r * o_.classes + c));
    for (int64_t c = 0; c < o_.classes; ++c) total += d[c] = std::exp(y.get(r * o_.classes + c) - greatest);
    for (int64_t c = 0; c < o_.classes; ++c) d[c] = d[c] / total - (c == label ? 1 : 0);
    return std::log(total) + greatest - y.get(r * o_.classes + label);
  }
  double accuracy(const Tensor& y, const Tensor& label) const {
    const int64_t rows = y.shape()[0];
    int64_t right = 0;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t best = 0;
      for (int64_t c = 1; c < o_.classes; ++c)
        if (y.get(r * o_.classes + c) > y.get(r * o_.classes + best)) best = c;
      right += best == static_cast<int64_t>(label.get(r));
    }
    return static_cast<double>(right) / static_cast<double>(rows);
  }

  // Results first, then the parameters of a unit, then its inputs.
  void backward(const Pass& p, const std::vector<double>& dy, double seed) {
    const int64_t rows = p.y.shape()[0], n = o_.classes, d = o_.inputs;
    const auto g = [&](int64_t r, int64_t c) { return seed * dy[static_cast<size_t>(r * n + c)]; };
    const auto over_rows = [rows](auto f) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += f(r);
      return sum;
    };
    p.y.reached();
    bias_.accumulate([&](int64_t c) { return over_rows([&](int64_t r) { return g(r, c); }); });
    weight_.accumulate([&](int64_t i) {
      return over_rows([&](int64_t r) { return g(r, i / d) * p.h.get(r * d + i % d); });
    });
    p.h.reached();
    if (!o_.units) return;
    scale_.accumulate([&](int64_t j) {
      return over_rows([&](int64_t r) {
        double dh = 0;
        for (int64_t c = 0; c < n; ++c) dh += g(r, c) * weight_.get(c * d + j);
        return dh * p.x.get(r * d + j);
      });
    });
    p.x.reached();
  }

  Options o_;
  double factor_ = 1;  // of by_rank
  lh_run* run_;
  lhost::Metrics metrics_;
  lhost::Trainer trainer_;
  const mock::RandomService* random_ = nullptr;
  const lh_unit_calls* calls_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<uint32_t> unit_params_[3];
  std::vector<int32_t> events_;
  std::vector<std::pair<std::string, uint32_t>> ids_;
  Tensor count_, scale_, weight_, bias_;
  Tensor loss_, prediction_;  // lent to the host until the next step
  lh_tensor* prediction_handle_ = nullptr;
  int32_t mode_ = LH_MODE_TRAIN;
  int64_t calls_made_ = 0;
};

// The C table; sdk/model.hpp is for models on LibTorch.
struct MockLinearKind {
  static constexpr const char* kind = LH_MODEL_KIND;
  using Base = MockLinear;
  static void bind() {
    lhost::detail::metrics_service.bind(LH_METRICS_SERVICE);
    // tests without a host have no trainer; only_rank and stop_at need it
    if (lhost::host->get_service(lhost::host, lhost::str(LH_TRAINER_SERVICE)))
      lhost::detail::trainer_service.bind(LH_TRAINER_SERVICE);
  }
  static MockLinear& self(lh_model* m) { return lhost::detail::self<MockLinear>(m); }
  template <class D>
  static lh_model_v0 table() {
    auto t = lhost::detail::object_table<D, MockLinear, lh_model_v0>();
    t.unit_count = [](lh_model* m) noexcept { return self(m).unit_count(); };
    t.unit = [](lh_model* m, uint32_t u, lh_unit_info* out) noexcept {
      return lhost::guard("unit", [&] { self(m).unit(u, *out); });
    };
    t.param_count = [](lh_model* m) noexcept { return self(m).param_count(); };
    t.param = [](lh_model* m, uint32_t p, lh_param_info* out, lh_tensor** borrowed) noexcept {
      return lhost::guard("param", [&] { self(m).param(p, *out, *borrowed); });
    };
    t.events = [](lh_model* m, const int32_t** ids) noexcept -> uint64_t {
      *ids = self(m).events().data();
      return self(m).events().size();
    };
    t.attach = [](lh_model* m, const lh_unit_calls* calls) noexcept -> lh_status {
      self(m).attach(calls);
      return nullptr;
    };
    t.set_mode = [](lh_model* m, int32_t mode) noexcept {
      return lhost::guard("set_mode", [&] { self(m).set_mode(mode); });
    };
    t.training_step = [](lh_model* m, const lh_batch* b, lh_step_out* out) noexcept {
      return lhost::guard("training_step", [&] { self(m).training_step(*b, *out); });
    };
    t.validation_step = [](lh_model* m, const lh_batch* b) noexcept {
      return lhost::guard("validation_step", [&] { self(m).evaluation_step(*b, "validation_step"); });
    };
    t.test_step = [](lh_model* m, const lh_batch* b) noexcept {
      return lhost::guard("test_step", [&] { self(m).evaluation_step(*b, "test_step"); });
    };
    t.predict_step = [](lh_model* m, const lh_batch* b, lh_tensor* const** outs, uint64_t* n) noexcept {
      return lhost::guard("predict_step", [&] {
        *outs = self(m).predict_step(*b);
        *n = 1;
      });
    };
    t.on_event = [](lh_model* m, int32_t event) noexcept {
      return lhost::guard("on_event", [&] { self(m).on_event(event); });
    };
    return t;
  }
};

}  // namespace
LHOST_SINGLE_PLUGIN(MockLinearKind, LH_MODEL_KIND, MockLinear, Options, "mock_linear", "1.0.0", "", 0)
