#include "hub.hpp"

#include <lhost/sdk/plugin.hpp>

#include <algorithm>

namespace lhost_threads {
namespace {

using lhost_collective::Kind;
using lhost_collective::list;
using State = Meeting::State;

constexpr std::chrono::seconds kDrain{1};  // for calls that nobody waited for, at the end

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Hub>>
      hubs;  // of runs that somebody has not left yet; guarded by mutex
};
Registry& registry() {
  static Registry r;
  return r;
}

std::vector<int64_t> everyone(size_t n) {
  std::vector<int64_t> ranks;
  for (size_t r = 0; r < n; ++r) ranks.push_back(static_cast<int64_t>(r));
  return ranks;
}

std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", 1e-9 * static_cast<double>(ns));
  return text;
}

std::vector<int64_t> absent(const Meeting& m) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < m.ranks.size(); ++i)
    if (!m.here[i]) out.push_back(m.ranks[i]);
  return out;
}

void fail(Group& g, Meeting& m, lh_code code, const std::string& text) {
  m.state = State::done;
  m.code = code;
  m.text = text;
  if (!g.failed) g.failed = code, g.failure = text;
}

bool pair(Kind k) { return k == Kind::send || k == Kind::recv; }

}  // namespace

size_t Group::place(size_t rank) const {
  return static_cast<size_t>(std::find(ranks.begin(), ranks.end(), static_cast<int64_t>(rank)) -
                             ranks.begin());
}

Hub::Hub(std::string job, size_t size)
    : job_(std::move(job)),
      size_(size),
      joined_(size),
      gone_(size),
      aborted_(size),
      made_(size),
      world_(std::make_shared<Group>(everyone(size))) {
  groups_.push_back(world_);
}

std::shared_ptr<Hub> Hub::join(const std::string& job, size_t size, size_t rank, int64_t timeout_ns) {
  std::shared_ptr<Hub> hub;
  {
    const std::lock_guard lock(registry().mutex);
    std::shared_ptr<Hub>& known = registry().hubs[job];
    if (!known) known = std::make_shared<Hub>(job, size);
    hub = known;
  }
  hub->enter(size, rank);
  if (hub->await_all(timeout_ns)) return hub;
  const std::lock_guard lock(registry().mutex);
  if (const auto known = registry().hubs.find(job); known != registry().hubs.end() && known->second == hub)
    registry().hubs.erase(known);  // who comes later begins anew
  throw lhost::Error(LH_DEADLINE, hub->verdict_);
}

void Hub::enter(size_t size, size_t rank) {
  const Lock lock(mutex_);
  if (size_ != size)
    throw lhost::Error(LH_INVALID_ARGUMENT, "the job \"" + job_ + "\" has " + std::to_string(size_) +
                                                " ranks, but rank " + std::to_string(rank) + " came with " +
                                                std::to_string(size));
  if (rank >= size || joined_[rank])
    throw lhost::Error(LH_ALREADY_EXISTS, "two threads have rank " + std::to_string(rank) + " of the job \"" +
                                              job_ + "\"; each rank has to be started once");
  joined_[rank] = true;
  cv_.notify_all();
}

bool Hub::await_all(int64_t timeout_ns) {
  Lock lock(mutex_);
  const auto decided = [this] {
    return !verdict_.empty() || std::find(joined_.begin(), joined_.end(), false) == joined_.end();
  };
  if (timeout_ns <= 0) cv_.wait(lock, decided);
  else if (!cv_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), decided)) {
    std::vector<int64_t> missing;
    for (size_t r = 0; r < size_; ++r)
      if (!joined_[r]) missing.push_back(static_cast<int64_t>(r));
    verdict_ =
        "waited in vain for ranks " + list(missing) + " of the job \"" + job_ + "\", " + seconds(timeout_ns);
    cv_.notify_all();
  }
  return verdict_.empty();
}

