#include "assembly/execute.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "manifest/text.hpp"
#include "train/trainer.hpp"

#include <sched.h>

#include <algorithm>
#include <filesystem>

namespace lhost {
namespace {

int32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

const lh_component* find_component(const LoadedPlugin& p, const Selection& s, const lh_component** original) {
  for (size_t i = 0; i < p.components.size(); ++i) {
    const std::string_view kind = view(p.components[i].kind);
    if (kind.substr(0, kind.find('/')) != s.kind || view(p.components[i].name) != s.name) continue;
    *original = p.originals[i];
    return &p.components[i];
  }
  throw Failure(Exit::plugin, s.path + " does not hold the " + s.kind + " \"" + s.name +
                                  "\" that its description promised");
}

template <class C>
void create(const Plan& plan, std::string_view kind, C& out, lh_run* run) {
  if (const Selection* s = plan.find(kind)) out = C(create_component(*s, run));
}
template <class C>
void create(const Plan& plan, std::string_view kind, std::vector<C>& out, lh_run* run) {
  for (const Selection* s : plan.all(kind)) out.emplace_back(create_component(*s, run));
}

void note_failure(RunResult& r, Exit code, const std::string& message, const std::string& where) {
  r.outcome = code == Exit::plugin ? "refused" : "failed";
  r.code = code;
  r.error = message;
  r.error_code = code_name(code == Exit::plugin ? LH_PLUGIN_FAULT : LH_INTERNAL);
  r.where = where;
  Terminal& t = Terminal::get();
  t.error(red("error:", t.error_colour()) + " " + (where.empty() ? "" : "failed in " + where + ": ") +
          message);
}

std::string absolute_resume(const Plan& plan, std::string from) {
  if (from.empty() || from == "last" || from == "best" || from == "auto") return from;
  const Source source = plan.resume.source("from");
  if (from[0] == '/' || source.text < 0) return from;
  return (std::filesystem::path(plan.manifest.texts[static_cast<size_t>(source.text)].folder) / from)
      .lexically_normal();
}

}  // namespace

Created create_component(const Selection& s, lh_run* run) {
  const LoadedPlugin& plugin = load_plugin(s.path);
  const lh_component* original = nullptr;
  const lh_component* c = find_component(plugin, s, &original);
  if (c->n_options != s.options.list().size())
    throw Failure(Exit::plugin, s.path + " changed while it was being loaded; run again");
  lh_create_args args{sizeof(lh_create_args),  0,   s.options.list().data(),
                      s.options.list().size(), run, str(s.label)};
  Created out;
  out.identity = {s.kind, s.name, s.label, s.version, c->flags};
  lh_status status = nullptr;
  try {
    status = c->create(original, &args, &out.self, &out.table);
  } catch (...) {
    throw Failure(Exit::plugin, s.path + ": an exception left create of " + s.kind + " \"" + s.name +
                                    "\"; this is a fault of the plugin");
  }
  if (status) {  // options that contradict one another: as if the manifest's checks had found it
    const PluginError e = take(status);
    const bool usage =
        e.code == LH_INVALID_ARGUMENT || e.code == LH_OUT_OF_RANGE || e.code == LH_FAILED_PRECONDITION;
    const bool environment = e.code == LH_RESOURCE_EXHAUSTED || e.code == LH_PERMISSION;
    throw Failure(usage         ? Exit::usage
                  : environment ? Exit::environment
                                : Exit::plugin,
                  s.instance + " (" + e.component + "): " + e.message);
  }
  if (!out.self || !out.table)
    throw Failure(Exit::plugin, s.path + ": create of " + s.kind + " \"" + s.name + "\" gave nothing");
  return out;
}

Launcher choose_launcher(const Plan& plan, const lh_launch_spec& spec, std::string& why) {
  if (const Selection* named = plan.find("launcher")) {
    why = "the manifest names it";
    return Launcher(create_component(*named, nullptr));
  }
  Launcher best;
  int32_t highest = 0;
  for (const Selection& s : plan.launchers) {
    Launcher l(create_component(s, nullptr));
    lh_str reason{};
    const int32_t score = l->detect ? l->detect(l.self(), &spec, &reason) : 0;
    if (score <= highest) continue;
    highest = score;
    why = view(reason);
    best = std::move(l);
  }
  if (!best)
    throw Failure(Exit::usage, "launcher.use: no installed launcher fits trainer.devices = " +
                                   std::to_string(spec.ranks_per_node) + ", trainer.num_nodes = " +
                                   std::to_string(spec.num_nodes) + "; name one");
  return best;
}

// Loggers and the profiler belong to rank 0: what they record is of the whole run.
void create_components(const Plan& plan, Components& c, lh_run* run, const lh_env& env) {
  if (env.rank == 0) {
    create(plan, "profiler", c.profiler, run);
    create(plan, "logger", c.loggers, run);
  }
  create(plan, "checkpointer", c.checkpointers, run);
  create(plan, "accelerator", c.accelerator, run);
  if (env.world_size > 1) {
    create(plan, "collective", c.collective, run);
    if (!c.collective)
      throw Failure(Exit::usage, "collective: the run has " + std::to_string(env.world_size) +
                                     " ranks, but no collective is installed; add [collective] use = \"...\"");
  }
  create(plan, "precision", c.precision, run);
  create(plan, "strategy", c.strategy, run);
  create(plan, "data", c.data, run);
  create(plan, "model", c.model, run);
  create(plan, "optimizer", c.optimizer, run);
  create(plan, "scheduler", c.scheduler, run);
  create(plan, "callback", c.callbacks, run);
}

lh_engine_config engine_config(const Settings& s, int32_t local_ranks) {
  return {sizeof(lh_engine_config), s.threads > 0 ? s.threads : std::max(1, usable_cores() / local_ranks),
          s.seed, s.flush_denormal ? 1u : 0u, 0};
}

Engine start_engine(const std::string& path) {
  static const bool offered = [] {
    setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 0);  // LibTorch's own remarks on sockets; errors come to us anyway
    offer_services([](std::string_view id) { return host_service(id); });
    return true;
  }();
  (void)offered;
  return load_engine(path.empty() ? installation().engine : path);
}

