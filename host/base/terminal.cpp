#include "base/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace lhost {
namespace {

std::mutex mutex;  // painters come from the loop and from the thread that writes logs

bool failed = false;  // standard output, other than by a reader who left

void put(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      failed |= fd == STDOUT_FILENO && errno != EPIPE;  // a closed pipe: nobody reads, nothing to tell
      return;
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
}
bool wants_colour(int fd, TerminalOptions::Colour c) {
  if (c != TerminalOptions::Colour::automatic) return c == TerminalOptions::Colour::always;
  const char* no = std::getenv("NO_COLOR");  // https://no-color.org: set and not empty
  const char* term = std::getenv("TERM");
  return isatty(fd) && !(no && *no) && term && std::strcmp(term, "dumb") != 0;
}

}  // namespace

Terminal& Terminal::get() {
  static Terminal t;
  return t;
}

void Terminal::configure(const TerminalOptions& o) {
  const char* term = std::getenv("TERM");
  options_ = o;
  enabled_ = !o.quiet;
  tty_ = isatty(STDOUT_FILENO) && term && std::strcmp(term, "dumb") != 0;
  colour_ = wants_colour(STDOUT_FILENO, o.colour);
  error_colour_ = wants_colour(STDERR_FILENO, o.colour);
}

bool Terminal::written() const { return !failed; }

int Terminal::width() const {
  winsize w{};
  if (tty_ && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
  return 80;
}

void Terminal::clear_status() {
  if (status_shown_) put(STDOUT_FILENO, "\r\x1b[K");
  status_shown_ = false;
}

void Terminal::status_line(std::string_view text) {
  if (!enabled_ || !tty_) return;
  const std::lock_guard lock(mutex);
  if (text.empty()) return clear_status();
  put(STDOUT_FILENO, "\r" + std::string(text) + "\x1b[K");
  status_shown_ = true;
}

void Terminal::print(std::string_view text) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex);
  clear_status();
  put(STDOUT_FILENO, std::string(text) + "\n");
}

void Terminal::error(std::string_view text) {
  const std::lock_guard lock(mutex);
  clear_status();
  put(STDERR_FILENO, std::string(text) + "\n");
}

namespace {
std::string styled(const char* code, std::string_view text, bool colour) {
  return colour ? "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m" : std::string(text);
}
}  // namespace
std::string bold(std::string_view t, bool colour) { return styled("1", t, colour); }
std::string dim(std::string_view t, bool colour) { return styled("2", t, colour); }
std::string red(std::string_view t, bool colour) { return styled("1;31", t, colour); }

}  // namespace lhost
