// tests/host/manifest/text_test.cpp
#include "manifest/text.hpp"

#include <gtest/gtest.h>

namespace lhost {
namespace {

TEST(Text, LinesEndAtLineBreaksOfEitherKind) {
  const Text text{"t", "", "a = 1\r\n\nb\nlast"};
  EXPECT_EQ(line_of(text, 1), "a = 1");
  EXPECT_EQ(line_of(text, 2), "");
  EXPECT_EQ(line_of(text, 3), "b");
  EXPECT_EQ(line_of(text, 4), "last");
  EXPECT_EQ(line_of(text, 5), "");
}

TEST(Text, ColumnsCountCodePoints) {
  const std::string_view line = "h\xC3\xA9\xE2\x82\xAC!";  // h, e acute, euro sign, !
  EXPECT_EQ(columns_in(line), 4);
  EXPECT_EQ(byte_of_column(line, 1), 0u);
  EXPECT_EQ(byte_of_column(line, 3), 3u);
  EXPECT_EQ(byte_of_column(line, 4), 6u);
  EXPECT_EQ(byte_of_column(line, 99), line.size());
}

TEST(Text, WrittenIsTheSourceText) {
  const Texts texts = {{"t", "", "x = \"\xC3\xA9\" # c\ny = 1_000"}};
  EXPECT_EQ(written(texts, {Origin::file, 0, 2, 5, 10}), "1_000");
  EXPECT_EQ(written(texts, {Origin::file, 0, 1, 5, 8}), "\"\xC3\xA9\"");
  EXPECT_EQ(written(texts, {Origin::file, 7, 1, 5, 8}), "");
  EXPECT_EQ(written(texts, {}), "");
}

TEST(Text, Utf8IsCheckedToTheLetter) {
  EXPECT_TRUE(valid_utf8("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  for (const char* s : {"\x80", "\xC0\xAF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82"}) {
    EXPECT_FALSE(valid_utf8(s));
  }
}

}  // namespace
}  // namespace lhost
