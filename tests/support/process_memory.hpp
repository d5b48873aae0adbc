// support/process_memory.hpp - whether the system lets one process read another's memory at all: some containers' filters of
// system calls refuse it, even for oneself.
#pragma once
#include <sys/uio.h>
#include <unistd.h>

namespace lhost_test {

inline bool process_memory_can_be_read() {
  int from = 1, to = 0;
  const iovec here{&to, sizeof to}, there{&from, sizeof from};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof to && to == 1;
}
inline constexpr const char* kNoProcessMemory = "the system does not let processes read each other's memory";

}  // namespace lhost_test