bool Hub::waited_for(size_t rank) const {
  for (const GroupPtr& g : groups_) {
    const size_t place = g->place(rank);
    if (place == g->ranks.size() || g->failed) continue;
    for (const MeetingPtr& m : g->meetings)
      if (m->here[place]) return true;
  }
  return false;
}

void Hub::leave(size_t rank) noexcept {
  {
    Lock lock(mutex_);
    cv_.wait_for(lock, kDrain, [&] { return aborted_[rank] || !waited_for(rank); });
    withdraw(rank, "has left the run");
  }
  const std::lock_guard lock(registry().mutex);
  const Lock inner(mutex_);
  const bool empty = std::all_of(gone_.begin(), gone_.end(), [](const std::string& g) { return !g.empty(); });
  const auto known = registry().hubs.find(job_);
  if (empty && known != registry().hubs.end() && known->second.get() == this) registry().hubs.erase(known);
}

void Hub::abort(size_t rank, lh_code why) noexcept {
  const Lock lock(mutex_);
  if (aborted_[rank]) return;
  aborted_[rank] = why ? why : LH_ABORTED;
  withdraw(rank, "has aborted");
}

// Nobody may touch this rank's memory any more, nor wait for it.
void Hub::withdraw(size_t rank, const std::string& how) {
  if (gone_[rank].empty()) gone_[rank] = how;
  const std::string text = "rank " + std::to_string(rank) + " is gone: it " + gone_[rank];
  for (const GroupPtr& g : groups_) {
    if (g->place(rank) == g->ranks.size()) continue;
    for (const MeetingPtr& m : g->meetings)
      if (m->state == State::open) fail(*g, *m, LH_PEER_LOST, text);
    for (auto& [ends, waiting] : g->pairs) {
      if (ends.first != static_cast<int64_t>(rank) && ends.second != static_cast<int64_t>(rank)) continue;
      for (const MeetingPtr& m : waiting) fail(*g, *m, LH_PEER_LOST, text);
      waiting.clear();
    }
  }
  cv_.notify_all();
}

GroupPtr Hub::group(size_t rank, const std::vector<int64_t>& ranks) {
  const Lock lock(mutex_);
  const size_t n = ++made_[rank];
  if (n == groups_.size()) groups_.push_back(std::make_shared<Group>(ranks));
  GroupPtr g = groups_[n];
  if (g->ranks != ranks)
    throw lhost::Error(LH_INVALID_ARGUMENT, "ranks do not agree: the group " + std::to_string(n) +
                                                " has the ranks " + list(g->ranks) + " elsewhere, and " +
                                                list(ranks) + " on rank " + std::to_string(rank));
  return g;
}

void Hub::throw_aborted(const Call& c, size_t rank) const {
  throw lhost::Error(LH_ABORTED, describe(c) + ": aborted (reason " + std::to_string(aborted_[rank]) + ")");
}

void Hub::check_present(const Group& g, size_t rank) const {
  for (const int64_t r : g.ranks)
    if (const std::string& how = gone_[static_cast<size_t>(r)];
        !how.empty() && r != static_cast<int64_t>(rank))
      throw lhost::Error(LH_PEER_LOST, "rank " + std::to_string(r) + " is gone: it " + how);
}

MeetingPtr Hub::meeting_of(Group& g, size_t rank, const Call& c) {
  const size_t place = g.place(rank);
  const uint64_t number = g.issued[place]++;
  while (g.complete + g.meetings.size() <= number) {
    auto m = std::make_shared<Meeting>();
    m->ranks = g.ranks;
    m->calls.resize(g.ranks.size());
    m->here.resize(g.ranks.size());
    m->number = g.complete + g.meetings.size() + 1;
    g.meetings.push_back(std::move(m));
  }
  MeetingPtr m = g.meetings[number - g.complete];
  m->calls[place] = c;
  m->here[place] = true;
  return m;
}

