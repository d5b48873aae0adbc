// host/assembly/rank.cpp - one rank of a run, from its engine to its end: in this process, the only one or one of many.
#include "assembly/place.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "train/trainer.hpp"

#include <malloc.h>

#include <csignal>
#include <optional>

namespace lhost {
namespace {

// On the heap: a logger that hangs for good keeps its thread, which still uses these.
struct Run {
  Engine engine;
  std::unique_ptr<RunHandle> handle;
  std::unique_ptr<Ranks> ranks;
  Components components;
  std::unique_ptr<Trainer> trainer;
};

void note_failure(RunResult& r, Exit code, const std::string& message, const std::string& where) {
  r.outcome = code == Exit::plugin ? "refused" : "failed";
  r.code = code;
  r.error = message;
  r.error_code = code_name(code == Exit::plugin ? LH_PLUGIN_FAULT : LH_INTERNAL);
  r.where = where;
}

// Before the trainer is there, which has its own way to say what went wrong.
void tell_failure(const RunResult& r, const Member& me) {
  if (me.watch.supervised && me.env.rank == 0) return;  // the supervisor says it
  Terminal& t = Terminal::get();
  t.error(red("error:", t.error_colour()) + " " + (r.where.empty() ? "" : "failed in " + r.where + ": ") +
          r.error);
}

// Rank 0 chooses the place, or its supervisor did; the others, on other nodes too, write nothing there, but read the
// checkpoint.
std::optional<FolderLock> agree_on_place(Ranks& ranks, const Settings& settings, bool chosen, Place& place) {
  std::optional<FolderLock> lock;
  if (ranks.first() && !chosen) lock.emplace(open_place(settings, place));
  place.run_folder = ranks.broadcast(place.run_folder);
  place.resume_file = ranks.broadcast(place.resume_file);
  place.continues = ranks.broadcast(place.continues ? "yes" : "") == "yes";
  return lock;
}

void open_log(const Member& me, const std::string& run_folder) {
  const bool own_file =
      me.env.rank > 0 && !me.watch.supervised;  // a supervisor's output file is that already
  if (me.env.rank == 0) log_to_file(run_folder + "/host.log");
  else if (own_file) log_to_file(run_folder + "/rank_" + std::to_string(me.env.rank) + ".log");
}

std::unique_ptr<Run> prepare(const Plan& plan, const Settings& settings, const ExecuteOptions& options,
                             Launcher launcher, const Member& me) {
  auto run = std::make_unique<Run>();
  run->engine = start_engine(options.engine);
  const lh_engine_config config = engine_config(settings, static_cast<int32_t>(me.env.local_world_size));
  run->handle = std::make_unique<RunHandle>(run->engine, config);
  run->handle->state().env = me.env;
  run->ranks = std::make_unique<Ranks>(run->engine, run->handle->get());
  run->handle->state().ranks = run->ranks.get();
  run->components.launcher = std::move(launcher);
  create_components(plan, run->components, run->handle->get(), me.env);
  me.watch.page.set_phase(RankPhase::meeting);
  run->ranks->meet(
      run->components.collective, me.env,
      {me.listen_fd, settings.timeout_s, settings.connect_timeout_s, settings.check_collectives});
  me.watch.page.set_phase(RankPhase::running);
  return run;
}

// Batches and activations come and go at the same sizes: giving them back to the system and faulting them in again costs
// up to a quarter of a step.
void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
}

}  // namespace

RunResult run_rank(const Plan& plan, const ExecuteOptions& options, Launcher launcher, const Member& me) {
  // A collective may write to a rank that is gone, from its first word to its last: an error of the write, not the end.
  if (me.env.world_size > 1) std::signal(SIGPIPE, SIG_IGN);
  keep_memory();
  const Settings settings = settings_of(plan);
  if (me.env.rank > 0) Terminal::get().mute();
  Place place = me.place ? *me.place : me.env.rank == 0 ? find_resume(plan, settings) : Place{};
  std::unique_ptr<Run> run = prepare(plan, settings, options, std::move(launcher), me);
  const std::optional<FolderLock> lock = agree_on_place(*run->ranks, settings, me.place.has_value(), place);

  RunResult result;
  result.run_folder = place.run_folder;
  open_log(me, result.run_folder);
  for (const Selection& s : plan.selections)
    log(Level::info, s.instance + ": " + s.name + " " + s.version + "  " + s.path);
  const auto failed = [&](Exit code, const std::string& message, const std::string& where) {
    note_failure(result, code, message, where);
    tell_failure(result, me);
    if (!place.continues && me.env.rank == 0) write_result(result);
  };
  try {
    run->trainer =
        std::make_unique<Trainer>(run->engine, *run->handle, *run->ranks, run->components, settings, me.watch,
                                  result.run_folder, place.resume_file, place.continues);
    result = run->trainer->run();
    if (run->trainer->abandoned()) (void)run.release();
  } catch (const Failure& f) {
    failed(f.code, f.what(), "");
  } catch (const ComponentFailure& f) {
    const bool fault = f.code == LH_PLUGIN_FAULT || f.code == LH_ABI_MISMATCH;
    failed(fault ? Exit::plugin : Exit::failed, f.what(), f.component + " (" + f.where + ")");
    result.error_code = code_name(f.code);
  }
  log_to_file("");
  me.watch.page.set_phase(RankPhase::ended);
  return result;
}

}  // namespace lhost
