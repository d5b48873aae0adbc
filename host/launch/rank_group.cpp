#include "launch/rank_group.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>

namespace lhost {
namespace {

int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

}  // namespace

RankGroup::~RankGroup() {
  end_all(SIGKILL);
  reap();
}

void RankGroup::add(int64_t rank, pid_t pid) {
  const pid_t group = getpgid(pid);
  // not glibc's function: some of its headers declare it for C alone
  Member m{pid,
           group == getpgrp() || group < 0 ? 0 : group,
           static_cast<int>(syscall(SYS_pidfd_open, pid, 0)),
           true,
           {}};
  if (m.pidfd >= 0) fcntl(m.pidfd, F_SETFD, FD_CLOEXEC);
  m.end.rank = rank;
  members_.push_back(std::move(m));
}

int RankGroup::running() const {
  int n = 0;
  for (const Member& m : members_) n += m.alive;
  return n;
}

// Who has ended stays a zombie until reap(): its number, and that of its group, cannot come to mean somebody else.
std::vector<size_t> RankGroup::take_ended() {
  std::vector<size_t> ended;
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& m = members_[i];
    siginfo_t info{};
    if (!m.alive || waitid(P_PID, static_cast<id_t>(m.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      continue;
    m.alive = false;
    ended.push_back(i);
    if (frozen_) continue;
    m.end.how = info.si_code == CLD_EXITED ? RankEnd::How::exited : RankEnd::How::signalled;
    m.end.value = info.si_status;
    m.end.time_ns = monotonic_ns();
  }
  return ended;
}

void RankGroup::add_polls(std::vector<pollfd>& list) const {
  for (const Member& m : members_)
    if (m.alive && m.pidfd >= 0) list.push_back({m.pidfd, POLLIN, 0});
}

int RankGroup::longest_poll_ms() const {
  for (const Member& m : members_)
    if (m.alive && m.pidfd < 0) return 20;
  return -1;
}

void RankGroup::send(int sig) const {
  for (const Member& m : members_)
    if (m.alive) kill(m.pid, sig);
}

void RankGroup::freeze() { frozen_ = true; }

// Once to each: a second SIGTERM means more than the first.
void RankGroup::end_all(int sig) const {
  pid_t told = 0;
  for (const Member& m : members_) {
    if (m.group == 0 && m.alive) kill(m.pid, sig);
    if (m.group != 0 && m.group != told) kill(-m.group, sig);
    if (m.group != 0) told = m.group;
  }
}

// A process that hangs in the kernel outlives even SIGKILL for a while: it is left after five seconds.
void RankGroup::reap() {
  const int64_t deadline = monotonic_ns() + 5000000000;
  for (Member& m : members_) {
    while (waitpid(m.pid, nullptr, WNOHANG) == 0 && monotonic_ns() < deadline) usleep(1000);
    if (m.pidfd >= 0) close(m.pidfd);
  }
  members_.clear();
}

bool RankGroup::is_stopped(size_t i) const {
  std::ifstream in("/proc/" + std::to_string(members_[i].pid) + "/stat");
  std::string line;
  std::getline(in, line);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  return name_end != line.npos && line.compare(name_end, 3, ") T") == 0;
}

}  // namespace lhost
