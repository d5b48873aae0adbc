#include "cli/resolve_input.hpp"

#include "manifest/node.hpp"

namespace lhost {

ResolveInput resolve_input(const RunCommand& c) {
  // the options of a command are overrides too: one mechanism, one place in which `plan` shows them
  std::vector<std::string> overrides = c.overrides;
  if (!c.stage.empty()) overrides.push_back("run.stages=[" + in_quotes(c.stage) + "]");
  if (!c.resume.empty()) overrides.push_back("resume.from=" + in_quotes(c.resume));
  if (!c.checkpoint.empty()) overrides.push_back("resume.from=" + in_quotes(c.checkpoint));
  return input_for(c.manifest, std::move(overrides), c.plugin_dirs);
}

}  // namespace lhost
