#include "base/log.hpp"

#include "base/terminal.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <atomic>
#include <memory>
#include <mutex>

namespace lhost {
namespace {

// Through Terminal, so that a message never lands in the middle of a status line.
class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& m) override {
    Terminal& t = Terminal::get();
    const std::string text(m.payload.data(), m.payload.size());
    if (m.level >= spdlog::level::err) t.error(red("error:", t.error_colour()) + " " + text);
    else if (m.level == spdlog::level::warn) t.error(bold("warning:", t.error_colour()) + " " + text);
    else t.error(dim(text, t.error_colour()));
  }
  void flush_() override {}
};

struct Log {
  std::shared_ptr<TerminalSink> terminal = std::make_shared<TerminalSink>();
  std::shared_ptr<spdlog::sinks::basic_file_sink_mt> file;
  std::mutex mutex;
  Log() { terminal->set_level(spdlog::level::warn); }
};
Log& the_log() {
  static Log* l = new Log;  // never destroyed: plugins may log while the process ends
  return *l;
}
spdlog::level::level_enum level_of(Level l) {
  switch (l) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

}  // namespace

void log(Level level, std::string_view message) {
  Log& l = the_log();
  const std::lock_guard lock(l.mutex);
  const spdlog::details::log_msg m("lhost", level_of(level),
                                   spdlog::string_view_t(message.data(), message.size()));
  if (l.terminal->should_log(m.level)) l.terminal->log(m);
  try {
    if (l.file) l.file->log(m), l.file->flush();
  } catch (const std::exception&) {
    l.file.reset();  // a full disk must not end a run because of its log
  }
}

namespace {
std::atomic<int> verbosity{0};
}
int log_verbosity() { return verbosity; }

void log_verbosity(int v) {
  verbosity = v;
  the_log().terminal->set_level(v >= 2   ? spdlog::level::debug
                                : v == 1 ? spdlog::level::info
                                         : spdlog::level::warn);
}

void log_to_file(const std::string& path) {
  Log& l = the_log();
  const std::lock_guard lock(l.mutex);
  l.file.reset();
  if (path.empty()) return;
  try {
    l.file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    l.file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  } catch (const std::exception&) {
    l.file.reset();  // the first record or result.json meets the same disk and reports it
  }
}

}  // namespace lhost
