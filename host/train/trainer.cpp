// host/train/trainer.cpp - a run from its first line to result.json, whatever happens in between.
#include "train/trainer.hpp"

#include "base/failure.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

namespace lhost {

const char* stage_name(int32_t stage) {
  static const char* names[] = {"fit", "validate", "test", "predict"};
  return names[stage];
}
namespace {
bool is_number(const std::optional<double>& v) { return v && !std::isnan(*v); }
}  // namespace

const char* split_name(int32_t split) {
  static const char* names[] = {"train", "val", "test", "predict"};
  return names[split];
}

Trainer::Trainer(const Engine& engine, RunHandle& handle, Ranks& ranks, Components& components,
                 const Settings& settings, const Watch& watch, std::string run_folder,
                 const std::string& resume_file, bool continues)
    : engine_(engine),
      handle_(handle),
      state_(handle.state()),
      ranks_(ranks),
      c_(components),
      set_(settings),
      watch_(watch),
      run_folder_(std::move(run_folder)),
      resume_file_(resume_file),
      log_writer_(components.loggers, settings.logger_stops),
      owns_folder_(!continues) {
  state_.info.run_dir = str(run_folder_);
  state_.info.model = str(c_.model.identity().name);
  result_.run_folder = run_folder_;
}

Trainer::~Trainer() { engine_.tensor.release(votes_tensor_); }

void Trainer::profile(int32_t span, bool begin) {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  const int64_t ns = t.tv_sec * 1000000000LL + t.tv_nsec;
  if (begin) c_.profiler->begin(c_.profiler.self(), span, ns);
  else c_.profiler->end(c_.profiler.self(), span, ns);
}

RunResult Trainer::run() {
  const SignalGuard signals;
  try {
    set_up();
    run_stages();
    log_writer_.settle();
  } catch (const Interrupted&) {
    interrupt();
  } catch (...) {
    note_failure(std::current_exception());
  }
  finish();
  return result_;
}

void Trainer::run_stages() {
  bool fitted = false;
  for (int32_t stage : set_.stages) {
    if (stage == kFit) {
      run_stage(stage);
      fitted = true;
    } else {
      const std::string saved = fitted ? load_saved_weights() : "";
      run_stage(stage);
      std::string line = std::string(stage_name(stage)) + "  ";
      if (stage != kPredict)
        for (const auto& [name, value] : stage == kTest ? result_.test : result_.last)
          line += name + " " + significant(value) + "  ";
      else if (!heard(LH_EVENT(LH_STAGE_PREDICT, LH_ON_BATCH_END)))
        log(Level::warning, "the predictions went nowhere: no callback has on_predict_batch_end");
      const char* weights = !saved.empty()         ? saved.c_str()
                            : fitted               ? "last weights"
                            : resume_file_.empty() ? "initial weights"
                                                   : "checkpoint";
      Terminal::get().print(line + "(" + grouped(result_.stages[stage_name(stage)].samples) + " samples, " +
                            weights + ")");
    }
  }
}

void Trainer::run_stage(int32_t stage) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t samples = state_.step.samples, steps = state_.step.global_step, epochs = state_.step.epoch;
  StageResult& r = result_.stages[stage_name(stage)];
  const auto measure = [&] {
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (stage != kFit) return;
    r.epochs = state_.step.epoch;
    r.global_step = state_.step.global_step;
    r.samples = state_.step.samples - samples;
  };
  try {
    if (stage == kFit) {
      fit();
    } else {
      const int32_t split = stage;  // stage and split have the same numbers
      const int64_t batches = stage_batches(split);
      evaluate(stage, batches, false);
      r.samples = std::min(static_cast<int64_t>(splits_[split].samples.size()),
                           batches * set_.batch_size * topology_.data_count);
      if (stage == kValidate)
        for (const KnownMetric& k : state_.metrics.known()) result_.last[k.name] = k.value;
    }
  } catch (...) {
    measure();
    throw;
  }
  measure();
  if (stage != kFit) return;
  Terminal& t = Terminal::get();
  const double rate = r.seconds > 0 ? static_cast<double>(r.samples) / r.seconds : 0;
  t.print("fit   done in " + human_seconds(r.seconds) + ": " + std::to_string(r.epochs - epochs) +
          " epochs, " + grouped(r.global_step - steps) + " steps, " + human_rate(rate) + " samples/s" +
          (state_.stop ? "; stopped: " + state_.stop_reason : ""));
  result_.stop_reason = state_.stop ? state_.stop_reason : "";
  for (const auto& k : keepers_) {
    const auto best = k->best();
    if (!best) continue;
    const std::string path = shown(run_folder_ + "/" + best->file);
    t.print(is_number(best->value)
                ? "best  " + k->policy().monitor + " " + significant(*best->value) + "  " + path
                : "saved " + path);
  }
}

