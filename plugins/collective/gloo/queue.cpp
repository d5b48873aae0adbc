#include "queue.hpp"

#include "rendezvous.hpp"

#include <lhost/sdk/plugin.hpp>

#include <algorithm>

namespace lhost_gloo {
namespace {

using lhost_collective::Call;
using lhost_collective::Dtype;
using lhost_collective::Kind;
using State = Operation::State;
using Clock = Operation::Clock;

constexpr std::chrono::seconds kDrain{1};  // for what was issued and never waited for, at the end

std::string with_number(const Operation& o) {
  return describe(o.call) + " (call " + std::to_string(o.number) + ")";
}

std::string are_gone(const std::vector<int64_t>& ranks) {
  if (ranks.size() == 1) return "rank " + std::to_string(ranks[0]) + " is gone";
  return ranks.empty() ? "a rank is gone" : "ranks " + lhost_collective::list(ranks) + " are gone";
}

std::string last_words(int64_t peer, const Farewell& f) {
  const std::string culprit = f.culprit < 0 ? "another rank" : "rank " + std::to_string(f.culprit);
  const std::string text = "rank " + std::to_string(peer);
  if (f.code == LH_ABORTED) return text + " has aborted";
  return text + " has failed: " + culprit +
         (f.code == LH_DEADLINE ? " did not answer it in time" : " is gone");
}

bool pair(Kind k) { return k == Kind::send || k == Kind::recv; }

// c10d adds up in its own order; maximum and minimum there let numbers win over NaN, and 16-bit sums are rounded often.
bool has_native(const Operation& o) {
  const Call& c = o.call;
  if (!o.group->world || c.bytes() == 0) return false;
  if (c.kind == Kind::broadcast || c.kind == Kind::all_gather) return true;
  return c.kind == Kind::all_reduce && c.op <= LH_REDUCE_AVG && c.dtype != Dtype::f16 &&
         c.dtype != Dtype::bf16;
}

}  // namespace

Queue::Queue(std::unique_ptr<Link> link, bool native)
    : link_(std::move(link)), native_(native), worker_([this] { work(); }), watchdog_([this] { watch(); }) {}

Queue::~Queue() { stop(); }

void Queue::stop() noexcept {
  if (!worker_.joinable()) return;
  {
    Lock lock(mutex_);
    done_cv_.wait_for(lock, kDrain, [this] { return failed_ || (queue_.empty() && running_.empty()); });
    const bool idle = queue_.empty() && running_.empty();
    stop_ = true;
    if (!failed_) break_off(LH_CANCELLED, "the run ended before");
    lock.unlock();
    if (!idle) link_->close();
  }
  work_cv_.notify_all();
  watch_cv_.notify_all();
  worker_.join();
  watchdog_.join();
}

// Messages that the connections' buffers take at once. Their waits come in any order, so there is no second step.
bool Queue::direct(const Operation& o) const {
  if (pair(o.call.kind)) return true;
  const bool first =
      queue_.empty() && std::none_of(running_.begin(), running_.end(),
                                     [](const OperationPtr& r) { return r->state == State::queued; });
  return first && is_one_step(o.call) && o.call.bytes() * o.group->size() <= 4 * kSmall &&
         !(native_ && has_native(o));
}

OperationPtr Queue::issue(std::shared_ptr<const Group> group, const Call& call, int64_t timeout_ns) {
  auto o = std::make_shared<Operation>();
  o->call = call;
  o->group = std::move(group);
  o->timeout_ns = timeout_ns;
  Lock lock(mutex_);
  o->number = issued_++;
  if (failed_) throw lhost::Error(failed_, after_failure(*o));
  if (direct(*o)) {
    begin(*o, lock);
    return o;
  }
  queue_.push_back(o);
  lock.unlock();
  work_cv_.notify_one();
  return o;
}

std::string Queue::after_failure(const Operation& o) const {
  return with_number(o) + (failed_ == LH_ABORTED ? ": " : " did not run, a call before it failed: ") +
         failure_;
}

void Queue::start_clock(Operation& o) {
  if (o.timeout_ns < 0) return;
  o.deadline = Clock::now() + std::chrono::nanoseconds(std::min(o.timeout_ns, int64_t{1} << 60));
}

void Queue::attend(const Operation& o) {
  if (o.deadline >= next_watch_) return;
  next_watch_ = o.deadline;  // an earlier end than the one that the watchdog sleeps to
  watch_cv_.notify_one();
}

// An error here is the operation's, and comes out of its wait.
void Queue::begin(Operation& o, Lock& lock) {
  start_clock(o);
  if (idle_.empty()) o.exchange = std::make_unique<Exchange>(link_->batch());
  else o.exchange = std::move(idle_.back()), idle_.pop_back();
  lock.unlock();
  try {
    o.exchange->begin(*o.group, o.call);
    lock.lock();
    o.state = State::begun;
  } catch (const LinkError& e) {
    lock.lock();
    fail(o, e, lock);
  }
}

void Queue::work() {
  Lock lock(mutex_);
  for (;;) {
    work_cv_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const OperationPtr o = queue_.front();
    queue_.pop_front();
    run(o, lock);
  }
}

void Queue::run(const OperationPtr& o, Lock& lock) {
  if (o->state == State::done || o->state == State::running) return;
  running_.push_back(o);
  if (failed_) {
    close(*o, failed_, after_failure(*o));
  } else if (native_ && has_native(*o)) {
    lock.unlock();
    execute_native(*o);
    lock.lock();
  } else {
    if (o->state == State::queued) begin(*o, lock);
    if (o->state != State::done) {
      o->state = State::running;
      attend(*o);
      lock.unlock();
      execute(*o);
      lock.lock();
    }
  }
  running_.erase(std::find(running_.begin(), running_.end(), o));
  done_cv_.notify_all();
}

// Without the lock; the outcome is recorded under it.
void Queue::execute(Operation& o) {
  try {
    o.exchange->finish();
    Lock lock(mutex_);
    close(o, LH_OK, "");
  } catch (const LinkError& e) {
    Lock lock(mutex_);
    fail(o, e, lock);
  }
}

void Queue::execute_native(Operation& o) {
  const Call& c = o.call;
  const auto timeout = o.timeout_ns < 0 ? Milliseconds(std::chrono::hours(24 * 365))
                                        : Milliseconds(std::max<int64_t>(1, o.timeout_ns / 1000000));
  try {
    if (c.in && c.in != c.out && c.kind != Kind::all_gather) std::memcpy(c.out, c.in, c.bytes());
    link_->native(c, timeout);
    if (c.op == LH_REDUCE_AVG && c.reduces())
      lhost_collective::scale(c.dtype, 1.0 / static_cast<double>(o.group->size()), c.out, c.count);
    Lock lock(mutex_);
    close(o, LH_OK, "");
  } catch (const LinkError& e) {
    Lock lock(mutex_);
    fail(o, e, lock);
  }
}

void Queue::close(Operation& o, lh_code code, const std::string& text) {
  if (o.exchange) {
    o.exchange->clear();
    idle_.push_back(std::move(o.exchange));
  }
  o.code = code;
  o.text = text;
  o.state = State::done;
}

// Under the lock. The link comes before any operation is done: others may be reading the memory of those under way.
void Queue::break_off(lh_code code, std::string text) {
  failed_ = code;
  failure_ = std::move(text);
  link_->interrupt();
}

// A rank that fails closes its connections too: who said so before is not the one that went first.
std::string Queue::blame(Operation& o, const LinkError& e, int64_t& culprit) {
  const auto broken = o.exchange ? o.exchange->batch().broken() : std::vector<int64_t>{};
  std::vector<int64_t> gone;
  std::string said;
  for (const int64_t peer : broken) {
    const Farewell f = link_->last_words(peer);
    if (f.code == LH_OK) gone.push_back(peer);
    else said += (said.empty() ? "" : "; ") + last_words(peer, f);
  }
  if (!gone.empty()) culprit = gone[0];
  if (gone.empty() && !said.empty()) return said;
  return are_gone(gone) + " (" + e.what() + ")";
}

// Finds out what the error means, which can take a moment, and makes it the first one if it is.
void Queue::fail(Operation& o, const LinkError& e, Lock& lock) {
  using lhost_collective::list;
  lh_code code = failed_;
  int64_t culprit = -1;
  std::string text = with_number(o);
  if (failed_) {
    text = after_failure(o);
  } else if (o.late || e.why == LinkError::Why::late) {
    code = LH_DEADLINE;
    lock.unlock();
    const auto peers = o.exchange ? o.exchange->batch().unanswered() : std::vector<int64_t>{};
    if (!peers.empty()) culprit = peers[0];
    lock.lock();
    text += " got no answer" + (peers.empty() ? "" : " from rank(s) " + list(peers)) + " within " +
            seconds(o.timeout_ns);
  } else {
    code = LH_PEER_LOST;
    lock.unlock();
    text += ": " + blame(o, e, culprit);
    lock.lock();
  }
  const bool first = !failed_;
  if (failed_ == LH_ABORTED) code = failed_, text = after_failure(o);  // meanwhile
  if (first) break_off(code, text);
  close(o, code, text);
  if (!first) return;
  lock.unlock();
  link_->say({code, static_cast<int32_t>(culprit)});
  if (code == LH_PEER_LOST) link_->close();  // the others learn it now, not when this process ends
  lock.lock();
}

void Queue::wait(const OperationPtr& o, int64_t timeout_ns) {
  Lock lock(mutex_);
  if (o->state == State::begun) {
    if (timeout_ns < 0) run(o, lock);
    else queue_.push_back(o), work_cv_.notify_one();  // for this thread may have to leave earlier
  }
  const auto done = [&] { return o->state == State::done; };
  if (timeout_ns < 0) done_cv_.wait(lock, done);
  else if (!done_cv_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done))
    throw lhost::Error(LH_DEADLINE, with_number(*o) + " is not complete after " + seconds(timeout_ns));
  if (o->code == LH_OK) return;
  throw lhost::Error(std::exchange(o->code, LH_OK), o->text);
}

