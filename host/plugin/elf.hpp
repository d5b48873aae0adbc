// host/plugin/elf.hpp - the three facts of a shared object that the host wants before it runs any of it: is
// it one for this machine and whole, what does its lhost note hold, which libraries does it need. Reads
// headers only, never maps the file; safe on any bytes. Used by note.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lhost {

struct ByteSource {
  uint64_t size = 0;
  std::function<void(uint64_t offset, void* to, size_t n)>
      read;  // called inside [0, size) only; throws Failure
};

struct ElfFacts {
  std::string note;                 // the description of the note LHOST, type 1
  std::vector<std::string> needed;  // DT_NEEDED sonames
};
ElfFacts read_elf(const ByteSource&);  // throws Failure(Exit::plugin) with the reason alone

}  // namespace lhost
