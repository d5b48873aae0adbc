// environment.hpp - the process's environment is a given table, and nothing else, as long as an object lives.
#pragma once
#include <lhost/launcher.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace lhost_test {

using Environment = std::map<std::string, std::string>;

class EnvironmentIs {
 public:
  explicit EnvironmentIs(const Environment& table) {
    for (char** e = environ; e && *e; ++e) before_.emplace_back(*e);
    clearenv();
    for (const auto& [name, value] : table) setenv(name.c_str(), value.c_str(), 1);
  }
  ~EnvironmentIs() {
    clearenv();
    for (const std::string& v : before_) {
      const size_t equals = v.find('=');
      setenv(v.substr(0, equals).c_str(), v.c_str() + equals + 1, 1);
    }
  }
  EnvironmentIs(const EnvironmentIs&) = delete;

 private:
  std::vector<std::string> before_;
};

// What a manifest says: trainer.num_nodes and trainer.devices.
inline lh_launch_spec wanted(int64_t nodes, int64_t ranks) {
  return {sizeof(lh_launch_spec), 0, nodes, ranks};
}

inline Environment operator+(Environment a, const Environment& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}
inline Environment without(Environment e, const std::vector<std::string>& names) {
  for (const std::string& n : names) e.erase(n);
  return e;
}

}  // namespace lhost_test
