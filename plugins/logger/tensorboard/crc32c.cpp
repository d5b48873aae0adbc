#include "crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0u);  // the polynomial, reflected
    table[i] = c;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t with_instruction(std::string_view bytes) {
  uint64_t c = ~uint32_t{0};
  const char* p = bytes.data();
  size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p, 8);
    c = _mm_crc32_u64(c, word);
  }
  for (; n > 0; --n, ++p) c = _mm_crc32_u8(static_cast<uint32_t>(c), static_cast<uint8_t>(*p));
  return ~static_cast<uint32_t>(c);
}
#endif

}  // namespace

uint32_t crc32c_portable(std::string_view bytes) {
  uint32_t c = ~uint32_t{0};
  for (const char b : bytes) c = kTable[(c ^ static_cast<uint8_t>(b)) & 0xff] ^ (c >> 8);
  return ~c;
}

uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("sse4.2");
  if (fast) return with_instruction(bytes);
#endif
  return crc32c_portable(bytes);
}
