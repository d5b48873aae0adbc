#include "base/text.hpp"
#include "cli/doctor.hpp"
#include "launch/cgroup.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace lhost::doctor {
namespace {

constexpr double kSmallDisk = 100e6, kSmallShm = 64 << 20;
constexpr uint64_t kFewFiles = 512;        // connections to some hundred ranks, data files, libraries
constexpr uint64_t kProcessesOfRank = 16;  // threads count too

std::string plural(int64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}
std::string text_of(uint64_t n) { return n == kUnlimited ? "unlimited" : grouped(static_cast<int64_t>(n)); }
std::string text_of(const Limit& l) {
  return text_of(l.soft) + (l.soft < l.hard ? " (ulimit can raise it to " + text_of(l.hard) + ")" : "");
}

Limit limit_of(__rlimit_resource which) {
  rlimit r{};
  if (getrlimit(which, &r) != 0) return {kUnlimited, kUnlimited};
  const auto number = [](rlim_t n) { return n == RLIM_INFINITY ? kUnlimited : static_cast<uint64_t>(n); };
  return {number(r.rlim_cur), number(r.rlim_max)};
}
double free_bytes(const char* folder) {
  struct statvfs fs {};
  if (statvfs(folder, &fs) != 0) return -1;
  return static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize);
}

Lines disk() {
  Lines out;
  if (const double free = free_bytes("."); free >= 0) {
    const bool small = free < kSmallDisk;
    out.push_back({"disk",
                   human_bytes(free) + " free in this folder" + (small ? ": checkpoints may not fit" : ""),
                   small});
  }
  if (access(".", W_OK) != 0) out.push_back({"disk", "this folder cannot be written: set [run] dir", true});
  return out;
}

}  // namespace

int numa_nodes(const std::string& folder) {
  int n = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    n += name.size() > 4 && name.compare(0, 4, "node") == 0 &&
         std::all_of(name.begin() + 4, name.end(), [](unsigned char c) { return std::isdigit(c); });
  }
  return n;
}

int64_t available_memory(const std::string& meminfo) {
  std::ifstream in(meminfo);
  std::string name, rest;
  for (int64_t kib = 0; in >> name >> kib && std::getline(in, rest);)
    if (name == "MemAvailable:") return kib * 1024;
  return -1;
}

Cores this_machines_cores() {
  Cores c;
  cpu_set_t set;
  CPU_ZERO(&set);
  c.online = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  c.allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : c.online;
  c.limit = Cgroup().cpu_limit();
  c.numa_nodes = numa_nodes();
  return c;
}

Lines cores(const Cores& c) {
  const int usable =
      std::max(1, c.limit > 0 ? std::min(c.allowed, static_cast<int>(std::ceil(c.limit))) : c.allowed);
  std::string text = std::to_string(usable) + " usable of " + std::to_string(c.online);
  if (c.allowed < c.online) text += ", affinity allows " + std::to_string(c.allowed);
  if (c.limit > 0) text += ", the control group " + significant(c.limit);
  if (c.numa_nodes > 0) text += ", " + plural(c.numa_nodes, "NUMA node");
  Lines out = {{"cores", text}};
  out.push_back(
      {"", usable == 1
               ? "one rank: a second would share its core"
               : "up to " + std::to_string(usable) +
                     " ranks (trainer.devices) have a core each; threads of a rank: trainer.threads"});
  if (c.numa_nodes > 1)
    out.push_back(
        {"",
         "a rank is fastest inside one NUMA node, and lhost binds none: numactl or srun --cpu-bind does"});
  return out;
}

Lines memory(double total, double available, double limit) {
  std::string text = human_bytes(total);
  if (available >= 0) text += ", " + human_bytes(available) + " available";
  if (limit > 0 && limit < total) text += "; the control group allows " + human_bytes(limit);
  return {{"memory", text + "; each rank has weights, gradients and optimizer state of its own"}};
}

Lines shared_memory(double free) {
  if (free < 0)
    return {{"shared memory", "there is no /dev/shm: collectives that share memory between ranks need it"}};
  return {{"shared memory",
           human_bytes(free) + " free in /dev/shm" +
               (free < kSmallShm ? ": little for ranks that share memory; containers: --shm-size" : "")}};
}

Lines limits(const Limit& files, const Limit& processes, int usable_cores) {
  Lines out = {{"limits", "open files " + text_of(files) + ", processes and threads " + text_of(processes)}};
  if (files.soft < kFewFiles)
    out.push_back(
        {"", "a rank holds a connection to each other rank: raise open files (ulimit -n) for more than " +
                 std::to_string(files.soft / 4) + " ranks"});
  if (processes.soft < kProcessesOfRank * static_cast<uint64_t>(usable_cores))
    out.push_back({"", "a rank has several threads: raise processes (ulimit -u) before starting many"});
  return out;
}

Lines machine() {
  const Cores c = this_machines_cores();
  Lines out = cores(c);
  const auto add = [&](const Lines& more) { out.insert(out.end(), more.begin(), more.end()); };
  struct sysinfo info {};
  if (sysinfo(&info) == 0) {
    const double unit = info.mem_unit;
    const int64_t available = available_memory();
    add(memory(static_cast<double>(info.totalram) * unit,
               available >= 0 ? static_cast<double>(available)
                              : static_cast<double>(info.freeram + info.bufferram) * unit,
               static_cast<double>(Cgroup().memory_limit())));
  }
  add(shared_memory(free_bytes("/dev/shm")));
  add(limits(limit_of(RLIMIT_NOFILE), limit_of(RLIMIT_NPROC), c.allowed));
  add(disk());
  return out;
}

}  // namespace lhost::doctor
