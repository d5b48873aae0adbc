// host/launch/blame.hpp - which rank's end is the cause, and which are its consequences. A pure function of what the
// processes and their pages say: who ended first is no evidence, peers notice a death within milliseconds.
#pragma once
#include "launch/rank_page.hpp"

#include <string>
#include <vector>

namespace lhost {

struct RankEnd {
  enum class How { running, exited, signalled };
  int64_t rank = 0;
  How how = How::running;  // running: when the supervisor lost patience
  int value = 0;           // exit code or signal
  int64_t time_ns = 0;     // CLOCK_MONOTONIC when it ended
  bool stopped = false;    // running, but stopped by a signal (SIGSTOP)
  RankState page;
  std::string log;       // where its output is; empty: on the terminal
  std::string log_tail;  // the end of it, shown when the page has no message
};

struct Blame {
  int64_t culprit = -1;     // rank; -1: nothing went wrong
  int exit_code = 0;        // of the run
  bool asked = false;       // it ended because somebody asked: a signal, a time limit. Nothing to report
  std::string report;       // one block of lines, without "error:"
  std::string kind;         // rank, class and message: equal texts are the same failure again
  int64_t global_step = 0;  // of the culprit
  std::vector<int64_t> secondary;  // ended or hung because of it
};

struct BlameContext {
  std::string host;          // where these ranks ran
  bool oom_kill = false;     // the system killed processes for memory during this run
  bool whole_world = false;  // there are no ranks elsewhere
};

// In this order: errors of model, data and plugins and crashes; out of memory; signals; an end without an error too
// early; a hang (the others waited in vain for this one, or lost it); and only if there is nothing else, a lost peer.
// Among equals the first in time.
Blame find_blame(const std::vector<RankEnd>& ends, const BlameContext&);

}  // namespace lhost