MeetingPtr Hub::pair_of(Group& g, size_t rank, const Call& c) {
  const bool sending = c.kind == Kind::send;
  const auto me = static_cast<int64_t>(rank), peer = g.ranks[static_cast<size_t>(c.root)];
  auto& waiting = g.pairs[sending ? std::pair(me, peer) : std::pair(peer, me)];
  const size_t place = sending ? 0 : 1;
  MeetingPtr m;
  if (!waiting.empty() && !waiting.front()->here[place]) {
    m = waiting.front();
    waiting.pop_front();
  } else {
    m = std::make_shared<Meeting>();
    m->ranks = sending ? std::vector<int64_t>{me, peer} : std::vector<int64_t>{peer, me};
    m->calls.resize(2);
    m->here.resize(2);
    waiting.push_back(m);
  }
  m->calls[place] = c;
  m->here[place] = true;
  return m;
}

MeetingPtr Hub::issue(Group& g, size_t rank, const Call& c) {
  Lock lock(mutex_);
  if (aborted_[rank]) throw_aborted(c, rank);
  if (g.failed)
    throw lhost::Error(g.failed, describe(c) + " did not run, a call before it failed: " + g.failure);
  check_present(g, rank);
  MeetingPtr m = pair(c.kind) ? pair_of(g, rank, c) : meeting_of(g, rank, c);
  if (absent(*m).empty()) settle(g, m, lock);
  return m;
}

void Hub::settle(Group& g, const MeetingPtr& m, Lock& lock) {
  if (!pair(m->calls[0].kind)) {  // each rank issues in order, so the first is complete first
    g.meetings.pop_front();
    ++g.complete;
  }
  if (m->state == State::done) return;
  if (!m->gave_up.empty()) {
    fail(g, *m, LH_PEER_LOST, "rank(s) " + list(m->gave_up) + " have given up waiting for this call");
  } else if (const std::string text = mismatch(*m); !text.empty()) {
    fail(g, *m, LH_INVALID_ARGUMENT, text);
  } else {
    m->state = State::computing;
    lock.unlock();
    compute(*m);
    lock.lock();
    m->state = State::done;
  }
  cv_.notify_all();
}

void Hub::give_up(Group& g, Meeting& m, size_t rank, int64_t timeout_ns) {
  size_t place = 0;
  while (m.ranks[place] != static_cast<int64_t>(rank)) ++place;
  const std::string text = describe(m.calls[place]) +
                           (pair(m.calls[place].kind) ? "" : " (call " + std::to_string(m.number) + ")") +
                           " got no answer from rank(s) " + list(absent(m)) + " within " +
                           seconds(timeout_ns);
  m.gave_up.push_back(static_cast<int64_t>(rank));
  if (!g.failed) g.failed = LH_DEADLINE, g.failure = text;
  throw lhost::Error(LH_DEADLINE, text);
}

void Hub::wait(Group& g, const MeetingPtr& m, size_t rank, Clock::time_point end, int64_t patience_ns,
               int64_t timeout_ns) {
  Lock lock(mutex_);
  const auto over = [&] { return m->state == State::done || (aborted_[rank] && m->state == State::open); };
  const auto patience =
      patience_ns < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::nanoseconds(patience_ns);
  const auto until = std::min(end, patience);
  while (!over()) {
    if (until == Clock::time_point::max()) cv_.wait(lock);
    else if (cv_.wait_until(lock, until) == std::cv_status::timeout && m->state == State::open &&
             !aborted_[rank])
      break;
  }
  size_t place = 0;
  while (m->ranks[place] != static_cast<int64_t>(rank)) ++place;
  if (m->state == State::done && m->code == LH_OK) return;
  if (aborted_[rank]) throw_aborted(m->calls[place], rank);
  if (m->state == State::done) throw lhost::Error(m->code, m->text);
  if (end <= patience) give_up(g, *m, rank, timeout_ns);
  throw lhost::Error(LH_DEADLINE,
                     describe(m->calls[place]) + " is not complete after " + seconds(patience_ns));
}

}  // namespace lhost_threads