void Queue::release(const OperationPtr& o) noexcept {
  const Lock lock(mutex_);
  if (o->state != State::begun) return;
  queue_.push_back(o);
  work_cv_.notify_one();
}

void Queue::abort(lh_code why) noexcept {
  {
    const Lock lock(mutex_);
    if (failed_) return;
    break_off(LH_ABORTED, "aborted (reason " + std::to_string(why) + ")");
  }
  link_->say({LH_ABORTED, -1});
  link_->close();
  work_cv_.notify_all();
}

// Ends what takes too long. Sleeps to the earliest deadline that was seen, so calls of equal limits never wake it.
void Queue::watch() {
  Lock lock(mutex_);
  while (!stop_) {
    if (next_watch_ == Clock::time_point::max()) watch_cv_.wait(lock);
    else watch_cv_.wait_until(lock, next_watch_);
    const auto now = Clock::now();
    if (stop_ || now < next_watch_) continue;
    next_watch_ = Clock::time_point::max();
    bool late = false;
    for (const OperationPtr& o : running_) {
      if (o->deadline <= now) late = o->late = true;
      else next_watch_ = std::min(next_watch_, o->deadline);
    }
    if (!late) continue;
    lock.unlock();
    link_->interrupt();
    lock.lock();
  }
}

}  // namespace lhost_gloo
