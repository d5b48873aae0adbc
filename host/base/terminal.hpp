// host/base/terminal.hpp - the only way to the screen: one status line that is painted over, and lines that stay.
// stdout carries what a run says, stderr warnings and errors. [any] except configure: before threads start.
#pragma once
#include <atomic>
#include <string>
#include <string_view>

namespace lhost {

struct TerminalOptions {
  enum class Colour { automatic, always, never } colour = Colour::automatic;
  bool quiet = false;
};

class Terminal {
 public:
  static Terminal& get();
  void configure(const TerminalOptions&);
  const TerminalOptions& options() const { return options_; }
  void mute() { enabled_ = false; }  // of a rank that is not the first: errors and warnings only
  bool enabled() const { return enabled_; }
  bool is_tty() const { return tty_; }
  bool colour() const { return colour_; }              // on stdout
  bool error_colour() const { return error_colour_; }  // on stderr
  int width() const;
  void status_line(std::string_view text);
  void print(std::string_view text);  // to stdout, unless quiet
  void error(std::string_view text);  // to stderr, always
  bool written() const;               // all of what went to stdout, or its reader left

 private:
  void clear_status();
  TerminalOptions options_;
  std::atomic<bool> enabled_{true};  // a rank may be muted while others print
  bool tty_ = false, colour_ = false, error_colour_ = false, status_shown_ = false;
};

std::string bold(std::string_view, bool colour);
std::string dim(std::string_view, bool colour);
std::string red(std::string_view, bool colour);

}  // namespace lhost
