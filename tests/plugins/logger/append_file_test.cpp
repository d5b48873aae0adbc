#include "common/append_file.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <lhost/sdk/plugin.hpp>
#include <limits>

#include "plugins/logger/logger_run.hpp"

namespace {

using lhost_test::FullDisk;
using lhost_test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const lhost::Error& e) {
    return e.what();
  }
  return "(no error)";
}

TEST(AppendFile, SaysThatTheDiskIsFull) {
  AppendFile file;
  file.reopen("/dev/full", 0);
  file.append("a record");
  EXPECT_EQ(error_of([&] { file.flush(); }), "/dev/full: cannot be written: No space left on device");
  EXPECT_EQ(error_of([&] { file.close(); }), "/dev/full: cannot be written: No space left on device");
  EXPECT_FALSE(file.is_open());
  EXPECT_EQ(error_of([&] { file.close(); }), "(no error)");
}

TEST(AppendFile, LosesNothingWhenTheDiskHasSpaceAgain) {
  TempDir dir;
  AppendFile file;
  file.create(dir / "f");
  {
    FullDisk full(10);
    file.append("0123456789abcdef");
    EXPECT_THAT(error_of([&] { file.flush(); }), AllOf(HasSubstr(dir / "f"), HasSubstr("File too large")));
    EXPECT_EQ(file.position(), 16);
  }
  file.append("ghi");
  file.close();
  EXPECT_EQ(dir.read("f"), "0123456789abcdefghi");
}

TEST(AppendFile, WritesWhenTheBufferIsFull) {
  TempDir dir;
  AppendFile file;
  file.create(dir / "a/b/f");
  file.append("x");
  EXPECT_EQ(dir.read("a/b/f"), "");
  file.append(std::string(1 << 16, 'y'));
  EXPECT_EQ(dir.read("a/b/f").size(), 65537u);
  EXPECT_EQ(file.position(), 65537);
}

TEST(AppendFile, CutsBackAndGoesOn) {
  TempDir dir;
  dir.write("f", "0123456789");
  AppendFile file;
  file.reopen(dir / "f", 4);
  file.append("X");
  EXPECT_EQ(file.position(), 5);
  file.reopen(dir / "f", 1000);
  EXPECT_EQ(file.position(), 5);
  file.close();
  EXPECT_EQ(dir.read("f"), "0123X");
}

TEST(AppendFile, NeverOverwritesAnotherFile) {
  TempDir dir;
  dir.write("f", "kept");
  AppendFile file;
  EXPECT_THAT(error_of([&] { file.create(dir / "f"); }),
              AllOf(HasSubstr(dir / "f"), HasSubstr("exists already")));
  EXPECT_EQ(dir.read("f"), "kept");
  EXPECT_THAT(error_of([&] { file.create(dir / "f/g"); }), HasSubstr(dir / "f"));
  EXPECT_THAT(error_of([&] { file.reopen(dir.path(), 0); }),
              AllOf(HasSubstr(dir.path()), HasSubstr("Is a directory")));
}

TEST(AppendFile, NamesStayBelowTheRun) {
  EXPECT_EQ(checked_name("file", "a/b..c.csv"), "a/b..c.csv");
  for (const std::string bad : {"", "/etc/passwd", "..", "../x", "a/../../x", "a/.."})
    EXPECT_THAT(error_of([&] { checked_name("file", bad); }), HasSubstr("file: found \"" + bad + "\""))
        << bad;
}

TEST(AppendFile, NumbersReadBackExactly) {
  const auto text = [](double v) {
    std::string s;
    append_number(s, v);
    return s;
  };
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(-2), "-2");
  EXPECT_EQ(text(1e-7), "1e-07");
  EXPECT_EQ(text(double{0.1f}), "0.10000000149011612");
  EXPECT_EQ(text(std::nan("")), "nan");
  EXPECT_EQ(text(-std::nan("")), "nan");
  EXPECT_EQ(text(INFINITY), "inf");
  EXPECT_EQ(text(-INFINITY), "-inf");
  for (const double v : {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(), M_PI})
    EXPECT_EQ(std::stod(text(v * 0.5)), v * 0.5);
}

TEST(AppendFile, SecondsHaveMicroseconds) {
  std::string s;
  append_seconds(s, 1700000000000001999);
  EXPECT_EQ(s, "1700000000.000001");
}

}  // namespace
