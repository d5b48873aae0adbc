#include "base/log.hpp"

#include "base/terminal.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace lhost {
namespace {

using lhost_test::TempDir;
using testing::HasSubstr;
using testing::Not;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

class Log : public testing::Test {
 protected:
  Log() { Terminal::get().configure({TerminalOptions::Colour::never, false}); }
  ~Log() override {
    log_verbosity(0);
    log_to_file("");
  }
  static void all_levels() {
    log(Level::debug, "a debug");
    log(Level::info, "an info");
    log(Level::warning, "a warning");
    log(Level::error, "an error");
  }
  static std::string shown(int verbosity) {
    log_verbosity(verbosity);
    CaptureStderr();
    all_levels();
    return GetCapturedStderr();
  }
  TempDir dir;
};

TEST_F(Log, ShowsByVerbosity) {
  EXPECT_EQ(shown(0), "warning: a warning\nerror: an error\n");
  EXPECT_EQ(shown(1), "an info\nwarning: a warning\nerror: an error\n");
  EXPECT_EQ(shown(2), "a debug\nan info\nwarning: a warning\nerror: an error\n");
}

TEST_F(Log, GoesToStandardErrorOnly) {
  CaptureStdout();
  shown(2);
  EXPECT_EQ(GetCapturedStdout(), "");
}

TEST_F(Log, TheFileHoldsEverythingWhateverIsShown) {
  dir.write("host.log", "of an earlier life\n");
  log_to_file(dir / "host.log");
  shown(0);
  const std::string text = dir.read("host.log");
  EXPECT_EQ(text.rfind("of an earlier life\n", 0), 0u);
  for (const char* message : {"a debug\n", "an info\n", "a warning\n", "an error\n"})
    EXPECT_THAT(text, HasSubstr(message));
}

TEST_F(Log, AnEmptyPathClosesTheFile) {
  log_to_file(dir / "host.log");
  log_to_file("");
  shown(0);
  EXPECT_EQ(dir.read("host.log"), "");
}

TEST_F(Log, AFileThatCannotBeWrittenStopsNothing) {
  dir.write("file", "");
  for (const std::string& path : {dir / "file/host.log", std::string("/dev/full")}) {
    log_to_file(path);
    EXPECT_EQ(shown(0), "warning: a warning\nerror: an error\n") << path;
  }
}

TEST_F(Log, LinesOfManyThreadsStayWhole) {
  log_to_file(dir / "host.log");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) log(Level::info, "<" + std::string(500, static_cast<char>('a' + t)) + ">");
    });
  for (std::thread& t : threads) t.join();
  const std::string text = dir.read("host.log");
  for (int t = 0; t < 4; ++t) {
    const std::string line = "<" + std::string(500, static_cast<char>('a' + t)) + ">\n";
    size_t n = 0;
    for (size_t at = 0; (at = text.find(line, at)) != text.npos; ++at) ++n;
    EXPECT_EQ(n, 50u);
  }
}

}  // namespace
}  // namespace lhost
