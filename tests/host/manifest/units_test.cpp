// tests/host/manifest/units_test.cpp - exact numbers, by hand.
#include "manifest/units.hpp"

#include <gtest/gtest.h>

namespace lhost {
namespace {

TEST(Units, SizesAreExactBytes) {
  EXPECT_EQ(parse_size("25MiB"), 25 * 1024 * 1024);
  EXPECT_EQ(parse_size("25MB"), 25000000);
  EXPECT_EQ(parse_size("1.5GiB"), 1610612736);
  EXPECT_EQ(parse_size("512B"), 512);
  EXPECT_EQ(parse_size("3kB"), 3000);
  EXPECT_EQ(parse_size("3KB"), 3000);
  EXPECT_EQ(parse_size("3KiB"), 3072);
  EXPECT_EQ(parse_size("2GB"), 2000000000);
  EXPECT_EQ(parse_size("2TB"), 2000000000000);
  EXPECT_EQ(parse_size("1TiB"), 1099511627776);
  EXPECT_EQ(parse_size("1 MiB"), 1048576);
  EXPECT_EQ(parse_size("0B"), 0);
  EXPECT_EQ(parse_size("0.1kB"), 100);
  EXPECT_EQ(parse_size("1.1KiB"), 1126);                        // 1126.4
  EXPECT_EQ(parse_size("0.0005kB"), 1);                         // half a byte
  EXPECT_EQ(parse_size("9223372036854775807B"), std::nullopt);  // more digits than are exact everywhere
  EXPECT_EQ(parse_size("8388607TiB"), 9223370937343148032);
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const char* s : {"",           "25",
                        "MiB",        "-1MiB",
                        "+1MiB",      "25mib",
                        "25M",        "25MiBs",
                        "1.MiB",      ".5MiB",
                        "1,5MiB",     "1  MiB",
                        "8388608TiB", "999999999999999999TiB",
                        "1e400MB",    "1e99999999999MB",
                        "nanMB",      "infMB",
                        "0x10MB",     " 1MB"}) {
    EXPECT_EQ(parse_size(s), std::nullopt) << s;
  }
}

TEST(Units, DurationsAreExactNanoseconds) {
  constexpr int64_t second = 1000000000;
  EXPECT_EQ(parse_duration("90s"), 90 * second);
  EXPECT_EQ(parse_duration("10m"), 600 * second);
  EXPECT_EQ(parse_duration("1h30m"), 5400 * second);
  EXPECT_EQ(parse_duration("1d2h3m4s5ms6us7ns"), 93784 * second + 5006007);
  EXPECT_EQ(parse_duration("250ms"), 250000000);
  EXPECT_EQ(parse_duration("0.1s"), 100000000);
  EXPECT_EQ(parse_duration("1.5h"), 5400 * second);
  EXPECT_EQ(parse_duration("7ns"), 7);
  EXPECT_EQ(parse_duration("0s"), 0);
  EXPECT_EQ(parse_duration("00:30:00"), 1800 * second);
  EXPECT_EQ(parse_duration("100:00:01"), 360001 * second);
  EXPECT_EQ(parse_duration("01:02:03:04"), 93784 * second);
  EXPECT_EQ(parse_duration("106751d"), int64_t{106751} * 86400 * second);
}

TEST(Units, DurationsThatAnOptionsDefaultWritesReadBack) {
  EXPECT_EQ(parse_duration("1e-09s"), 1);
  EXPECT_EQ(parse_duration("90.0s"), 90000000000);
  EXPECT_EQ(parse_duration("90.00000000000001s"), 90000000000);
  EXPECT_EQ(parse_duration("1.2345678900000001e-07s"), 123);
  EXPECT_EQ(parse_duration("1e6s"), 1000000000000000);
}

TEST(Units, RefusesWhatIsNoDuration) {
  for (const char* s :
       {"",        "90",      "s",          "-1s", "90 sec",    "1m1h",  "1s1s",    "1h 30m",       "30:00",
        "1:60:00", "1:00:60", "1:24:00:00", "::",  "1:2:3:4:5", "1:2:x", "106752d", "999999:0:0:0", "1.s",
        "5M",      "1h30"}) {
    EXPECT_EQ(parse_duration(s), std::nullopt) << s;
  }
}

TEST(Units, SharesAreHundredths) {
  EXPECT_EQ(parse_share("5%"), 0.05);
  EXPECT_EQ(parse_share("12.5%"), 0.125);
  EXPECT_EQ(parse_share("100%"), 1.0);
  EXPECT_EQ(parse_share("0 %"), 0.0);
}

TEST(Units, RefusesWhatIsNoShare) {
  for (const char* s :
       {"", "%", "5", "-5%", "101%", "100.1%", "nan%", "inf%", "5%%", "5  %", "0x5%", "1e9%", ".5%"}) {
    EXPECT_EQ(parse_share(s), std::nullopt) << s;
  }
}

}  // namespace
}  // namespace lhost
