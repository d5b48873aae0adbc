#include "launch/blame.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace lhost {
namespace {

// In the order of blame.
enum class Guilt { error, memory, signal, early, hang, deadline, asked, peer, none };
using How = RankEnd::How;

bool is_crash(int sig) {
  return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGABRT ||
         sig == SIGTRAP || sig == SIGSYS;
}
bool ends_on_request(int code) {
  for (Exit e : {Exit::again, Exit::hung_up, Exit::interrupted, Exit::terminated})
    if (code == static_cast<int>(e)) return true;
  return false;
}
bool in_order(const RankEnd& e) { return e.how == How::exited && e.value == 0 && !e.page.failure; }

Guilt guilt_of_failure(lh_code code) {
  switch (code) {
    case LH_RESOURCE_EXHAUSTED:
      return Guilt::memory;
    case LH_DEADLINE:
      return Guilt::deadline;
    case LH_PEER_LOST:
    case LH_ABORTED:
      return Guilt::peer;
    case LH_CANCELLED:
      return Guilt::asked;
    default:
      return Guilt::error;
  }
}

struct Situation {
  bool oom_kill, somebody_missed, all_in_order;
};

Guilt guilt(const RankEnd& e, const Situation& s) {
  if (e.page.failure) return guilt_of_failure(e.page.failure->code);
  if (e.how == How::running) return s.somebody_missed ? Guilt::hang : Guilt::none;
  if (e.how == How::signalled) {
    if (is_crash(e.value)) return Guilt::error;
    return e.value == SIGKILL && s.oom_kill ? Guilt::memory : Guilt::signal;
  }
  if (e.value == 0) return s.all_in_order || e.page.phase == RankPhase::ended ? Guilt::none : Guilt::early;
  if (e.value == static_cast<int>(Exit::peer)) return Guilt::peer;
  return ends_on_request(e.value) ? Guilt::asked : Guilt::error;
}

// It waited in vain, or it lost a rank; one that is not elsewhere must be here.
bool misses_a_rank(const RankEnd& e, bool whole_world) {
  const bool lost = e.page.failure ? e.page.failure->code == LH_PEER_LOST
                                   : e.how == How::exited && e.value == static_cast<int>(Exit::peer);
  return (e.page.failure && e.page.failure->code == LH_DEADLINE) || (lost && whole_world);
}

bool waits_for_others(const RankState& p) {
  return p.phase == RankPhase::meeting || p.operation.rfind("collective:", 0) == 0;
}

// Among equals: who failed first; of those that hang, who was stopped, who does not wait itself, who is furthest behind.
auto rank_of_blame(const RankEnd& e, Guilt g) {
  const bool hang = g == Guilt::hang;
  const int64_t time = e.page.failure ? e.page.failure->time_ns : e.time_ns;
  const RankPhase phase = std::min(e.page.phase, RankPhase::running);
  return std::tuple(g, hang && !e.stopped, hang && waits_for_others(e.page),
                    hang ? phase : RankPhase::running, hang ? e.page.global_step : 0, hang ? e.page.batch : 0,
                    hang ? 0 : time, e.rank);
}

int own_exit_code(const RankEnd& e) {
  const auto usable = [](int code) { return code != 0 && code != static_cast<int>(Exit::peer); };
  if (e.how == How::signalled) return 128 + e.value;
  if (e.how == How::exited && usable(e.value)) return e.value;
  if (e.page.failure && usable(e.page.failure->exit_code)) return e.page.failure->exit_code;
  return static_cast<int>(Exit::failed);
}

std::string signal_text(int sig) {
  const char *name = sigabbrev_np(sig), *description = sigdescr_np(sig);
  if (!name) return "signal " + std::to_string(sig);
  return std::string("SIG") + name + (description ? std::string(" (") + description + ")" : "");
}

std::string place_of(const RankState& p) {
  if (p.failure && !p.failure->place.empty()) return p.failure->place;
  if (p.phase == RankPhase::starting || p.phase == RankPhase::meeting)
    return std::string("while ") + phase_name(p.phase);
  static const char* stages[] = {"fit", "validate", "test", "predict"};
  std::string s = stages[p.stage] + std::string(", epoch ") + std::to_string(p.epoch) + ", batch " +
                  std::to_string(p.batch) + ", step " + std::to_string(p.global_step);
  return p.phase == RankPhase::running ? s : s + ", while " + phase_name(p.phase);
}

std::string failure_text(const RankFailure& f) {
  std::string s = " failed";
  if (!f.component.empty()) s += " in " + f.component + (f.where.empty() ? "" : " (" + f.where + ")");
  return s + ": " + f.message;
}

std::string what_it_does(const RankEnd& e) {
  const RankState& p = e.page;
  const std::string what = e.stopped ? "was stopped by a signal" : "is";
  if (p.phase != RankPhase::running) return what + (e.stopped ? " while " : " ") + phase_name(p.phase);
  const std::string in = p.operation.empty() ? (e.stopped ? "" : " busy") : " in " + p.operation;
  return what + in + ", epoch " + std::to_string(p.epoch) + ", batch " + std::to_string(p.batch);
}

std::string what_happened(const RankEnd& e, Guilt g) {
  const std::string in = e.page.operation.empty() ? "" : " in " + e.page.operation;
  if (g == Guilt::hang) return " did not come: it " + what_it_does(e);
  if (g == Guilt::peer)
    return " lost the other ranks, and none of this machine failed first; the other nodes' output has the "
           "cause" +
           (e.page.failure ? ": " + e.page.failure->message : "");
  if (e.page.failure) return failure_text(*e.page.failure);
  if (g == Guilt::early) return " ended without an error while others still trained";
  if (g == Guilt::memory)
    return " was killed by the system for lack of memory (SIGKILL)" + in +
           "; a smaller batch or fewer ranks on this machine may help, or more memory for the job";
  if (e.how == How::signalled)
    return (is_crash(e.value) ? " crashed with " : " was ended by ") + signal_text(e.value) + in;
  return " ended with exit code " + std::to_string(e.value) + in;
}

// "ranks 0, 2-3"
std::string rank_list(const std::vector<int64_t>& sorted) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    parts.push_back(std::to_string(sorted[i]) +
                    (last > i ? (last == i + 1 ? ", " : "-") + std::to_string(sorted[last]) : ""));
    i = last + 1;
  }
  return (sorted.size() == 1 ? "rank " : "ranks ") + join(parts, ", ");
}

