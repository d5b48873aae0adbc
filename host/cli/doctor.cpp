// host/cli/doctor.cpp - lhost doctor: what this machine and this installation can do, and what is wrong with them.
#include "base/failure.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "plugin/loader.hpp"
#include "plugin/registry.hpp"
#include "train/engine.hpp"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdlib>

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

void check_machine() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  line("cores",
       std::to_string(CPU_COUNT(&set)) + " usable of " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  struct sysinfo info {};
  if (sysinfo(&info) == 0)
    line("memory", human_bytes(static_cast<double>(info.totalram) * info.mem_unit) + ", " +
                       human_bytes(static_cast<double>(info.freeram + info.bufferram) * info.mem_unit) +
                       " free");
  struct statvfs fs {};
  if (statvfs(".", &fs) == 0) {
    const double free_bytes = static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize);
    if (free_bytes < 100e6)
      problem("disk", human_bytes(free_bytes) + " free in this folder: checkpoints may not fit");
    else line("disk", human_bytes(free_bytes) + " free in this folder");
  }
  if (access(".", W_OK) != 0) problem("disk", "this folder cannot be written: set [run] dir");
}

void check_environment() {
  for (const char* name : {"LHOST_LIBTORCH", "LHOST_PLUGIN_PATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS"})
    if (const char* value = std::getenv(name)) line("environment", std::string(name) + "=" + value);
  if (std::getenv("LHOST_SET"))  // its values may be secrets
    line("environment", "LHOST_SET is set: lhost plan MANIFEST shows what it changes");
  if (std::getenv("OMP_NUM_THREADS")) line("", "OMP_NUM_THREADS is not used: set trainer.threads");
}

}  // namespace

int doctor_command(const std::vector<std::string>& plugin_dirs) {
  problems = 0;
  line("lhost", LHOST_VERSION);
  check_machine();
  check_libtorch();
  check_plugins(plugin_dirs);
  check_environment();
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
