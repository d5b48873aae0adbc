// The progress line as text: golden screens at three widths.
#include "../../../plugins/callback/progress/line.hpp"

#include <gtest/gtest.h>

using progress::Line;
using progress::Style;

namespace {

// 13 of 21 batches at 5.9 thousand a second
Line digits() {
  return {"epoch 4/20", 13,          21,
          13,           13 / 5900.0, {{"loss", 0.2134}, {"val_loss", 0.2313}, {"val_acc", 0.934}}};
}

// columns: every code point counts one, escape sequences none
size_t columns(const std::string& s) {
  size_t n = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '\x1b') {
      while (s[i] != 'm') ++i;
      continue;
    }
    n += (static_cast<unsigned char>(s[i]) & 0xc0) != 0x80;
  }
  return n;
}

TEST(ProgressLine, At120Columns) {
  EXPECT_EQ(
      progress::render(digits(), {120, true, false}),
      "epoch 4/20 ━━━━━━━━━━━━━━━━━━╸───────────  62% 13/21  5.9k it/s  0:00:00  loss 0.213  val_loss 0.231"
      "  val_acc 0.934");
}
TEST(ProgressLine, At80ColumnsMetricsAreCutFromTheEnd) {
  EXPECT_EQ(progress::render(digits(), {80, true, false}),
            "epoch 4/20 ━━━━━━━━━━━━────────  62% 13/21  5.9k it/s  0:00:00  loss 0.213");
}
TEST(ProgressLine, At40ColumnsBarAndCountRemain) {
  EXPECT_EQ(progress::render(digits(), {40, true, false}), "epoch 4/20 ━━━━━━────  62% 13/21");
}
TEST(ProgressLine, WithoutUtf8TheBarIsAscii) {
  EXPECT_EQ(progress::render(digits(), {80, false, false}),
            "epoch 4/20 ############--------  62% 13/21  5.9k it/s  0:00:00  loss 0.213");
}
TEST(ProgressLine, ColourMarksThePartDone) {
  EXPECT_EQ(progress::render(digits(), {40, true, true}),
            "epoch 4/20 \x1b[36m━━━━━━\x1b[0m\x1b[2m━━━━\x1b[0m  62% 13/21");
}
TEST(ProgressLine, NeverFillsTheWidth) {
  for (bool colour : {false, true})
    for (int32_t width = 1; width < 200; ++width)
      for (int64_t done : {0, 1, 13, 21})
        for (int64_t total : {0, 21, 1000000}) {
          Line line = digits();
          line.done = line.counted = done;
          line.total = total;
          line.metrics.push_back({"précision", 0.5});
          const std::string text = progress::render(line, {width, true, colour});
          EXPECT_LT(columns(text), static_cast<size_t>(std::max(width, 2))) << width << ": " << text;
        }
}
TEST(ProgressLine, StartAndEndAreEmptyAndFull) {
  EXPECT_EQ(progress::bar(0, 7, 4, {80, true, false}), "────");
  EXPECT_EQ(progress::bar(7, 7, 4, {80, true, false}), "━━━━");
  EXPECT_EQ(progress::bar(1, 8, 4, {80, true, false}), "╸───");
  EXPECT_EQ(progress::bar(9, 7, 4, {80, true, false}), "━━━━") << "more than announced";
}
TEST(ProgressLine, AnUnknownLengthHasNoBar) {
  Line line = digits();
  line.total = -1;
  EXPECT_EQ(progress::render(line, {80, true, false}),
            "epoch 4/20  13 batches  5.9k it/s  loss 0.213  val_loss 0.231  val_acc 0.934");
}
TEST(ProgressLine, CountsStandStill) {
  Line line = {"test", 7, 1000, 0, 0, {}};
  EXPECT_EQ(progress::render(line, {40, false, false}), "test ----------   1%    7/1000");
}
TEST(ProgressLine, TimeToGoIsAtTheSpeedSoFar) {
  Line line = {"epoch 1", 100, 7400, 50, 50, {}};  // resumed at 50; one batch a second; 7300 to go
  EXPECT_NE(progress::render(line, {80, false, false}).find("  1.00 it/s  2:01:40"), std::string::npos);
}

TEST(ProgressLine, RatesHaveFourCharacters) {
  const std::pair<double, const char*> cases[] = {
      {0.123, "0.12"}, {5.934, "5.93"}, {59.34, "59.3"}, {593.4, " 593"},  {999.4, " 999"}, {999.6, "1.0k"},
      {5934, "5.9k"},  {9949, "9.9k"},  {9960, " 10k"},  {160000, "160k"}, {2.5e6, "2.5M"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(progress::rate(value), text);
}
TEST(ProgressLine, NumbersHaveFiveOrSixCharacters) {
  const std::pair<double, const char*> cases[] = {
      {0, "0.000"},        {0.2134, "0.213"},   {2.3026, "2.303"}, {-0.5, "-0.500"},
      {41.5, "41.50"},     {812.44, "812.4"},   {9123, "9123"},    {0.0213, "0.0213"},
      {1.2e-5, "1.2e-05"}, {123456, "1.2e+05"}, {NAN, "nan"},      {INFINITY, "inf"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(progress::number(value), text);
  for (double nan : {std::nan(""), -std::nan("")}) EXPECT_EQ(progress::number(nan), "nan");
}

TEST(ProgressLine, PlainLineOfAnEpoch) {
  Line line = digits();
  line.seconds = 0.0123;
  EXPECT_EQ(progress::plain(line, 21),
            "epoch 4/20  21 steps  0.01 s  loss  0.213  val_loss  0.231  val_acc  0.934");
  line.seconds = 3725;
  line.metrics.clear();
  EXPECT_EQ(progress::plain(line, 1), "epoch 4/20  1 steps  3725 s");
}

}  // namespace
