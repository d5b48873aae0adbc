// host/assembly/runtime.cpp - lhost/runtime.hpp: a run from another program.
#include "lhost/runtime.hpp"

#include "assembly/execute.hpp"
#include "base/terminal.hpp"
#include "plugin/loader.hpp"

namespace lhost {
namespace {

ResolveInput input_of(const RunOptions& o) {
  if (!o.prefix.empty())
    set_installation({o.prefix + "/lib/lhost/plugins/1", o.prefix + "/lib/lhost/liblhost_engine.so",
                      o.prefix + "/share/lhost/defaults.toml", o.prefix + "/bin/lhost",
                      o.prefix + "/lib/lhost/libtorch"});
  TerminalOptions terminal;
  terminal.quiet = o.quiet;
  Terminal::get().configure(terminal);
  return input_for(o.manifest, o.overrides, o.plugin_dirs);
}

template <class F>
RunReport guarded(const F& f) {
  RunReport r;
  try {
    f(r);
  } catch (const Failure& e) {
    r.exit_code = static_cast<int>(e.code);
    r.outcome = e.code == Exit::usage || e.code == Exit::plugin ? "refused" : "failed";
    r.error = e.what();
  } catch (const ComponentFailure& e) {
    r.exit_code = static_cast<int>(Exit::failed);
    r.outcome = "failed";
    r.error = e.component + " (" + e.where + "): " + e.what();
  } catch (const std::exception& e) {
    r.exit_code = static_cast<int>(Exit::internal);
    r.outcome = "failed";
    r.error = e.what();
  } catch (...) {
    r.exit_code = static_cast<int>(Exit::internal);
    r.outcome = "failed";
    r.error = "something that is not a std::exception was thrown";
  }
  return r;
}

}  // namespace

RunReport run_manifest(const RunOptions& o) {
  return guarded([&](RunReport& r) {
    const Plan plan = resolve(input_of(o), false);
    r.warnings = plan.warnings;
    const RunResult result = execute(plan, {o.engine, o.plugin_dirs, false});
    r.exit_code = static_cast<int>(result.code);
    r.outcome = result.outcome;
    r.error = result.error;
    r.run_folder = result.run_folder;
    r.metrics = result.last;
    r.metrics.insert(result.test.begin(), result.test.end());
    r.best_checkpoint = result.best_path;
  });
}

RunReport check_manifest(const RunOptions& o) {
  return guarded([&](RunReport& r) {
    r.warnings = resolve(input_of(o), false).warnings;
    r.outcome = "done";
  });
}

}  // namespace lhost
