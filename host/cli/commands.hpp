// host/cli/commands.hpp - the commands of lhost. Each returns an exit code; failures are thrown as Failure.
#pragma once
#include <string>
#include <vector>

namespace lhost {

struct RunCommand {
  std::string manifest;
  std::vector<std::string> overrides;
  std::vector<std::string> plugin_dirs;
  std::string resume, checkpoint;
  bool tail_ranks = false;
  std::string stage;  // of validate and test; empty: what [run] stages says
};

int run_command(const RunCommand&);
int plan_command(const RunCommand&);
int list_command(const std::vector<std::string>& plugin_dirs, const std::string& kind);
int inspect_command(const std::vector<std::string>& plugin_dirs, const std::string& what);
int doctor_command(const std::vector<std::string>& plugin_dirs);
int version_command();

}  // namespace lhost
