// variables.hpp - environment variables as launchers read them: texts, whole numbers, and errors that name them.
#pragma once
#include <lhost/sdk/launcher.hpp>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lhost_launcher {

[[noreturn]] inline void refuse(const std::string& why) { throw lhost::Error(LH_INVALID_ARGUMENT, why); }

// Where variables come from: the process, or a test's table.
using Getter = std::function<const char*(const char* name)>;
inline const char* from_process(const char* name) { return std::getenv(name); }

class Variables {
 public:
  explicit Variables(Getter get = from_process) : get_(std::move(get)) {}

  std::string text(const char* name) const {
    const char* v = get_(name);
    return v ? v : "";
  }
  bool has(const char* name) const { return !text(name).empty(); }  // empty counts as not set
  bool all(std::initializer_list<const char*> names) const {
    for (const char* n : names)
      if (!has(n)) return false;
    return true;
  }
  std::optional<int64_t> number(const char* name) const {
    const std::string t = text(name);
    if (t.empty()) return std::nullopt;
    int64_t v = 0;
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), v);
    if (error != std::errc() || end != t.data() + t.size())
      refuse("found " + std::string(name) + "=" + t + ", expected a whole number; correct or unset it");
    return v;
  }
  int64_t required(const char* name, const char* who_sets_it) const {
    if (const auto v = number(name)) return *v;
    refuse(std::string(name) + " is not set, though " + who_sets_it +
           " sets it; start the program with it, or name another launcher in launcher.use");
  }
  // "RANK=1, WORLD_SIZE=4": what a message shows
  std::string shown(std::initializer_list<const char*> names) const {
    std::string s;
    for (const char* n : names)
      if (has(n)) s += (s.empty() ? "" : ", ") + std::string(n) + "=" + text(n);
    return s;
  }

 private:
  Getter get_;
};

inline void check_port(int64_t port, const std::string& from) {
  if (port < 1 || port > 65535)
    refuse("found " + from + " = " + std::to_string(port) + ", expected a port from 1 to 65535");
}

}  // namespace lhost_launcher
