#include "rendezvous.hpp"

#include "address.hpp"

#include <lhost/sdk/plugin.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

namespace lhost_gloo {
namespace {

constexpr Milliseconds kSlice{50};           // between two looks at the board
constexpr std::chrono::seconds kReport{10};  // between two lines about what is waited for
constexpr Milliseconds kLinger{300};  // rank 0 keeps the board after a failure, for the others to read it

const std::string kStrangers = "lhost/strangers";  // outside of every run's own keys

// A line for the log every 10 s while something is waited for.
class Reporter {
 public:
  template <class F>
  void line(F text) {
    if (std::chrono::steady_clock::now() < next_) return;
    next_ += kReport;
    lhost::log(LH_LOG_WARN, text());
  }

 private:
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kReport;
};

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return std::string(host) + ", process " + std::to_string(getpid());
}

// What ended the meeting, as all ranks read it: "0" = all are there, else a code and a text.
std::string verdict(lh_code code, const std::string& text) { return std::to_string(code) + " " + text; }

}  // namespace

std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", 1e-9 * static_cast<double>(ns));
  if (ns >= 1000000000000) std::snprintf(text, sizeof text, "%.0f s", 1e-9 * static_cast<double>(ns));
  return text;
}

Deadline::Deadline(int64_t ns) : start_(Clock::now()), end_(Clock::time_point::max()), ns_(ns) {
  if (ns > 0) end_ = start_ + std::chrono::nanoseconds(std::min(ns, int64_t{1} << 60));
}
Milliseconds Deadline::left() const { return left(std::chrono::hours(24)); }
Milliseconds Deadline::left(Milliseconds most) const {
  if (ns_ <= 0) return most;
  const auto rest = std::chrono::duration_cast<Milliseconds>(end_ - Clock::now());
  return std::clamp(rest, Milliseconds(1), most);
}
std::string Deadline::progress() const {
  const auto s = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start_).count();
  return std::to_string(s) + " s" + (ns_ > 0 ? " of " + total() : "");
}
std::string Deadline::total() const { return seconds(ns_); }

Rendezvous::Rendezvous(const lh_env& env, int listen_fd, int64_t timeout_ns, const std::atomic<bool>& aborted)
    : deadline(timeout_ns), job(lhost::view(env.job)), restart(env.restart), aborted_(aborted) {
  place.host = lhost::view(env.master_addr);
  place.port = static_cast<int>(env.master_port);
  place.rank = static_cast<int>(env.rank);
  place.size = static_cast<int>(env.world_size);
  place.listen_fd = listen_fd;
  place.serves = place.rank == 0 && env.store_served == 0;
  prefix = "lhost/" + job + "/" + std::to_string(restart);
  // Our own board is for one attempt, so that a rank of another one finds this run and can say so; one that is served
  // for us also has what earlier attempts wrote.
  run_key = env.store_served == 0 ? "lhost/run" : prefix + "/run";
}

void Rendezvous::meet() {
  if (place.serves && place.listen_fd < 0) place.listen_fd = listen_on(place.port);
  await_server();
  try {
    board = open_board(place, deadline.left());
    check_job();
    hello();
    await_all();
  } catch (const lhost::Error&) {
    if (place.rank == 0) std::this_thread::sleep_for(kLinger);
    throw;
  } catch (const std::exception& e) {
    if (place.rank == 0)
      throw lhost::Error(LH_UNAVAILABLE, "meeting at " + where() + ": " + short_text(e.what()));
    throw lhost::Error(LH_PEER_LOST, "what listens at " + where() +
                                         " went away before all ranks had come, or is not rank 0 of a run: " +
                                         short_text(e.what()));
  }
}

