// rendezvous.hpp - how the ranks of one run find each other at rank 0's address, and notice who is missing, is there
// twice, or belongs to another run. Blocks until all have come. No c10d.
#pragma once
#include "link.hpp"

#include <lhost/step.h>

#include <atomic>

namespace lhost_gloo {

class Deadline {
 public:
  explicit Deadline(int64_t ns);  // from now; <= 0: never
  bool passed() const { return Clock::now() >= end_; }
  Milliseconds left() const;  // at least 1 ms
  Milliseconds left(Milliseconds most) const;
  std::string progress() const;  // "20 s of 300 s"
  std::string total() const;     // "300 s"

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_, end_;
  int64_t ns_;
};
std::string seconds(int64_t ns);  // "10 s", "0.25 s"

struct Rendezvous {
  Rendezvous(const lh_env&, int listen_fd, int64_t timeout_ns, const std::atomic<bool>& aborted);
  Place place;
  Deadline deadline;
  std::string job, prefix, run_key;
  int64_t restart;
  std::unique_ptr<Board> board;

  void meet();

 private:
  void await_server();
  void check_job();
  void hello();
  template <class F>
  void await_key(const std::string& key, F meanwhile);
  void await_all();
  std::vector<int64_t> missing();
  std::string where() const { return place.host + ":" + std::to_string(place.port); }

  const std::atomic<bool>& aborted_;
};

}  // namespace lhost_gloo
