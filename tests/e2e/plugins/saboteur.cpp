// saboteur.cpp - a callback that lets one rank end badly at one moment: for tests of what the others and the supervisor do.
#include <lhost/ranks.h>
#include <lhost/tensor.h>
#include <lhost/sdk/callback.hpp>

#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

enum class Phase { create, start, batch, before_step, validation, checkpoint, teardown };
enum class Act { throws, kill9, segv, exit0, exit7, hang, busy, stop, oom, sleeps, asks, broadcasts };

struct Options {
  int64_t rank = 0, at = 0;
  Phase phase = Phase::batch;
  Act act = Act::throws;
  lhost::Duration lasts{5000000000};
  std::string unless;  // a file: its presence means that the rank has already failed once
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::rank, "rank", "which rank").min(0);
    d(&Options::at, "at", "how often the moment passes before").min(0);
    d(&Options::phase, "phase", "the moment")
        .choices({"create", "start", "batch", "before_step", "validation", "checkpoint", "teardown"});
    d(&Options::act, "act", "what happens")
        .choices({"throw", "kill9", "segv", "exit0", "exit7", "hang", "busy", "stop", "oom", "sleep", "ask",
                  "broadcast"});
    d(&Options::lasts, "lasts", "of act sleep");
    d(&Options::unless, "unless", "once only: a file that says that it has happened");
  }
};

class Saboteur : public lhost::Callback {
 public:
  explicit Saboteur(const Options& o) : o_(o) { moment(Phase::create); }
  void on_fit_start() override { moment(Phase::start); }
  void on_train_batch_start() override { moment(Phase::batch); }
  void on_before_optimizer_step() override { moment(Phase::before_step); }
  void on_validation_batch_start() override { moment(Phase::validation); }
  void on_save_checkpoint() override { moment(Phase::checkpoint); }
  void on_fit_end() override { moment(Phase::teardown); }

 private:
  void moment(Phase now) {
    if (now != o_.phase || trainer().rank() != o_.rank || seen_++ != o_.at) return;
    if (!o_.unless.empty()) {
      if (access(o_.unless.c_str(), F_OK) == 0) return;
      std::fclose(std::fopen(o_.unless.c_str(), "w"));
    }
    act();
  }
  void act() {
    switch (o_.act) {
      case Act::throws:
        throw lhost::Error(LH_INTERNAL, "boom");
      case Act::kill9:
        std::raise(SIGKILL);
        break;
      case Act::segv:
        std::signal(SIGSEGV, SIG_DFL);
        std::raise(SIGSEGV);
        break;
      case Act::exit0:
        _exit(0);
      case Act::exit7:
        _exit(7);
      case Act::hang:
        for (;;) pause();
      case Act::busy:
        for (std::atomic<int> i{0};;) ++i;
      case Act::stop:
        std::raise(SIGSTOP);
        break;
      case Act::oom:
        throw std::bad_alloc();
      case Act::sleeps:
        std::this_thread::sleep_for(std::chrono::nanoseconds(o_.lasts.ns));
        break;
      case Act::asks:
        trainer().stop("asked to");
        break;
      case Act::broadcasts:
        broadcast();
    }
  }
  void broadcast() {  // which nobody else does
    lhost::Service<lh_ranks_v0> ranks;
    lhost::Service<lh_tensor_v0> tensors;
    ranks.bind(LH_RANKS_SERVICE);
    tensors.bind(LH_TENSOR_SERVICE);
    const int64_t n = 3;
    lh_tensor* t = nullptr;
    lhost::check(tensors->empty(run(), {LH_DEVICE_CPU, 0}, {LH_DT_FLOAT, 32, 1}, &n, 1, 0, &t));
    lh_status s = ranks->broadcast(run(), t, 0);
    tensors->release(t);
    lhost::check(s);
  }
  Options o_;
  int64_t seen_ = 0;
};

}  // namespace
LHOST_CALLBACK(Saboteur, Options, "saboteur", "1.0.0")
