// host/assembly/components.cpp - from the selections of a plan to running components.
#include "assembly/execute.hpp"

#include "base/failure.hpp"
#include "plugin/loader.hpp"

namespace lhost {
namespace {

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
                                   std::to_string(spec.ranks_per_node) +
                                   ", trainer.num_nodes = " + std::to_string(spec.num_nodes) + "; name one");
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
      throw Failure(Exit::usage,
                    "collective: the run has " + std::to_string(env.world_size) +
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

}  // namespace lhost
