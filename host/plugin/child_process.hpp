// host/plugin/child_process.hpp - runs a program that answers in lines on stdout, and survives whatever it
// does. Its environment is PATH, HOME and LHOST_LIBTORCH, stdin is empty, it has a process group of its own.
// [main]
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace lhost {

struct ChildResult {
  std::vector<std::string> lines;  // complete ones
  std::string errors;              // the end of its stderr
  int wait_status = 0;             // meaningful if fewer lines than expected came and it did not time out
  bool timed_out = false;
};
// Ends with the expected number of lines, with the child, or when no line came for `limit`; the child's whole
// process group is gone then. Throws Failure(Exit::environment) if the program cannot be started.
ChildResult run_child(const std::vector<std::string>& arguments, size_t expected_lines,
                      std::chrono::milliseconds limit);

}  // namespace lhost
