#include "assembly/launch.hpp"

#include "assembly/place.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "plugin/loader.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace lhost {
namespace {

using nlohmann::json;

// ---- what a rank gets

json to_json(const Place& p) {
  return {{"run_folder", p.run_folder}, {"resume_file", p.resume_file}, {"continues", p.continues}};
}
Place place_from(const json& j) { return {j.at("run_folder"), j.at("resume_file"), j.at("continues")}; }

json to_json(const ManifestInput& m, const Manifest& read) {
  json j = {
      {"path", m.path}, {"overrides", m.overrides}, {"defaults", m.defaults_path}, {"files", read.files}};
  if (m.lhost_set) j["lhost_set"] = *m.lhost_set;
  return j;
}
ManifestInput manifest_from(const json& j) {
  ManifestInput m;
  j.at("path").get_to(m.path);
  j.at("overrides").get_to(m.overrides);
  j.at("defaults").get_to(m.defaults_path);
  j.at("files").get_to(m.snapshot);
  if (j.contains("lhost_set")) m.lhost_set = j["lhost_set"].get<std::string>();
  return m;
}

std::string request_text(const Plan& plan, const ExecuteOptions& options, const Place& place) {
  const TerminalOptions& t = Terminal::get().options();
  const json j = {{"manifest", to_json(plan.input, plan.manifest)},
                  {"plugin_dirs", options.plugin_dirs},
                  {"engine", options.engine},
                  {"place", to_json(place)},
                  {"quiet", t.quiet},
                  {"colour", static_cast<int>(t.colour)},
                  {"verbosity", log_verbosity()},
                  {"installation",
                   {installation().plugins, installation().engine, installation().defaults,
                    installation().host, installation().libtorch}}};
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

// ---- failures of a rank before and outside of its trainer

template <class F>
int guarded_rank(const Watch& watch, bool first, const F& run) {
  RankFailure failure;
  try {
    return run();
  } catch (const Failure& f) {
    failure.exit_code = static_cast<int>(f.code);
    failure.code = f.code == Exit::environment ? LH_RESOURCE_EXHAUSTED : LH_FAILED_PRECONDITION;
    failure.message = f.what();
  } catch (const ComponentFailure& f) {
    failure.exit_code = static_cast<int>(exit_of(f.code));
    failure.code = f.code;
    failure.message = f.what();
    failure.component = f.component;
    failure.where = f.where;
  } catch (const std::exception& e) {
    failure.exit_code = static_cast<int>(Exit::internal);
    failure.code = LH_INTERNAL;
    failure.message = std::string("internal error: ") + e.what();
  }
  RankPage(watch.page).fail(failure);
  if (!first) Terminal::get().error("error: " + failure.message);
  return failure.exit_code;
}

int code_of(const RunResult& r) { return static_cast<int>(r.code); }

// ---- the supervisor

// LibTorch, the engine and all plugins, before the first fork.
void load_everything(const Plan& plan, const ExecuteOptions& options) {
  start_engine(options.engine);
  for (const Selection& s : plan.selections)
    if (!s.path.empty()) load_plugin(s.path);
}

std::string choice_text(const Launcher& launcher, const std::string& why, const RankEnv& world) {
  std::string s = "launch " + launcher.identity().name + " (" + why +
                  "): " + std::to_string(world.local_world_size) + " rank" +
                  (world.local_world_size == 1 ? "" : "s") + " here";
  if (world.num_nodes > 1)
    s += ", " + std::to_string(world.world_size) + " on " + std::to_string(world.num_nodes) +
         " nodes, this is node " + std::to_string(world.node_rank);
  return s;
}

// What rank 0 wrote, with the culprit's words where it could only tell of a lost peer.
RunResult result_of(const SuperviseResult& s, const Place& place, const RankEnv& world) {
  const std::string file = place.run_folder + "/result.json";
  RunResult r;
  const bool written = read_result(file, r);
  r.run_folder = place.run_folder;
  r.code = static_cast<Exit>(s.exit_code);
  if (s.exit_code == 0 || (s.asked && written)) return r;
  r.outcome = s.asked ? "interrupted" : "failed";
  r.error = s.report;
  r.where = s.culprit < 0 ? "" : "rank " + std::to_string(s.culprit);
  if (r.error_code.empty()) r.error_code = code_name(LH_ABORTED);
  if (world.node_rank == 0) write_result(r);
  return r;
}

// The run's own folder is that of node 0. What another node's ranks print goes into <dir>/<name>/node_K/version_N: the
// nodes may share a file system, or not.
Settings settings_of_node(Settings s, int64_t node) {
  if (node == 0) return s;
  s.dir += "/" + s.name;
  s.name = "node_" + std::to_string(node);
  return s;
}

}  // namespace

RunResult run_ranks(const Plan& plan, const Settings& settings, const ExecuteOptions& options,
                    const Launcher& launcher, const lh_env& env, const std::string& why) {
  Place place = env.node_rank == 0 ? find_resume(plan, settings) : Place{};
  const bool forks = (launcher.identity().flags & LH_LAUNCHER_FORKS) != 0;
  if (forks) load_everything(plan, options);
  const FolderLock lock = open_place(settings_of_node(settings, env.node_rank), place);
  std::filesystem::remove(place.run_folder +
                          "/result.json");  // of an earlier life: it would be taken for this one's
  SuperviseOptions o;
  o.launcher = &launcher;
  o.world = RankEnv(env);
  o.argv = {installation().host, "__rank"};
  o.request = request_text(plan, options, place);
  o.log_folder = place.run_folder;
  o.tail_ranks = options.tail_ranks;
  o.max_restarts = settings.max_restarts;
  o.rank_main = [&](RankBoot& boot) {
    const Watch watch(boot.pages.at(0), true);
    return guarded_rank(watch, boot.env.rank == 0, [&] {
      Member me{boot.env.table(), boot.listen_fd, place, watch};
      return code_of(run_rank(plan, options, Launcher(), me));
    });
  };
  o.prepare = [&](const SuperviseResult&, SuperviseOptions& next) {
    if (const std::string last = last_checkpoint(place.run_folder); !last.empty())
      place.resume_file = last, place.continues = true;
    next.request = request_text(plan, options, place);
    return true;
  };
  Terminal::get().print(choice_text(launcher, why, o.world));
  const RankEnv world = o.world;
  return result_of(supervise(std::move(o)), place, world);
}

int executed_rank(RankBoot& boot) {
  const Watch watch(boot.pages.at(0), true);
  return guarded_rank(watch, boot.env.rank == 0, [&] {
    const json j = json::parse(boot.request);
    TerminalOptions t;
    t.quiet = j.at("quiet");
    t.colour = static_cast<TerminalOptions::Colour>(j.at("colour").get<int>());
    Terminal::get().configure(t);
    log_verbosity(j.at("verbosity"));
    const auto paths = j.at("installation").get<std::vector<std::string>>();
    set_installation({paths.at(0), paths.at(1), paths.at(2), paths.at(3), paths.at(4)});
    ResolveInput input;
    input.manifest = manifest_from(j.at("manifest"));
    j.at("plugin_dirs").get_to(input.plugin_dirs);
    ExecuteOptions options;
    j.at("engine").get_to(options.engine);
    options.plugin_dirs = input.plugin_dirs;
    const Plan plan = resolve(input, false);
    Member me{boot.env.table(), boot.listen_fd, place_from(j.at("place")), watch};
    return code_of(run_rank(plan, options, Launcher(), me));
  });
}

}  // namespace lhost
