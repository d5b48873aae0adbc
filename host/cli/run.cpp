// host/cli/run.cpp - lhost run, validate, test: one manifest, executed.
#include "assembly/execute.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "cli/resolve_input.hpp"

namespace lhost {

int run_command(const RunCommand& c) {
  const Plan plan = resolve(resolve_input(c), Terminal::get().error_colour());
  if (!plan.warnings.empty()) Terminal::get().error(plan.warnings);
  return static_cast<int>(execute(plan, {"", c.plugin_dirs, c.tail_ranks}).code);
}

}  // namespace lhost