std::string indented(const std::string& text, const std::string& prefix) {
  std::string s;
  for (const std::string& line : split(text, '\n')) s += "\n" + prefix + line;
  return s;
}

std::string report_of(const RankEnd& e, Guilt g, const Blame& b, const std::string& host) {
  std::string s = "rank " + std::to_string(e.rank) + what_happened(e, g);
  if (!e.page.failure && !e.log_tail.empty()) s += indented(e.log_tail, "  | ");
  s += "\n  on " + host + ", " + place_of(e.page);
  if (!e.log.empty()) s += "; its output: " + e.log;
  if (!b.secondary.empty()) s += "\n  because of it ended: " + rank_list(b.secondary);
  return s;
}

}  // namespace

Blame find_blame(const std::vector<RankEnd>& ends, const BlameContext& context) {
  Situation s{context.oom_kill, false, true};
  for (const RankEnd& e : ends) {
    s.somebody_missed |= misses_a_rank(e, context.whole_world);
    s.all_in_order &= in_order(e);
  }
  Blame b;
  const auto first = std::min_element(ends.begin(), ends.end(), [&](const RankEnd& x, const RankEnd& y) {
    return rank_of_blame(x, guilt(x, s)) < rank_of_blame(y, guilt(y, s));
  });
  if (first == ends.end()) return b;
  const Guilt g = guilt(*first, s);
  if (g == Guilt::none) return b;
  b.culprit = first->rank;
  b.exit_code = own_exit_code(*first);
  b.global_step = first->page.global_step;
  b.asked = g == Guilt::asked;
  if (b.asked) return b;
  for (const RankEnd& e : ends)
    if (&e != &*first && guilt(e, s) != Guilt::none) b.secondary.push_back(e.rank);
    else if (&e != &*first && e.how == How::running) b.secondary.push_back(e.rank);
  std::sort(b.secondary.begin(), b.secondary.end());
  const std::string what = what_happened(*first, g);
  b.kind = std::to_string(first->rank) + "/" + std::to_string(static_cast<int>(g)) + "/" + what;
  b.report = report_of(*first, g, b, context.host);
  return b;
}

}  // namespace lhost
