#include "train/log_writer.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <chrono>
#include <future>

namespace lhost {
namespace {
constexpr size_t kQueueRecords = 65536;
constexpr double kCloseSeconds = 10;
constexpr auto kFlushEvery = std::chrono::seconds(20);  // who watches a run sees it move
}  // namespace

LogWriter::LogWriter(const std::vector<Logger>& loggers, const std::vector<bool>& stop_on_error) {
  for (size_t i = 0; i < loggers.size(); ++i)
    sinks_.push_back({&loggers[i], i < stop_on_error.size() && stop_on_error[i]});
  if (!sinks_.empty()) thread_ = std::thread([this] { run(); });
}

LogWriter::~LogWriter() {
  if (thread_.joinable()) close(LH_CANCELLED, "");
}

bool LogWriter::call(Sink& s, const char* where, const std::function<lh_status(const Logger&)>& f) {
  lh_status status = nullptr;
  try {
    status = f(*s.logger);
  } catch (const ComponentFailure& e) {
    status = make_status(e.code, e.component, e.where, e.what());
  } catch (...) {
    status = make_status(LH_PLUGIN_FAULT, "logger:" + s.logger->identity().name, where,
                         "an exception left the plugin; this is a fault of the plugin");
  }
  count(s, status);
  return !status;
}

void LogWriter::count(Sink& s, lh_status status) {
  if (!status) {
    s.failures = 0;
    return;
  }
  PluginError e = take(status);
  log(Level::warning, e.component + ": " + e.where + ": " + e.message);
  if (s.stop_on_error) {
    const std::lock_guard lock(mutex_);
    if (!fatal_) fatal_ = std::move(e);
    s.open = false;
  } else if (++s.failures == 3) {
    log(Level::warning,
        e.component + " failed three times in a row and is closed; the run goes on without it");
    s.open = false;
    if ((*s.logger)->close)  // what it buffered is worth a try; what this says no longer matters
      call(s, "close", [&](const Logger& l) { return l->close(l.self(), e.code, str(e.message)); });
  }
}

void LogWriter::open(const lh_run_info& info, const std::vector<lh_pair>& params, const LoadState& load) {
  if (sinks_.empty()) return;
  std::promise<void> done;
  enqueue([&] {
    for (size_t i = 0; i < sinks_.size(); ++i) {
      Sink& s = sinks_[i];
      s.open = call(s, "open", [&](const Logger& l) {
        load(i);
        return l->open(l.self(), &info);
      });
      if (s.open && (*s.logger)->params)
        call(s, "params", [&](const Logger& l) { return l->params(l.self(), params.data(), params.size()); });
    }
    done.set_value();
  });
  done.get_future().wait();
  check();
}

void LogWriter::post(LogRecord r) {
  if (sinks_.empty() || r.scalars.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (records_.size() >= kQueueRecords) {
      records_.pop_front();
      ++taken_;
      ++dropped_;
    }
    records_.push_back(std::move(r));
    ++posted_;
  }
  wake_.notify_one();
}

void LogWriter::check() {
  const std::lock_guard lock(mutex_);
  if (fatal_) throw ComponentFailure(*std::exchange(fatal_, std::nullopt));
}

void LogWriter::enqueue(std::function<void()> f) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.emplace_back(posted_, std::move(f));
  }
  wake_.notify_one();
}

bool LogWriter::wait_for(std::function<void()> f, double seconds) {
  // shared: a logger that hangs may answer after nobody waits any more
  auto done = std::make_shared<std::promise<void>>();
  auto future = done->get_future();
  enqueue([f = std::move(f), done] {
    f();
    done->set_value();
  });
  return future.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
}

bool LogWriter::visit(const std::function<lh_status(size_t)>& f, double seconds) {
  if (sinks_.empty()) return true;
  return wait_for(
      [this, f] {
        for (size_t i = 0; i < sinks_.size(); ++i)
          if (sinks_[i].open) call(sinks_[i], "visit", [&](const Logger&) { return f(i); });
      },
      seconds);
}

void LogWriter::settle() {
  const bool matters =
      std::any_of(sinks_.begin(), sinks_.end(), [](const Sink& s) { return s.stop_on_error; });
  if (matters) wait_for([] {}, kCloseSeconds);
  check();
}

void LogWriter::write(const LogRecord& r) {
  std::vector<lh_scalar> scalars;
  for (const Scalar& s : r.scalars) scalars.push_back({str(s.name), s.value});
  const lh_record record = {sizeof(lh_record), r.stage,        r.global_step,  r.epoch,
                            r.samples,         r.unix_time_ns, scalars.data(), scalars.size()};
  for (Sink& s : sinks_)
    if (s.open) call(s, "record", [&](const Logger& l) { return l->record(l.self(), &record); });
}

void LogWriter::flush() {
  for (Sink& s : sinks_)
    if (s.open && (*s.logger)->flush) call(s, "flush", [](const Logger& l) { return l->flush(l.self()); });
}

void LogWriter::run() {
  std::unique_lock lock(mutex_);
  auto flush_at = std::chrono::steady_clock::now() + kFlushEvery;
  for (;;) {
    wake_.wait_until(lock, flush_at, [this] { return stopping_ || !records_.empty() || !tasks_.empty(); });
    if (const auto now = std::chrono::steady_clock::now(); now >= flush_at) {
      flush_at = now + kFlushEvery;
      lock.unlock();
      flush();
      lock.lock();
    } else if (!tasks_.empty() && tasks_.front().first <= taken_) {
      auto task = std::move(tasks_.front().second);
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    } else if (!records_.empty()) {
      const LogRecord r = std::move(records_.front());
      records_.pop_front();
      ++taken_;
      lock.unlock();
      write(r);
      lock.lock();
    } else if (stopping_) {
      return;
    }
  }
}

void LogWriter::close(lh_code outcome, const std::string& message) {
  if (!thread_.joinable()) return;
  const bool closed = wait_for(
      [this, outcome, message] {
        flush();
        for (Sink& s : sinks_) {
          if (!s.open) continue;
          if ((*s.logger)->close)
            call(s, "close", [&](const Logger& l) { return l->close(l.self(), outcome, str(message)); });
          s.open = false;
        }
      },
      kCloseSeconds);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (dropped_)
      log(Level::warning, std::to_string(dropped_) + " log records were dropped: a logger was too slow");
  }
  wake_.notify_one();
  if (closed) return thread_.join();
  log(Level::warning, "a logger did not come back within 10 s; its last records may be missing");
  thread_.detach();
  abandoned_ = true;
}

}  // namespace lhost
