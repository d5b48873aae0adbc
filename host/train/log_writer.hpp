// host/train/log_writer.hpp - the one background thread that talks to loggers.
//
// post() copies a record into a bounded queue and returns; a slow logger therefore never slows a step. When the queue is
// full the oldest record is dropped and counted. A logger that fails three times in a row is closed (on_error "warn"),
// or ends the run at the next record (on_error "stop").
#pragma once
#include "kinds/component.hpp"
#include "train/metrics.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace lhost {

struct LogRecord {
  int32_t stage;
  int64_t global_step, epoch, samples, unix_time_ns;
  std::vector<Scalar> scalars;
};

class LogWriter {
 public:
  LogWriter(const std::vector<Logger>&, const std::vector<bool>& stop_on_error);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;

  using LoadState = std::function<void(size_t logger)>;  // called before a logger is opened
  void open(const lh_run_info&, const std::vector<lh_pair>& params, const LoadState&);
  void post(LogRecord);
  // Throws what a logger with on_error = "stop" reported. Called where records are made.
  void check();
  // f(i) on the background thread for every open logger, after all records before it. false: not done in `seconds`.
  bool visit(const std::function<lh_status(size_t)>& f, double seconds);
  // Waits for the loggers whose failure is the run's, then check().
  void settle();
  void close(lh_code outcome, const std::string& message);  // flushes, closes, ends the thread
  bool empty() const { return sinks_.empty(); }
  // close() gave up on a logger that hangs: its thread still uses this object and the loggers, which must stay.
  bool abandoned() const { return abandoned_; }

 private:
  struct Sink {
    const Logger* logger;
    bool stop_on_error;
    bool open = false;
    int failures = 0;
  };
  void run();
  void enqueue(std::function<void()>);
  bool wait_for(std::function<void()>, double seconds);
  void write(const LogRecord&);
  void flush();
  // One call of a logger: what it returns or throws is counted. false: it failed.
  bool call(Sink&, const char* where, const std::function<lh_status(const Logger&)>&);
  void count(Sink&, lh_status);

  std::vector<Sink> sinks_;  // used by the background thread only, once it runs
  std::mutex mutex_;         // guards all below
  std::condition_variable wake_;
  std::deque<LogRecord> records_;
  std::deque<std::pair<uint64_t, std::function<void()>>> tasks_;  // each after `first` records
  uint64_t posted_ = 0, taken_ = 0, dropped_ = 0;
  std::optional<PluginError> fatal_;
  bool stopping_ = false, abandoned_ = false;
  std::thread thread_;
};

}  // namespace lhost
