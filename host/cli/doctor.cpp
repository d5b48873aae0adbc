// host/cli/doctor.cpp - lhost doctor: what this machine and this installation can do, and what is wrong with them.
#include "cli/doctor.hpp"
#include "base/failure.hpp"
#include "base/terminal.hpp"
#include "cli/commands.hpp"
#include "plugin/loader.hpp"
#include "plugin/registry.hpp"
#include "train/engine.hpp"

#include <unistd.h>

namespace lhost {
namespace {

int problems = 0;

void line(const char* what, const std::string& text) {
  std::string label = what;
  label.resize(14, ' ');
  Terminal::get().print(label + text);
}
void problem(const char* what, const std::string& text) {
  ++problems;
  line(what, red("problem: ", Terminal::get().colour()) + text);
}

void check_libtorch() {
  try {
    const LibTorch t = find_libtorch();
    line("libtorch", t.version + "  " + t.root);
    if (access(installation().engine.c_str(), R_OK) != 0)
      return problem("engine", installation().engine + " is missing; build with LibTorch, or reinstall");
    load_engine_entry(installation().engine, LH_ENGINE_ENTRY);
    line("engine", installation().engine);
  } catch (const Failure& f) {
    problem("libtorch", f.what());
  }
}

void check_plugins(const std::vector<std::string>& plugin_dirs) {
  const SearchPath path = search_path(plugin_dirs);
  const Registry registry(path, libtorch_version_or_empty());
  size_t components = 0;
  for (const Installed& i : registry.all())
    if (i.refused.empty()) components += i.note.components.size();
  line("plugins",
       std::to_string(components) + " components in " + std::to_string(registry.all().size()) + " files");
  for (const auto& f : path.folders)
    line("", f.path + "  (" + f.origin + (access(f.path.c_str(), R_OK) == 0 ? ")" : ", does not exist)"));
  for (const Installed& i : registry.all())
    if (!i.refused.empty()) problem("plugin", i.path + ": " + i.refused);
}

void show(const doctor::Lines& lines) {
  for (const doctor::Line& l : lines)
    l.problem ? problem(l.what.c_str(), l.text) : line(l.what.c_str(), l.text);
}

}  // namespace

int doctor_command(const std::vector<std::string>& plugin_dirs) {
  problems = 0;
  line("lhost", LHOST_VERSION);
  const doctor::Variables variables = doctor::environment();
  const auto variable = [&](const char* name) {
    return variables.count(name) ? variables.at(name) : std::string();
  };
  show(doctor::machine());
  check_libtorch();
  check_plugins(plugin_dirs);
  show(doctor::meeting(variable("MASTER_ADDR"), variable("MASTER_PORT")));
  show(doctor::environment(variables, doctor::interfaces()));
  if (problems == 0) {
    Terminal::get().print("everything is fine");
    return 0;
  }
  Terminal::get().print(std::to_string(problems) + (problems == 1 ? " problem" : " problems"));
  return static_cast<int>(Exit::environment);
}

int version_command() {
  Terminal& t = Terminal::get();
  t.print("lhost " LHOST_VERSION);
  t.print("plugin ABI " + std::to_string(LH_ABI_MAJOR) + "." + std::to_string(LH_ABI_MINOR));
  const std::string libtorch = libtorch_version_or_empty();
  t.print("libtorch " + (libtorch.empty() ? std::string("not found") : libtorch));
  return 0;
}

}  // namespace lhost