namespace {

void check_paths(const Settings& settings) {
  for (const CheckpointPolicy& p : settings.checkpoints) check_filename_pattern(p.filename);
  const std::string folder = std::filesystem::absolute(settings.dir) / settings.name;
  if (!valid_utf8(folder) || !valid_utf8(settings.manifest))
    throw Failure(Exit::usage,
                  "run.dir: a path of this run is not UTF-8, which its files could not repeat: " + folder +
                      "; rename the folder, or set run.dir to another one");
}

bool fits(const Settings& s) {
  return std::find(s.stages.begin(), s.stages.end(), kFit) != s.stages.end();
}

// What the run goes on from, if anything; its folder is made later, when there is a run to write into it.
Place find_resume(const Plan& plan, const Settings& settings) {
  std::string resume = absolute_resume(plan, settings.resume);
  if (resume == "auto") resume = has_resume_point(settings.dir, settings.name) ? "last" : "";
  if (resume.empty()) return {};
  const ResumePoint point = find_resume_point(settings.dir, settings.name, resume);
  if (settings.checkpoints.empty())
    throw Failure(Exit::usage,
                  "resume: the manifest has no [[checkpoint]], so nothing can read " + point.file);
  if (!fits(settings) || point.run_folder.empty()) return {"", point.file, false};
  return {point.run_folder, point.file, true};
}

// The folder is this process's until the lock goes.
FolderLock open_place(const Settings& settings, Place& place) {
  if (!place.continues) place.run_folder = new_run_folder(settings.dir, settings.name);
  place.run_folder = std::filesystem::absolute(place.run_folder);
  FolderLock lock(place.run_folder);
  remove_leftovers(place.run_folder);  // of a life that was killed while it wrote
  if (!place.continues) write_atomically(place.run_folder + "/manifest.resolved.toml", settings.manifest);
  return lock;
}

// On the heap: a logger that hangs for good keeps its thread, which still uses these.
struct Run {
  Engine engine;
  std::unique_ptr<RunHandle> handle;
  std::unique_ptr<Ranks> ranks;
  Components components;
  std::unique_ptr<Trainer> trainer;
};

// Rank 0 chooses the place; the others write nothing there, but read the checkpoint.
std::optional<FolderLock> agree_on_place(Ranks& ranks, const Settings& settings, Place& place) {
  std::optional<FolderLock> lock;
  if (ranks.first()) lock.emplace(open_place(settings, place));
  place.run_folder = ranks.broadcast(place.run_folder);
  place.resume_file = ranks.broadcast(place.resume_file);
  place.continues = ranks.broadcast(place.continues ? "yes" : "") == "yes";
  return lock;
}

}  // namespace