// ---- ends

std::string Trainer::shown(const std::string& path) {
  std::error_code ec;
  const std::string here = std::filesystem::current_path(ec).string() + "/";
  return !ec && path.rfind(here, 0) == 0 ? path.substr(here.size()) : path;
}

std::string Trainer::place() const {
  if (!failed_place_.empty()) return failed_place_;
  const std::string who = ranks_.alone() ? "" : "rank " + std::to_string(ranks_.rank()) + ", ";
  std::string s = who + "epoch " + std::to_string(state_.step.epoch) + ", batch " +
                  std::to_string(state_.step.batch) + ", step " + std::to_string(state_.step.global_step);
  if (stage_ != kFit)
    s = who + std::string(stage_name(stage_)) + ", batch " + std::to_string(state_.step.batch);
  return s;
}

void Trainer::interrupt() {
  struct Ending {
    Exit code;
    const char *verb, *signal;
  };
  const int sig = signal_seen();
  const Ending end = sig == SIGTERM  ? Ending{Exit::terminated, "terminated", "SIGTERM"}
                     : sig == SIGHUP ? Ending{Exit::hung_up, "hung up", "SIGHUP"}
                                     : Ending{Exit::interrupted, "interrupted", "SIGINT"};
  result_.outcome = "interrupted";
  result_.code = end.code;
  result_.error = std::string(end.verb) + " by " + end.signal;
  result_.error_code = code_name(LH_CANCELLED);
  result_.where = place();
  std::string saved;
  try {
    save_point([&](CheckpointKeeper& k) {
      if (!saved.empty() || !fitting_ || !k.policy().on_signal || state_.step.global_step == 0) return;
      k.now(moment(), "last");
      saved = shown(run_folder_ + "/" + k.last());
    });
  } catch (...) {
    note_failure(std::current_exception());  // the signal's exit code is kept below
    result_.outcome = "interrupted";
    result_.code = end.code;
  }
  if (!ranks_.first()) return;
  Terminal::get().error(end.verb + std::string(" at ") + result_.where +
                        (saved.empty() ? "" : "; saved " + saved + ", go on with --resume last"));
}

void Trainer::note_failure(const std::exception_ptr& e) {
  result_.outcome = "failed";
  result_.code = Exit::failed;
  result_.where = place();
  std::string who;
  lh_code code = LH_UNKNOWN;
  const auto out_of_memory = [&] {
    code = LH_RESOURCE_EXHAUSTED;
    result_.error = "out of memory";
    result_.code = Exit::environment;
  };
  try {
    std::rethrow_exception(e);
  } catch (const ComponentFailure& f) {
    who = f.component + (f.where.empty() ? "" : " (" + f.where + ")");
    result_.error = f.what();
    code = f.code;
    result_.code = exit_of(f.code);
    if (result_.code == Exit::peer && ranks_.alone()) result_.code = Exit::failed;  // there is nobody else
  } catch (const Failure& f) {
    result_.error = f.what();
    code = f.code == Exit::environment ? LH_RESOURCE_EXHAUSTED : LH_FAILED_PRECONDITION;
    result_.code = f.code;
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::length_error&) {  // more than any memory
    out_of_memory();
  } catch (const std::exception& f) {
    who = current_ ? current_->who : "";
    result_.error =
        current_ ? std::string("an exception left a plugin: ") + f.what() + "; this is a fault of the plugin"
                 : std::string("internal error: ") + f.what();
    code = current_ ? LH_PLUGIN_FAULT : LH_INTERNAL;
    result_.code = current_ ? Exit::plugin : Exit::internal;
  } catch (...) {
    who = current_ ? current_->who : "";
    result_.error = "something that is not a std::exception left a plugin; this is a fault of the plugin";
    code = LH_PLUGIN_FAULT;
    result_.code = Exit::plugin;
  }
  tell_failure(who, code);
  if (!ranks_.alone()) {  // nothing of what is under way will be finished; the others are not to wait for it
    if (c_.strategy && c_.strategy->abort) c_.strategy->abort(c_.strategy.self(), LH_ABORTED);
    ranks_.abort(LH_ABORTED);
  }
  state_.failure = result_.error;
  try {
    constexpr int32_t event = LH_EVENT(LH_STAGE_FIT, LH_ON_EXCEPTION);
    if (heard(event)) emit(event);
    saving_alone_ = true;  // nobody else can be asked any more
    for (auto& k : keepers_)
      if (fitting_ && k->policy().on_exception && state_.step.global_step > 0) k->now(moment(), "exception");
  } catch (const std::exception& second) {
    log(Level::warning, std::string("while ending the failed run: ") + second.what());
  }
}

