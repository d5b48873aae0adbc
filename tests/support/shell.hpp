// support/shell.hpp - runs a command line in a test and gives back what it printed (both streams) and its exit code.
#pragma once
#include <sys/wait.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace lhost_test {

struct Outcome {
  int exit_code = -1;  // 128 + n for signal n
  std::string output;
};

inline Outcome shell(const std::string& command) {
  std::FILE* pipe = popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  Outcome o;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) o.output.append(buffer, n);
  const int status = pclose(pipe);
  o.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return o;
}

// For commands that must work.
inline std::string output_of(const std::string& command) {
  const Outcome o = shell(command);
  if (o.exit_code != 0)
    throw std::runtime_error(command + ": exit " + std::to_string(o.exit_code) + "\n" + o.output);
  return o.output;
}

}  // namespace lhost_test
