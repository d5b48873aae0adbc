// hub.hpp - where the ranks of one run meet when they are threads of one process. Nothing runs by itself: whoever brings
// the last call that was missing computes for all. [any]
#pragma once
#include "../common/call.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lhost_threads {

using Clock = std::chrono::steady_clock;
using lhost_collective::Call;

// One call of all ranks of a group, or a send and its receive. Guarded by the hub's mutex; `calls` and their memory belong
// to the computing thread meanwhile.
struct Meeting {
  std::vector<int64_t> ranks;  // of the world
  std::vector<Call> calls;     // of each of them
  std::vector<bool> here;      // who has come
  std::vector<int64_t> gave_up;
  uint64_t number = 0;  // call n of the group
  enum class State { open, computing, done } state = State::open;
  lh_code code = LH_OK;
  std::string text;
};
using MeetingPtr = std::shared_ptr<Meeting>;

struct Group {
  explicit Group(std::vector<int64_t> r) : ranks(std::move(r)), issued(ranks.size()) {}
  size_t place(size_t rank) const;  // ranks.size(): not a member

  const std::vector<int64_t> ranks;
  // guarded by the hub's mutex
  std::vector<uint64_t> issued;  // calls, by place
  uint64_t complete = 0;         // meetings that all have come to
  std::deque<MeetingPtr> meetings;
  std::map<std::pair<int64_t, int64_t>, std::deque<MeetingPtr>> pairs;  // {from, to}: one of the two has come
  lh_code failed = LH_OK;                                               // the first error
  std::string failure;
};
using GroupPtr = std::shared_ptr<Group>;

// What all ranks have brought, done. Without the lock.
std::string mismatch(const Meeting&);  // empty: the calls fit together
void compute(Meeting&);

class Hub {
 public:
  // Blocks until all ranks of the job have come; throws. leave is the other end.
  static std::shared_ptr<Hub> join(const std::string& job, size_t size, size_t rank, int64_t timeout_ns);
  void leave(size_t rank) noexcept;  // waits a moment for calls that nobody waited for
  void abort(size_t rank, lh_code why) noexcept;

  // The same object for all ranks: the n-th group that each of them makes.
  GroupPtr group(size_t rank, const std::vector<int64_t>& ranks);
  GroupPtr world() const { return world_; }

  MeetingPtr issue(Group&, size_t rank, const Call&);  // throws the first error of the group
  // Throws the call's error. `end`: of the call itself; `patience_ns` of this wait, < 0: none.
  void wait(Group&, const MeetingPtr&, size_t rank, Clock::time_point end, int64_t patience_ns,
            int64_t timeout_ns);

  Hub(std::string job, size_t size);

 private:
  using Lock = std::unique_lock<std::mutex>;
  void enter(size_t size, size_t rank);
  bool await_all(int64_t timeout_ns);
  void check_present(const Group&, size_t rank) const;
  MeetingPtr meeting_of(Group&, size_t rank, const Call&);
  MeetingPtr pair_of(Group&, size_t rank, const Call&);
  void settle(Group&, const MeetingPtr&, Lock&);
  void withdraw(size_t rank, const std::string& how);
  bool waited_for(size_t rank) const;
  void give_up(Group&, Meeting&, size_t rank, int64_t timeout_ns);
  [[noreturn]] void throw_aborted(const Call&, size_t rank) const;

  const std::string job_;
  const size_t size_;
  std::mutex mutex_;
  std::condition_variable cv_;
  // guarded by mutex_
  std::vector<bool> joined_;
  std::string verdict_;            // not all have come in time
  std::vector<std::string> gone_;  // how a rank went; empty: it is here
  std::vector<lh_code> aborted_;   // by rank
  std::vector<GroupPtr> groups_;   // the world first
  std::vector<size_t> made_;       // groups, by rank
  const GroupPtr world_;
};

}  // namespace lhost_threads
