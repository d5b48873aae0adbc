// recorder.cpp - writes every event as one line into a file, and fails or stops as told. For tests.
//   fit.batch_end step=1 epoch=0 batch=0 micro=1/1 samples=4 lr=0.1 loss=0.6931
// After the counters come all metrics in the order of their first log; "sanity" marks the check before
// training.
#include <lhost/sdk/callback.hpp>

#include <cstdio>
#include <memory>

namespace {

constexpr const char* kStages[] = {"fit", "validate", "test", "predict"};
constexpr const char* kEvents[] = {"start",     "end",         "epoch_start", "epoch_end", "batch_start",
                                   "batch_end", "before_step", "exception",   "checkpoint"};

std::string event_name(int32_t event) { return std::string(kStages[event / 16]) + "." + kEvents[event % 16]; }

struct Options {
  lhost::Path path;
  std::string fail;
  int64_t stop_at_epoch = -1, stop_at_step = -1;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::path, "path", "file that is written").required();
    d(&Options::fail, "fail", "event at which to fail, such as fit.batch_end; empty = never");
    d(&Options::stop_at_epoch, "stop_at_epoch", "ask to stop at the end of this epoch; -1 = never").min(-1);
    d(&Options::stop_at_step, "stop_at_step", "ask to stop at the end of the batch of this step; -1 = never")
        .min(-1);
  }
};

class Recorder : public lhost::Component {
 public:
  using Handle = lh_callback;
  explicit Recorder(const Options& o) : o_(o), run_(lhost::detail::creating_run) {}

  void hear(int32_t event) {
    const lh_step& s = *lhost::detail::trainer_service->step(run_);
    write(event, s);
    lhost::Trainer trainer(run_);
    if (event == LH_EVENT(LH_STAGE_FIT, LH_ON_EPOCH_END) && s.epoch == o_.stop_at_epoch)
      trainer.stop("told to stop");
    if (event == LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_END) && s.global_step == o_.stop_at_step)
      trainer.stop("told to stop");
    if (event_name(event) == o_.fail) throw lhost::Error(LH_ABORTED, "told to fail at " + o_.fail);
  }

 private:
  void write(int32_t event, const lh_step& s) {
    if (!file_) file_.reset(std::fopen(o_.path.text.c_str(), "a"));
    if (!file_) throw lhost::Error(LH_PERMISSION, "cannot write " + o_.path.text);
    std::FILE* f = file_.get();
    std::fprintf(f, "%s step=%lld epoch=%lld batch=%lld micro=%d/%d samples=%lld lr=%.9g",
                 event_name(event).c_str(), static_cast<long long>(s.global_step),
                 static_cast<long long>(s.epoch), static_cast<long long>(s.batch), s.micro, s.micro_count,
                 static_cast<long long>(s.samples), s.lr);
    if (s.flags & LH_STEP_SANITY) std::fputs(" sanity", f);
    const auto& t = lhost::detail::trainer_service;
    if (event % 16 == LH_ON_EXCEPTION) put("failure", t->failure(run_));
    if (event % 16 == LH_ON_CHECKPOINT) put("checkpoint", t->checkpoint(run_));
    const lh_metric_value* metrics = nullptr;
    const uint64_t n = t->metrics(run_, &metrics);
    for (uint64_t i = 0; i < n; ++i) {
      const auto name = lhost::view(metrics[i].name);
      std::fprintf(f, " %.*s=%.9g", static_cast<int>(name.size()), name.data(), metrics[i].value);
    }
    lh_tensor* const* predictions = nullptr;
    if (event == LH_EVENT(LH_STAGE_PREDICT, LH_ON_BATCH_END))
      std::fprintf(f, " predictions=%llu",
                   static_cast<unsigned long long>(t->predictions(run_, &predictions)));
    std::fputc('\n', f);
    std::fflush(f);
  }
  void put(const char* what, lh_str text) {
    std::fprintf(file_.get(), " %s=\"%.*s\"", what, static_cast<int>(text.len), text.ptr);
  }
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  Options o_;
  lh_run* run_;
  std::unique_ptr<std::FILE, Close> file_;
};

// The C table by hand: lhost::Callback names only the hooks that are usual, this one hears them all.
struct RecorderKind {
  static constexpr const char* kind = LH_CALLBACK_KIND;
  using Base = Recorder;
  static void bind() { lhost::detail::trainer_service.bind(LH_TRAINER_SERVICE); }
  template <class D>
  static lh_callback_v0 table() {
    auto t = lhost::detail::object_table<D, Recorder, lh_callback_v0>();
    t.events = [](lh_callback*, const int32_t** ids) noexcept -> uint64_t {
      static const std::vector<int32_t> all = [] {
        std::vector<int32_t> v;
        for (int32_t stage = LH_STAGE_FIT; stage <= LH_STAGE_PREDICT; ++stage)
          for (int32_t what = LH_ON_START; what <= LH_ON_CHECKPOINT; ++what)
            v.push_back(LH_EVENT(stage, what));
        return v;
      }();
      *ids = all.data();
      return all.size();
    };
    t.on_event = [](lh_callback* c, int32_t event) noexcept {
      return lhost::guard("on_event", [&] { lhost::detail::self<Recorder>(c).hear(event); });
    };
    return t;
  }
};

}  // namespace
LHOST_SINGLE_PLUGIN(RecorderKind, LH_CALLBACK_KIND, Recorder, Options, "recorder", "1.0.0", "", 0)
