#include "tensorboard/crc32c.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

// RFC 3720, B.4, and the check value of the catalogue of parametrised CRC algorithms
TEST(Crc32c, HasTheKnownValues) {
  std::string ascending;
  for (char i = 0; i < 32; ++i) ascending += i;
  for (const auto function : {crc32c, crc32c_portable}) {
    EXPECT_EQ(function("123456789"), 0xe3069283u);
    EXPECT_EQ(function(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(function(std::string(32, '\xff')), 0x62a8ab43u);
    EXPECT_EQ(function(ascending), 0x46dd794eu);
    EXPECT_EQ(function(""), 0u);
  }
}

TEST(Crc32c, BothWaysAgreeForEveryLength) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(crc32c(bytes), crc32c_portable(bytes)) << i;
    bytes += static_cast<char>(i * 37 + 11);
  }
}

}  // namespace
