// queue.hpp - the calls of one instance: started in the order of issue, finished by the worker thread, timed by the
// watchdog, ended by abort.
//
// A small call, or a send or receive, is posted by the thread that issues it, if nothing is queued before it, and finished
// by the thread that waits for it: no change of threads. All else is the worker's.
#pragma once
#include "exchange.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace lhost_gloo {

struct Operation {
  using Clock = std::chrono::steady_clock;
  lhost_collective::Call call;
  std::shared_ptr<const Group> group;
  int64_t number = 0;  // call n of this instance
  int64_t timeout_ns = 0;
  // guarded by the queue's mutex
  enum class State { queued, begun, running, done } state = State::queued;
  Clock::time_point deadline = Clock::time_point::max();
  bool late = false;
  lh_code code = LH_OK;
  std::string text;
  std::unique_ptr<Exchange> exchange;  // of whoever runs it
};
using OperationPtr = std::shared_ptr<Operation>;

class Queue {
 public:
  Queue(std::unique_ptr<Link>, bool native);
  ~Queue();
  Queue(const Queue&) = delete;

  // [train] and [backward], one at a time; throws the first error of the group
  OperationPtr issue(std::shared_ptr<const Group>, const lhost_collective::Call&, int64_t timeout_ns);
  // [any]; throws the operation's error, once. timeout_ns < 0: no limit beyond the operation's own
  void wait(const OperationPtr&, int64_t timeout_ns);
  void release(const OperationPtr&) noexcept;  // nobody will wait: the worker finishes it
  void abort(lh_code why) noexcept;            // [any]
  // Ends the threads, after a moment for what was issued and never waited for; bounded, whatever the peers do. [main]
  void stop() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  void work();
  void watch();
  void begin(Operation&, Lock&);
  void run(const OperationPtr&, Lock&);
  void execute(Operation&);
  void execute_native(Operation&);
  void fail(Operation&, const LinkError&, Lock&);
  std::string blame(Operation&, const LinkError&, int64_t& culprit);
  void close(Operation&, lh_code, const std::string&);
  void break_off(lh_code, std::string text);
  void start_clock(Operation&);
  void attend(const Operation&);
  std::string after_failure(const Operation&) const;
  bool direct(const Operation&) const;

  const std::unique_ptr<Link> link_;
  const bool native_;  // c10d's algorithms where it has them
  std::mutex mutex_;
  std::condition_variable work_cv_, done_cv_, watch_cv_;
  // guarded by mutex_
  std::deque<OperationPtr> queue_;
  std::vector<OperationPtr> running_;
  std::vector<std::unique_ptr<Exchange>> idle_;  // with their scratch memory
  Operation::Clock::time_point next_watch_ = Operation::Clock::time_point::max();
  int64_t issued_ = -1;  // the two calls at the start are not counted
  lh_code failed_ =
      LH_OK;  // the first error; the link is interrupted by whoever sets it, before anyone else sees it
  std::string failure_;
  bool stop_ = false;

  std::thread worker_, watchdog_;
};

}  // namespace lhost_gloo
