#include "cli/resolve_input.hpp"

#include "manifest/node.hpp"
#include "plugin/loader.hpp"

#include <cstdlib>

namespace lhost {

ResolveInput resolve_input(const RunCommand& c) {
  ResolveInput input;
  input.manifest.path = c.manifest;
  input.manifest.overrides = c.overrides;
  // the options of a command are overrides too: one mechanism, one place in which `plan` shows them
  if (!c.stage.empty()) input.manifest.overrides.push_back("run.stages=[" + in_quotes(c.stage) + "]");
  if (!c.resume.empty()) input.manifest.overrides.push_back("resume.from=" + in_quotes(c.resume));
  if (!c.checkpoint.empty()) input.manifest.overrides.push_back("resume.from=" + in_quotes(c.checkpoint));
  if (const char* set = std::getenv("LHOST_SET")) input.manifest.lhost_set = set;
  input.manifest.defaults_path = installation().defaults;
  input.plugin_dirs = c.plugin_dirs;
  return input;
}

}  // namespace lhost
