#include "base/text.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace lhost {
namespace {

using testing::ElementsAre;

TEST(Grouped, PutsASpaceBetweenThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1 000");
  EXPECT_EQ(grouped(17226), "17 226");
  EXPECT_EQ(grouped(1234567890123), "1 234 567 890 123");
  EXPECT_EQ(grouped(-1), "-1");
  EXPECT_EQ(grouped(-100), "-100");
  EXPECT_EQ(grouped(-1000), "-1 000");
}

TEST(HumanBytes, CountsInPowersOf1024) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(68 * 1024), "68 KiB");
  EXPECT_EQ(human_bytes(1.5 * 1024 * 1024), "1.5 MiB");
  EXPECT_EQ(human_bytes(std::ldexp(3, 30)), "3.0 GiB");
  EXPECT_EQ(human_bytes(std::ldexp(5000, 40)), "5000 TiB");
}

TEST(HumanRate, CountsInThousands) {
  EXPECT_EQ(human_rate(0), "0.0");
  EXPECT_EQ(human_rate(0.25), "0.2");
  EXPECT_EQ(human_rate(12.3), "12");
  EXPECT_EQ(human_rate(999), "999");
  EXPECT_EQ(human_rate(5900), "5.9k");
  EXPECT_EQ(human_rate(160e3), "160k");
  EXPECT_EQ(human_rate(2.5e6), "2.5M");
  EXPECT_EQ(human_rate(7e12), "7000G");
}

TEST(HumanSeconds, ChangesTheUnitAtAMinuteAndAnHour) {
  EXPECT_EQ(human_seconds(0), "0.00 s");
  EXPECT_EQ(human_seconds(0.16), "0.16 s");
  EXPECT_EQ(human_seconds(12.34), "12.3 s");
  EXPECT_EQ(human_seconds(60), "1 min 00 s");
  EXPECT_EQ(human_seconds(125.9), "2 min 05 s");
  EXPECT_EQ(human_seconds(3599), "59 min 59 s");
  EXPECT_EQ(human_seconds(3600), "1 h 00 min");
  EXPECT_EQ(human_seconds(3720), "1 h 02 min");
  EXPECT_EQ(human_seconds(100 * 3600.0), "100 h 00 min");
}

TEST(Significant, HasFourDigits) {
  EXPECT_EQ(significant(0.21324), "0.2132");
  EXPECT_EQ(significant(1.3e-05), "1.3e-05");
  EXPECT_EQ(significant(3), "3");
  EXPECT_EQ(significant(std::nan("")), "nan");
}

TEST(Exact, ReadsBackAsTheSameNumber) {
  using Limits = std::numeric_limits<double>;
  for (double v : {0.1, 1.0 / 3, -2.5, 1e300, 123456789.125, Limits::max(), Limits::min(),
                   Limits::denorm_min(), Limits::epsilon(), 0.0})
    EXPECT_EQ(std::strtod(exact(v).c_str(), nullptr), v) << exact(v);
  EXPECT_TRUE(std::signbit(std::strtod(exact(-0.0).c_str(), nullptr)));
}

TEST(Exact, IsTheShortestText) {
  EXPECT_EQ(exact(0.1), "0.1");
  EXPECT_EQ(exact(3), "3");
  EXPECT_EQ(exact(-0.25), "-0.25");
}

TEST(Exact, NamesWhatIsNoNumber) {
  EXPECT_EQ(exact(std::nan("")), "nan");
  EXPECT_EQ(exact(-std::nan("")), "nan");
  EXPECT_EQ(exact(HUGE_VAL), "inf");
  EXPECT_EQ(exact(-HUGE_VAL), "-inf");
}

TEST(Join, PutsTheSeparatorBetweenOnly) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("", ':'), ElementsAre(""));
  EXPECT_THAT(split("a:b", ':'), ElementsAre("a", "b"));
  EXPECT_THAT(split(":a::", ':'), ElementsAre("", "a", "", ""));
}

TEST(UtcTime, IsTheCalendarsDate) {
  EXPECT_EQ(utc_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_time(951782400'999999999),
            "2000-02-29T00:00:00Z");  // 30 years with 7 leap days, then 59 days
  EXPECT_EQ(utc_time(int64_t{20787} * 86400 * 1000000000 + int64_t{20 * 3600 + 47 * 60 + 9} * 1000000000),
            "2026-11-30T20:47:09Z");  // 56 years with 14 leap days, then 333 days
}

}  // namespace
}  // namespace lhost