// c10d would try by itself, but tells the terminal, not the log.
void Rendezvous::await_server() {
  Reporter reporter;
  for (Milliseconds pause{10};; pause = std::min<Milliseconds>(2 * pause, Milliseconds(500))) {
    const std::string why = try_connect(place.host, place.port);
    if (why.empty()) return;
    if (aborted_) throw lhost::Error(LH_ABORTED, "aborted while the ranks met at " + where());
    if (deadline.passed())
      throw lhost::Error(LH_DEADLINE,
                         "cannot connect to " + where() + " for " + deadline.total() + ": " + why +
                             " (is this the address of the machine with rank 0, and does rank 0 run?)");
    reporter.line(
        [&] { return "cannot connect to " + where() + " yet: " + why + "; " + deadline.progress(); });
    std::this_thread::sleep_for(deadline.left(pause));
  }
}

// c10d's own waiting writes to the terminal when it takes long.
template <class F>
void Rendezvous::await_key(const std::string& key, F meanwhile) {
  for (Milliseconds pause{1}; !board->has(key); pause = std::min(2 * pause, kSlice)) {
    if (aborted_) throw lhost::Error(LH_ABORTED, "aborted while the ranks met at " + where());
    meanwhile();
    std::this_thread::sleep_for(deadline.left(pause));
  }
}

void Rendezvous::check_job() {
  const std::string mine = job + "\n" + std::to_string(restart) + "\n" + std::to_string(place.size);
  if (place.rank == 0) return board->set(run_key, mine);
  await_key(run_key, [this] {
    if (deadline.passed())
      throw lhost::Error(LH_DEADLINE, "what listens at " + where() + " did not say within " +
                                          deadline.total() + " which run it belongs to; is it rank 0?");
  });
  const std::string theirs = board->get(run_key);
  if (theirs == mine) return;
  board->add(kStrangers, 1);
  const size_t a = theirs.find('\n'), b = theirs.find('\n', a + 1);
  if (theirs.substr(0, a) != job)
    throw lhost::Error(LH_FAILED_PRECONDITION,
                       "the process at " + where() + " belongs to another run (job \"" + theirs.substr(0, a) +
                           "\", here \"" + job + "\"); two runs on one machine need different MASTER_PORTs");
  throw lhost::Error(LH_FAILED_PRECONDITION,
                     "rank 0 at " + where() + " is at restart " + theirs.substr(a + 1, b - a - 1) + " with " +
                         theirs.substr(b + 1) + " ranks, this process at restart " + std::to_string(restart) +
                         " with " + std::to_string(place.size) + ": it was started for another attempt");
}

void Rendezvous::hello() {
  const std::string key = prefix + "/hello/" + std::to_string(place.rank);
  if (board->add(key, 1) != 1) {
    const std::string text = "two processes have rank " + std::to_string(place.rank) + ": " +
                             board->get(key + "/who") + " and " + this_process() +
                             "; each rank has to be started once";
    board->set_once(prefix + "/verdict", verdict(LH_ALREADY_EXISTS, text));
    throw lhost::Error(LH_ALREADY_EXISTS, text);
  }
  board->set(key + "/who", this_process());
  if (board->add(prefix + "/count", 1) == place.size)
    board->set_once(prefix + "/verdict", verdict(LH_OK, ""));
}

std::vector<int64_t> Rendezvous::missing() {
  std::vector<int64_t> out;
  for (int r = 0; r < place.size; ++r)
    if (!board->has(prefix + "/hello/" + std::to_string(r))) out.push_back(r);
  return out;
}

void Rendezvous::await_all() {
  Reporter reporter;
  const auto waiting = [&] {
    const bool strangers = board->has(kStrangers);
    return "ranks " + lhost_collective::list(missing()) + " at " + where() + ", " + deadline.progress() +
           (strangers ? " (processes of another run came to this port instead)"
                      : " (the master address can be wrong, or those processes did not start)");
  };
  await_key(prefix + "/verdict", [&] {
    if (deadline.passed())
      board->set_once(prefix + "/verdict", verdict(LH_DEADLINE, "waited in vain for " + waiting()));
    else reporter.line([&] { return "waiting for " + waiting(); });
  });
  const std::string result = board->get(prefix + "/verdict");
  const size_t end = result.find(' ');
  const auto code = static_cast<lh_code>(std::stoi(result.substr(0, end)));
  if (code != LH_OK) throw lhost::Error(code, result.substr(end + 1));
}

}  // namespace lhost_gloo
