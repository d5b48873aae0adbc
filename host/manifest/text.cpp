// host/manifest/text.cpp - see text.hpp.
#include "manifest/text.hpp"

namespace lhost {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

// Bytes of the code point that starts here; 0 if it is not UTF-8 (overlong, surrogate, cut short, beyond U+10FFFF).
size_t code_point(std::string_view s) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = at(0);
  const size_t n = lead < 0x80   ? 1
                   : lead < 0xC2 ? 0
                   : lead < 0xE0 ? 2
                   : lead < 0xF0 ? 3
                   : lead < 0xF5 ? 4
                                 : 0;
  if (n == 0 || n > s.size()) return 0;
  for (size_t i = 1; i < n; ++i) {
    if (!continues(s[i])) return 0;
  }
  const bool bad = (lead == 0xE0 && at(1) < 0xA0) || (lead == 0xED && at(1) > 0x9F) ||
                   (lead == 0xF0 && at(1) < 0x90) || (lead == 0xF4 && at(1) > 0x8F);
  return bad ? 0 : n;
}

}  // namespace

bool valid_utf8(std::string_view s) {
  while (!s.empty()) {
    const size_t n = code_point(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

int columns_in(std::string_view s) {
  int n = 0;
  for (char c : s) n += continues(c) ? 0 : 1;
  return n;
}

size_t byte_of_column(std::string_view line, int column) {
  size_t i = 0;
  for (int c = 1; c < column && i < line.size(); ++c) {
    do ++i;
    while (i < line.size() && continues(line[i]));
  }
  return i;
}

std::string_view line_of(const Text& text, int line) {
  std::string_view rest = text.content;
  for (int i = 1; i < line; ++i) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) return {};
    rest.remove_prefix(end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

std::string_view written(const Texts& texts, const Source& s) {
  if (s.text < 0 || static_cast<size_t>(s.text) >= texts.size() || s.line < 1) return {};
  const std::string_view line = line_of(texts[static_cast<size_t>(s.text)], s.line);
  const size_t begin = byte_of_column(line, s.column), end = byte_of_column(line, s.end_column);
  return begin < end ? line.substr(begin, end - begin) : std::string_view{};
}

}  // namespace lhost
