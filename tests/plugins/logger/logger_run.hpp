// tests/plugins/logger/logger_run.hpp - a run as a logger sees it: open, records, a checkpoint's state,
// resume, close; and a disk that is full after so many bytes.
#pragma once
#include <lhost/logger.h>
#include <lhost/step.h>
#include <sys/resource.h>

#include <csignal>
#include <map>
#include <utility>
#include <vector>

#include "support/component.hpp"
#include "support/temp_dir.hpp"

namespace lhost_test {

// What a checkpoint keeps of a logger.
class State {
 public:
  lh_state_out out() {
    return {sizeof(lh_state_out), 0, this,
            [](void* self, lh_str name, const lh_value* v) -> lh_status {
              Kept& k = static_cast<State*>(self)->values_[text(name)];
              k.value = *v;
              if (v->type == LH_T_STR) k.text = text(v->u.s);
              return nullptr;
            },
            nullptr};
  }
  lh_state_in in() {
    return {sizeof(lh_state_in), 0, this,
            [](void* self, lh_str name, lh_value* v) -> lh_status {
              auto& values = static_cast<State*>(self)->values_;
              const auto i = values.find(text(name));
              *v = i == values.end() ? lh_value{} : i->second.value;
              if (v->type == LH_T_STR) v->u.s = str(i->second.text);
              return nullptr;
            },
            nullptr};
  }

 private:
  struct Kept {
    lh_value value;
    std::string text;
  };
  std::map<std::string, Kept> values_;
};

using Scalars = std::vector<std::pair<std::string, double>>;

class LoggerRun {
 public:
  LoggerRun(const std::string& name, std::string dir, const Options& options = {})
      : dir_(std::move(dir)), logger_("logger", name, options) {}

  lh_status try_open(uint32_t flags = 0) {
    lh_run_info info{};
    info.size = sizeof info;
    info.flags = flags;
    info.name = LH_STR("test");
    info.dir = str(dir_);
    info.world_size = 1;
    return logger_->open(logger_.self, &info);
  }
  LoggerRun& open() { return call(try_open()), *this; }
  LoggerRun& resume(State* state) {
    if (state) {
      const lh_state_in in = state->in();
      call(logger_->load_state(logger_.self, &in));
    }
    return call(try_open(LH_RUN_RESUMED)), *this;
  }

  lh_status try_record(int64_t step, const Scalars& scalars, int32_t stage = LH_STAGE_FIT) {
    std::vector<lh_scalar> list;
    for (const auto& [name, value] : scalars) list.push_back({str(name), value});
    const lh_record r{sizeof(lh_record), stage,      step,
                      step / 10,         step * 32,  1700000000123456789 + step * 1000000000,
                      list.data(),       list.size()};
    return logger_->record(logger_.self, &r);
  }
  LoggerRun& record(int64_t step, const Scalars& scalars, int32_t stage = LH_STAGE_FIT) {
    return call(try_record(step, scalars, stage)), *this;
  }
  // n records, ten steps apart
  LoggerRun& steps(int64_t from, int64_t to, const std::string& metric = "loss") {
    for (int64_t s = from; s <= to; s += 10) record(s, {{metric, 1.0 / static_cast<double>(s)}});
    return *this;
  }
  lh_status try_flush() { return logger_->flush(logger_.self); }
  LoggerRun& flush() { return call(try_flush()), *this; }
  State save() {
    State s;
    const lh_state_out out = s.out();
    call(logger_->save_state(logger_.self, &out));
    return s;
  }
  void close() { call(logger_->close(logger_.self, LH_OK, LH_STR(""))); }
  Component<lh_logger, lh_logger_v1>& component() { return logger_; }

 private:
  std::string dir_;
  Component<lh_logger, lh_logger_v1> logger_;
};

// While it lives, no file of this process grows beyond so many bytes: writes fail as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace lhost_test
