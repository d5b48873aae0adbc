#include "launch/cgroup.hpp"

#include "base/text.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace lhost {
namespace {

// The first words of a small file; nothing if it is not there.
std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}
bool exists(const std::string& path) { return std::ifstream(path).good(); }

double quota_in_cores(const std::string& quota, const std::string& period) {
  try {
    const double q = std::stod(quota), p = std::stod(period);
    return q > 0 && p > 0 ? q / p : 0;
  } catch (const std::exception&) {
    return 0;  // "max"
  }
}
double tighter(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

}  // namespace

Cgroup::Cgroup(std::string root, const std::string& self) : root_(std::move(root)) {
  std::ifstream in(self);
  for (std::string line; std::getline(in, line);) {  // "4:memory:/a/b" or "0::/a/b"
    const size_t one = line.find(':'), two = line.find(':', one + 1);
    if (two == line.npos) continue;
    const std::string path = line.substr(two + 1);
    for (const std::string& c : split(line.substr(one + 1, two - one - 1), ',')) {
      if (c.empty()) unified_ = path;
      else if (c == "cpu") cpu_ = path;
      else if (c == "memory") memory_ = path;
    }
  }
}

// A container may see its own group as the root of the hierarchy, under a path that is the machine's.
std::string Cgroup::find(const std::string& controller, const char* file) const {
  const std::string& path = controller.empty() ? unified_ : controller == "cpu" ? cpu_ : memory_;
  const std::string base = controller.empty() ? root_ : root_ + "/" + controller;
  for (const std::string& folder : {base + path, base})
    if (exists(folder + "/" + file)) return folder + "/" + file;
  return {};
}

double Cgroup::cpu_limit() const {
  double limit = 0;
  for (std::string path = unified_;; path.resize(path.rfind('/'))) {  // a group above may allow less
    std::istringstream words(first_line(root_ + path + "/cpu.max"));
    std::string quota, period;
    words >> quota >> period;
    limit = tighter(limit, quota_in_cores(quota, period));
    if (path.rfind('/') == path.npos) break;
  }
  const std::string quota = find("cpu", "cpu.cfs_quota_us"), period = find("cpu", "cpu.cfs_period_us");
  if (!quota.empty()) limit = tighter(limit, quota_in_cores(first_line(quota), first_line(period)));
  return limit;
}

int64_t Cgroup::memory_limit() const {
  constexpr int64_t kNone = int64_t{1} << 60;  // version 1 writes a very large number for "none"
  int64_t limit = kNone;
  const auto take = [&](const std::string& file) {
    int64_t n = 0;
    if (std::istringstream(first_line(file)) >> n && n > 0) limit = std::min(limit, n);  // not "max"
  };
  for (std::string path = unified_;; path.resize(path.rfind('/'))) {
    take(root_ + path + "/memory.max");
    if (path.rfind('/') == path.npos) break;
  }
  take(find("memory", "memory.limit_in_bytes"));
  return limit < kNone ? limit : 0;
}

int64_t Cgroup::oom_kills() const {
  int64_t most = 0;
  for (const std::string& file : {find("", "memory.events"), find("memory", "memory.oom_control")}) {
    std::ifstream in(file);
    std::string name;
    for (int64_t n = 0; in >> name >> n;)
      if (name == "oom_kill") most = std::max(most, n);
  }
  return most;
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const double limit = Cgroup().cpu_limit(); limit > 0)
    cores = std::min(cores, static_cast<int>(std::ceil(limit)));
  return std::max(1, cores);
}

}  // namespace lhost
