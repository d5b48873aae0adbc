// host/launch/rank_group.hpp - the processes of the ranks of this machine: seen to end, signalled, and gone with all
// that they started when the object is. [main]
#pragma once
#include "launch/blame.hpp"

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <vector>

namespace lhost {

class RankGroup {
 public:
  RankGroup() = default;
  ~RankGroup();  // ends what still runs, at once
  RankGroup(const RankGroup&) = delete;

  void add(int64_t rank, pid_t pid);
  size_t size() const { return members_.size(); }
  int running() const;
  bool is_running(size_t i) const { return members_[i].end.how == RankEnd::How::running; }
  // Looks at all processes; gives the index of each that has ended since the last look.
  std::vector<size_t> take_ended();
  void add_polls(std::vector<pollfd>&) const;  // readable when a process ends
  int longest_poll_ms() const;                 // how long one may wait in poll; -1: for ever

  void send(int sig) const;     // to each running rank, not to what it started
  void freeze();                // from now on what ends does so because of end_all: it counts as running
  void end_all(int sig) const;  // to the ranks' process groups: helpers too
  void reap();

  RankEnd& end(size_t i) { return members_[i].end; }
  bool is_stopped(size_t i) const;  // by SIGSTOP

 private:
  struct Member {
    pid_t pid;
    pid_t group;  // 0: this process's own, which is not signalled
    int pidfd;    // -1: a kernel without
    bool alive;
    RankEnd end;
  };
  std::vector<Member> members_;
  bool frozen_ = false;
};

}  // namespace lhost
