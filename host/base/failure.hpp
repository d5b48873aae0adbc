// host/base/failure.hpp - how the host says that something went wrong: one exception type with an exit code.
// Manifest errors are collected as diagnostics (manifest/diagnostics.hpp) before they become one Failure.
#pragma once
#include <stdexcept>
#include <string>

namespace lhost {

// Exit codes of every command; the table that `lhost help exit-codes` prints is base/failure.cpp.
enum class Exit : int {
  done = 0,
  failed = 1,       // in training: model, data or plugin
  usage = 2,        // manifest or command line
  environment = 3,  // device, LibTorch, permission, disk
  plugin = 4,       // a plugin was refused or crashed
  internal = 70,
  peer = 71,   // another rank failed first (a rank's own code, never the run's)
  again = 75,  // stopped at a time limit or for requeue
  hung_up = 129,
  interrupted = 130,
  terminated = 143
};
const char* exit_code_table();

struct Failure : std::runtime_error {
  Exit code;
  Failure(Exit c, const std::string& message) : std::runtime_error(message), code(c) {}
};

}  // namespace lhost