RunResult run_rank(const Plan& plan, const ExecuteOptions& options, Launcher launcher, const Member& me) {
  const Settings settings = settings_of(plan);
  Place place = me.place ? *me.place : me.env.rank == 0 ? find_resume(plan, settings) : Place{};
  auto run = std::make_unique<Run>();
  run->engine = start_engine(options.engine);
  const lh_engine_config config = engine_config(settings, static_cast<int32_t>(me.env.local_world_size));
  run->handle = std::make_unique<RunHandle>(run->engine, config);
  run->handle->state().env = me.env;
  run->ranks = std::make_unique<Ranks>(run->engine, run->handle->get());
  run->handle->state().ranks = run->ranks.get();
  run->components.launcher = std::move(launcher);
  create_components(plan, run->components, run->handle->get(), me.env);
  run->ranks->meet(run->components.collective, me.env,
                   {me.listen_fd, settings.timeout_s, settings.connect_timeout_s, settings.check_collectives});
  std::optional<FolderLock> lock;
  if (!me.place) lock = agree_on_place(*run->ranks, settings, place);

  RunResult result;
  result.run_folder = place.run_folder;
  if (me.env.rank == 0) log_to_file(result.run_folder + "/host.log");
  for (const Selection& s : plan.selections)
    log(Level::info, s.instance + ": " + s.name + " " + s.version + "  " + s.path);
  const bool writes = !place.continues && me.env.rank == 0;
  try {
    run->trainer = std::make_unique<Trainer>(run->engine, *run->handle, *run->ranks, run->components, settings,
                                             result.run_folder, place.resume_file, place.continues);
    result = run->trainer->run();
    if (run->trainer->abandoned()) (void)run.release();
  } catch (const Failure& f) {
    note_failure(result, f.code, f.what(), "");
    if (writes) write_result(result);
  } catch (const ComponentFailure& f) {
    const bool fault = f.code == LH_PLUGIN_FAULT || f.code == LH_ABI_MISMATCH;
    note_failure(result, fault ? Exit::plugin : Exit::failed, f.what(), f.component + " (" + f.where + ")");
    result.error_code = code_name(f.code);
    if (writes) write_result(result);
  }
  log_to_file("");
  return result;
}

RunResult execute(const Plan& plan, const ExecuteOptions& options) {
  const Settings settings = settings_of(plan);
  check_paths(settings);
  const lh_launch_spec spec{sizeof spec, 0, settings.num_nodes, static_cast<int64_t>(settings.devices.size())};
  std::string why;
  Launcher launcher = choose_launcher(plan, spec, why);
  Member me;
  me.env.size = sizeof me.env;
  check(launcher->env(launcher.self(), &spec, &me.env));
  return run_rank(plan, options, std::move(launcher), me);
}

}  // namespace lhost
