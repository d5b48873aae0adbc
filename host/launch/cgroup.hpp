// host/launch/cgroup.hpp - what this process may use of its machine, and whether the system killed for memory: by
// affinity and control groups, version 1 and 2.
#pragma once
#include <cstdint>
#include <string>

namespace lhost {

class Cgroup {
 public:
  // Other paths for tests.
  explicit Cgroup(std::string root = "/sys/fs/cgroup", const std::string& self = "/proc/self/cgroup");
  double cpu_limit() const;      // in cores; 0: none
  int64_t memory_limit() const;  // in bytes; 0: none
  int64_t oom_kills() const;     // how often the system killed in this group; 0 if it does not say

 private:
  std::string find(const std::string& controller, const char* file) const;
  std::string root_, unified_, cpu_, memory_;  // the group's path in each hierarchy
};

int allowed_cores();  // affinity and limit, at least 1

}  // namespace lhost
