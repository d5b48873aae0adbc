// bytes.hpp - little-endian numbers to and from bytes, and what concerns text of unknown content. The ABI is
// little-endian only, so a number's memory is its bytes. Used by both readers and both writers.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace torch_file {

template <class T>
void put(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// REQUIRES: sizeof(T) bytes at `from`
template <class T>
T get(const char* from) {
  T number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
inline bool is_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto lead = static_cast<uint8_t>(s[i]);
    const size_t n = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || s.size() - i < n) return false;
    uint32_t code = n == 1 ? lead : lead & (0x7Fu >> n);
    for (size_t k = 1; k < n; ++k) {
      const auto next = static_cast<uint8_t>(s[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10FFFF))) return false;
    if (code >= 0xD800 && code <= 0xDFFF) return false;
    i += n;
  }
  return true;
}

// For messages: text from a file, without what a terminal would obey.
inline std::string printable(std::string_view s) {
  std::string out(s.substr(0, 100));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return s.size() > out.size() ? out + "..." : out;
}

}  // namespace torch_file
