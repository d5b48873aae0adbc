// meddler.cpp - does one thing at an event of a run: a signal, a log, a random number, a fault. For tests.
#include <lhost/sdk/callback.hpp>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "mock_engine/tensor.hpp"

namespace {

enum class Act { kNone, kLog, kStop, kSigint, kSigterm, kSighup, kDraw, kThrow, kEscape };

struct Options {
  std::string event = "fit.batch_end";
  Act act = Act::kNone;
  int64_t at = -1;
  std::string metric = "m";
  std::vector<std::string> values;
  std::vector<double> weights;
  int64_t flags = 0;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::event, "event", "when, such as fit.batch_end; the check before training does not count");
    d(&Options::act, "act", "what to do")
        .choices({"none", "log", "stop", "sigint", "sigterm", "sighup", "draw", "throw", "escape"});
    d(&Options::at, "at", "only when the event comes for this time, from 0; -1 = each time").min(-1);
    d(&Options::metric, "metric", "name to log");
    d(&Options::values, "values", "numbers to log, one each time; the last one stays");
    d(&Options::weights, "weights", "their weights; empty = 1");
    d(&Options::flags, "flags", "LH_ON_STEP = 1, LH_ON_EPOCH = 2").min(0).max(3);
  }
};

class Meddler : public lhost::Component {
 public:
  using Handle = lh_callback;
  explicit Meddler(const Options& o) : o_(o), run_(lhost::detail::creating_run), metrics_(run_) {
    static constexpr const char* kStages[] = {"fit", "validate", "test", "predict"};
    static constexpr const char* kEvents[] = {"start",       "end",         "epoch_start",
                                              "epoch_end",   "batch_start", "batch_end",
                                              "before_step", "exception",   "checkpoint"};
    for (int32_t stage = 0; stage < 4; ++stage)
      for (int32_t what = 0; what < 9; ++what)
        if (o.event == std::string(kStages[stage]) + "." + kEvents[what]) event_ = LH_EVENT(stage, what);
    if (event_ < 0) throw lhost::Error(LH_INVALID_ARGUMENT, "no event \"" + o.event + "\"");
    random_ = static_cast<const mock::RandomService*>(
        lhost::host->get_service(lhost::host, lhost::str(MOCK_RANDOM_SERVICE)));
  }
  const int32_t& event() const { return event_; }
  bool escapes() const { return o_.act == Act::kEscape; }
  void hear() {
    if (lhost::detail::trainer_service->step(run_)->flags & LH_STEP_SANITY) return;
    const int64_t count = heard_++;
    if (o_.at < 0 || o_.at == count) act(static_cast<size_t>(count));
  }
  void save_state(const lhost::StateOut& out) override { out.put("heard", heard_); }
  void load_state(const lhost::StateIn& in) override { in.get("heard", heard_); }

 private:
  void act(size_t count) {
    switch (o_.act) {
      case Act::kNone:
        break;
      case Act::kLog:
        log(count);
        break;
      case Act::kStop:
        lhost::Trainer(run_).stop("the meddler says so");
        break;
      case Act::kSigint:
        std::raise(SIGINT);
        break;
      case Act::kSigterm:
        std::raise(SIGTERM);
        break;
      case Act::kSighup:
        std::raise(SIGHUP);
        break;
      case Act::kDraw:
        random_->uniform(run_);
        break;
      case Act::kThrow:
        throw lhost::Error(LH_ABORTED, "told to fail");
      case Act::kEscape:
        throw std::runtime_error("told to escape");
    }
  }
  void log(size_t count) {
    if (!declared_) id_ = metrics_.declare(o_.metric, static_cast<uint32_t>(o_.flags));
    declared_ = true;
    const double weight = o_.weights.empty() ? 1 : o_.weights[std::min(count, o_.weights.size() - 1)];
    metrics_.log(id_, std::strtod(o_.values.at(std::min(count, o_.values.size() - 1)).c_str(), nullptr),
                 weight);
  }

  Options o_;
  lh_run* run_;
  lhost::Metrics metrics_;
  const mock::RandomService* random_ = nullptr;
  int32_t event_ = -1;
  int64_t heard_ = 0;
  uint32_t id_ = 0;
  bool declared_ = false;
};

struct MeddlerKind {
  static constexpr const char* kind = LH_CALLBACK_KIND;
  using Base = Meddler;
  static void bind() {
    lhost::detail::trainer_service.bind(LH_TRAINER_SERVICE);
    lhost::detail::metrics_service.bind(LH_METRICS_SERVICE);
  }
  template <class D>
  static lh_callback_v0 table() {
    auto t = lhost::detail::object_table<D, Meddler, lh_callback_v0>();
    t.events = [](lh_callback* c, const int32_t** ids) noexcept -> uint64_t {
      *ids = &lhost::detail::self<Meddler>(c).event();
      return 1;
    };
    // Deliberately no exception barrier for `escape`: the host must survive a plugin that has none.
    t.on_event = reinterpret_cast<decltype(t.on_event)>(&on_event);
    return t;
  }
  static lh_status on_event(lh_callback* c, int32_t) {
    Meddler& m = lhost::detail::self<Meddler>(c);
    try {
      m.hear();
      return nullptr;
    } catch (...) {
      if (m.escapes()) throw;
      return lhost::current_exception_status("on_event");
    }
  }
};

}  // namespace
LHOST_SINGLE_PLUGIN(MeddlerKind, LH_CALLBACK_KIND, Meddler, Options, "meddler", "1.0.0", "", 0)