void Trainer::show_place() {
  watch_.page.set_stage(state_.step.stage);
  watch_.page.set_epoch(state_.step.epoch);
  watch_.page.set_batch(state_.step.batch);
  watch_.page.set_global_step(state_.step.global_step);
}

// In the page first: whatever happens from here on, a supervisor knows it.
void Trainer::tell_failure(const std::string& who, lh_code code) {
  result_.error_code = code_name(code);
  show_place();
  watch_.page.fail({code, static_cast<int32_t>(result_.code), 0, result_.error, who, "", result_.where});
  if (!who.empty()) result_.where = who + ", " + result_.where;
  if (watch_.supervised && ranks_.first())
    return log(Level::info, "failed in " + result_.where + ": " + result_.error);
  Terminal& t = Terminal::get();
  t.error(red("error:", t.error_colour()) + " " + (who.empty() ? "" : "failed in " + who + ": ") +
          result_.error + "\n  " + place() + "; run folder " + shown(run_folder_));
}

// Every step of the teardown runs, whatever the one before it did.
void Trainer::finish() {
  watch_.page.set_phase(RankPhase::ending);
  const auto attempt = [](const auto& f) {
    try {
      f();
    } catch (const std::exception& e) {
      log(Level::warning, std::string("while ending the run: ") + e.what());
    }
  };
  attempt([&] {
    for (SplitData& s : splits_) s.feed.reset();  // joins the data threads
  });
  attempt([&] {
    if (c_.strategy && c_.strategy->teardown) check(c_.strategy->teardown(c_.strategy.self()));
  });
  attempt([&] {
    if (!c_.profiler || !c_.profiler->stop || profile_mask_ == 0) return;
    lh_str summary{};
    check(c_.profiler->stop(c_.profiler.self(), &summary));
    if (summary.len) Terminal::get().print(view(summary));
  });
  attempt([&] {
    for (const KnownMetric& k : state_.metrics.known()) result_.last[k.name] = k.value;
    for (const auto& [name, value] : result_.test) result_.last.erase(name);
  });
  for (const auto& k : keepers_) {
    const auto best = k->best();
    if (!best || !result_.best_path.empty()) continue;
    result_.best_path = run_folder_ + "/" + best->file;
    result_.best_monitor = k->policy().monitor;
    result_.best_value = best->value;
    if (is_number(best->value)) result_.best[k->policy().monitor] = *best->value;
  }
  const lh_code outcome = result_.outcome == "done"          ? LH_OK
                          : result_.outcome == "interrupted" ? LH_CANCELLED
                                                             : LH_INTERNAL;
  log_writer_.close(outcome, result_.error);
  if (c_.accelerator && c_.accelerator->close) c_.accelerator->close(c_.accelerator.self());
  result_.versions["lhost"] = set_.host_version;
  result_.versions["abi"] = std::to_string(LH_ABI_MAJOR) + "." + std::to_string(LH_ABI_MINOR);
  result_.versions[std::string(view(engine_->name))] = view(engine_->version);
  const auto note = [&](const auto& c) {
    if (c) result_.plugins[c.identity().kind + ":" + c.identity().name] = c.identity().version;
  };
  note(c_.profiler), note(c_.launcher), note(c_.accelerator), note(c_.collective), note(c_.precision),
      note(c_.strategy);
  note(c_.data), note(c_.model), note(c_.optimizer), note(c_.scheduler);
  for (const auto& c : c_.loggers) note(c);
  for (const auto& c : c_.callbacks) note(c);
  for (const auto& c : c_.checkpointers) note(c);
  try {
    if (owns_folder_ && ranks_.first()) write_result(result_);
  } catch (const Failure& f) {
    Terminal::get().error("error: " + std::string(f.what()));
    if (result_.code == Exit::done)
      result_.code = f.code, result_.outcome = "failed", result_.error = f.what();
  }
}

}  // namespace lhost
