// fuzz/note_fuzz.cpp - any bytes as a plugin file: a note or a Failure, nothing else.
#include "base/failure.hpp"
#include "plugin/note.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    lhost::refusal(lhost::parse_note({reinterpret_cast<const char*>(data), size}), "2.11.0");
  } catch (const lhost::Failure&) {
  }
  return 0;
}
