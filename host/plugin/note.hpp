// host/plugin/note.hpp - what a shared object says of itself, read from the file without running any code.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lhost {

struct NotedComponent {
  std::string kind;      // "strategy"
  std::string revision;  // "0.1"
  std::string name;      // "ddp"
};
struct Note {
  std::string name, version, license, torch;
  uint32_t abi_major = 0, abi_minor = 0, min_minor = 0;
  std::vector<NotedComponent> components;
  std::vector<std::string> needed;  // DT_NEEDED sonames
};

// Throws Failure(Exit::plugin) with the reason: cannot be read, not an ELF file, wrong machine, truncated, no
// note, malformed note. The message is the reason alone: callers put the path in front. Never maps or
// executes the file; safe on any bytes.
Note read_note(const std::string& path);
Note parse_note(std::string_view bytes);  // the same from a file's content

// Why this host refuses a plugin with that note, or empty: other ABI major, newer than the host, a draft kind
// of another revision, another LibTorch (`libtorch` = "2.11.0"; empty: this installation has none).
std::string refusal(const Note&, const std::string& libtorch);

}  // namespace lhost
