#include "base/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lhost {
namespace {

using Colour = TerminalOptions::Colour;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

// Standard output is a terminal of 100 columns while it lives.
class Screen {
 public:
  Screen() {
    int slave = -1;
    termios raw{};
    cfmakeraw(&raw);  // bytes arrive as they were written
    const winsize size = {25, 100, 0, 0};
    if (openpty(&master_, &slave, nullptr, &raw, &size) != 0) throw std::runtime_error("no terminal");
    old_ = dup(STDOUT_FILENO);
    dup2(slave, STDOUT_FILENO);
    close(slave);
  }
  ~Screen() {
    dup2(old_, STDOUT_FILENO);
    close(old_);
    close(master_);
  }
  std::string shown() const {
    std::string text;
    char bytes[4096];
    for (pollfd p = {master_, POLLIN, 0}; poll(&p, 1, 0) == 1;) {
      const ssize_t n = read(master_, bytes, sizeof bytes);
      if (n <= 0) break;
      text.append(bytes, static_cast<size_t>(n));
    }
    return text;
  }

 private:
  int master_ = -1, old_ = -1;
};

class OnScreen : public testing::Test {
 protected:
  OnScreen() { environment("xterm", std::nullopt); }
  ~OnScreen() override { Terminal::get().configure({}); }
  static void environment(const char* term, std::optional<const char*> no_color) {
    if (term) setenv("TERM", term, 1);
    else unsetenv("TERM");
    if (no_color) setenv("NO_COLOR", *no_color, 1);
    else unsetenv("NO_COLOR");
  }
  static bool coloured(Colour c = Colour::automatic) {
    Terminal::get().configure({c, false});
    return Terminal::get().colour();
  }
};
using Piped = OnScreen;

TEST_F(OnScreen, IsColouredUnlessTheEnvironmentSaysNo) {
  const Screen screen;
  EXPECT_TRUE(coloured());
  environment("xterm", "");
  EXPECT_TRUE(coloured()) << "NO_COLOR counts when it is not empty";
  environment("xterm", "1");
  EXPECT_FALSE(coloured());
  environment("dumb", std::nullopt);
  EXPECT_FALSE(coloured());
  EXPECT_FALSE(Terminal::get().is_tty()) << "no status line on a dumb terminal";
  environment(nullptr, std::nullopt);
  EXPECT_FALSE(coloured());
}

TEST_F(OnScreen, AnOptionWinsOverTheEnvironment) {
  const Screen screen;
  EXPECT_FALSE(coloured(Colour::never));
  environment("dumb", "1");
  EXPECT_TRUE(coloured(Colour::always));
}

TEST_F(OnScreen, HasTheScreensWidth) {
  const Screen screen;
  Terminal::get().configure({});
  EXPECT_TRUE(Terminal::get().is_tty());
  EXPECT_EQ(Terminal::get().width(), 100);
}

TEST_F(OnScreen, TheStatusLineIsPaintedOverAndGivesWayToLines) {
  const Screen screen;
  Terminal& t = Terminal::get();
  t.configure({});
  t.status_line("one");
  EXPECT_EQ(screen.shown(), "\rone\x1b[K");
  t.status_line("two");
  EXPECT_EQ(screen.shown(), "\rtwo\x1b[K");
  t.print("stays");
  EXPECT_EQ(screen.shown(), "\r\x1b[Kstays\n");
  t.print("plain");
  EXPECT_EQ(screen.shown(), "plain\n");
  t.status_line("three");
  t.status_line("");
  EXPECT_EQ(screen.shown(), "\rthree\x1b[K\r\x1b[K");
  t.status_line("");
  EXPECT_EQ(screen.shown(), "");
}

TEST_F(OnScreen, AnErrorClearsTheStatusLineFirst) {
  const Screen screen;
  Terminal& t = Terminal::get();
  t.configure({});
  t.status_line("busy");
  (void)screen.shown();
  CaptureStderr();
  t.error("bad");
  EXPECT_EQ(GetCapturedStderr(), "bad\n");
  EXPECT_EQ(screen.shown(), "\r\x1b[K");
}

TEST_F(OnScreen, QuietPaintsNothing) {
  const Screen screen;
  Terminal& t = Terminal::get();
  t.configure({Colour::automatic, true});
  t.status_line("busy");
  t.print("line");
  EXPECT_EQ(screen.shown(), "");
  EXPECT_FALSE(t.enabled());
}

TEST_F(Piped, HasLinesOnlyWithoutColour) {
  CaptureStdout();
  Terminal& t = Terminal::get();
  t.configure({});
  const bool tty = t.is_tty(), colour = t.colour();
  const int width = t.width();
  t.status_line("busy");
  t.print("line");
  t.print("two\nlines");
  EXPECT_EQ(GetCapturedStdout(), "line\ntwo\nlines\n");
  EXPECT_FALSE(tty);
  EXPECT_FALSE(colour);
  EXPECT_EQ(width, 80);
}

TEST_F(Piped, ErrorsAreShownEvenWhenQuiet) {
  Terminal::get().configure({Colour::automatic, true});
  CaptureStdout();
  CaptureStderr();
  Terminal::get().print("line");
  Terminal::get().error("bad");
  EXPECT_EQ(GetCapturedStderr(), "bad\n");
  EXPECT_EQ(GetCapturedStdout(), "");
}

TEST_F(Piped, LinesOfManyThreadsStayWhole) {
  Terminal::get().configure({});
  CaptureStdout();
  std::vector<std::thread> threads;
  for (char c : {'a', 'b', 'c'})
    threads.emplace_back([c] {
      for (int i = 0; i < 30; ++i)
        Terminal::get().print(std::string(6000, c));  // more than a pipe takes at once
    });
  for (std::thread& t : threads) t.join();
  const std::string text = GetCapturedStdout();
  ASSERT_EQ(text.size(), 90u * 6001);
  for (size_t i = 0; i < 90; ++i) {
    const std::string line = text.substr(i * 6001, 6001);
    EXPECT_EQ(line, std::string(6000, line[0]) + "\n");
  }
}

TEST(Styles, AddEscapesOnlyWhereColourIsWanted) {
  EXPECT_EQ(bold("x", true), "\x1b[1mx\x1b[0m");
  EXPECT_EQ(dim("x", true), "\x1b[2mx\x1b[0m");
  EXPECT_EQ(red("x", true), "\x1b[1;31mx\x1b[0m");
  for (const auto& style : {bold, dim, red}) EXPECT_EQ(style("x", false), "x");
}

}  // namespace
}  // namespace lhost
