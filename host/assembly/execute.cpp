#include "assembly/execute.hpp"

#include "assembly/launch.hpp"
#include "assembly/place.hpp"
#include "base/log.hpp"
#include "launch/cgroup.hpp"
#include "plugin/loader.hpp"
#include "train/run_state.hpp"

#include <algorithm>
#include <cstdlib>

namespace lhost {
lh_engine_config engine_config(const Settings& s, int32_t local_ranks) {
  return {sizeof(lh_engine_config),
          s.threads > 0 ? s.threads : std::max(1, static_cast<int32_t>(allowed_cores()) / local_ranks),
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
// Variables and options that contradict each other are the caller's, and nothing runs yet.
void ask_place(const Launcher& launcher, const lh_launch_spec& spec, lh_env& env) {
  try {
    check(launcher->env(launcher.self(), &spec, &env));
  } catch (const ComponentFailure& f) {
    if (f.code != LH_INVALID_ARGUMENT) throw;
    throw Failure(Exit::usage, f.component + ": " + f.what());
  }
}
}  // namespace

RunResult execute(const Plan& plan, const ExecuteOptions& options) {
  const Settings settings = settings_of(plan);
  check_paths(settings);
  const lh_launch_spec spec{sizeof spec, 0, settings.num_nodes,
                            static_cast<int64_t>(settings.devices.size())};
  std::string why;
  Launcher launcher = choose_launcher(plan, spec, why);
  lh_env env{};
  env.size = sizeof env;
  ask_place(launcher, spec, env);
  if (launcher->start) return run_ranks(plan, settings, options, launcher, env, why);
  if (env.world_size > 1)
    log(Level::info, "launcher " + launcher.identity().name + " (" + why + "): this is rank " +
                         std::to_string(env.rank) + " of " + std::to_string(env.world_size));
  Member me;
  me.env = env;
  return run_rank(plan, options, std::move(launcher), me);
}

}  // namespace lhost
