// host/cli/run.cpp - lhost run, validate, test: one manifest, executed.
#include "assembly/execute.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "cli/resolve_input.hpp"

#include <malloc.h>

namespace lhost {
namespace {

// Batches and activations come and go at the same sizes: giving them back to the system and faulting them in again costs
// up to a tenth of a step.
void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
}

}  // namespace

int run_command(const RunCommand& c) {
  const Plan plan = resolve(resolve_input(c), Terminal::get().error_colour());
  keep_memory();
  if (!plan.warnings.empty()) Terminal::get().error(plan.warnings);
  return static_cast<int>(execute(plan, {"", c.plugin_dirs, c.tail_ranks}).code);
}

}  // namespace lhost
