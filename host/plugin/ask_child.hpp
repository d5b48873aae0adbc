// host/plugin/ask_child.hpp - descriptions of files by a child process; one that dies is blamed on the file
// it was at.
#pragma once
#include "plugin/describe.hpp"

#include <chrono>

namespace lhost {

struct Answer {
  Described described;
  bool lasting =
      false;  // true until the file changes; a refusal for what is around it (LibTorch, a library) is not
};
// `files` are canonical paths; one answer each. `limit` is the time that one file may take.
std::vector<Answer> ask_child(const std::string& host, const std::vector<std::string>& files,
                              std::chrono::milliseconds limit);

}  // namespace lhost
