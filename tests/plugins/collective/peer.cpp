// peer.cpp - one rank of gloo as a process of its own, for tests that kill it.
//   collective_peer <rank> <size> <port> <job> <what> <seconds> <cross_memory: 0 or 1>
// what: "reduce" forever; "stop" after 5 rounds, that is sleep. Prints a line on each: what was logged at the start, met,
// round 5, and at the end the code and text of the error.
#define LHOST_TEST_TRANSPORT "gloo"
#include "rig.hpp"

#include <csignal>
#include <cstdio>

namespace {
using namespace lhost_test;

void reduce(Rank& r, bool stop) {
  const Tensor t(kFloat32, 100000), small(kFloat32, 3);
  for (int round = 1;; ++round) {
    if (stop && round == 6) std::this_thread::sleep_for(std::chrono::hours(1));
    r.all_reduce(t, t, LH_REDUCE_AVG);
    r.all_reduce(small, small, LH_REDUCE_MAX);
    if (round == 5) std::puts("round 5"), std::fflush(stdout);
  }
}

}  // namespace

int main(int, char** argv) {
  offer_services();
  std::signal(SIGPIPE, SIG_IGN);  // as in every rank of the host
  Where w;
  w.rank = std::stol(argv[1]);
  w.size = std::stol(argv[2]);
  w.port = std::stol(argv[3]);
  w.job = argv[4];
  const std::string what = argv[5];
  w.timeout_ns = static_cast<int64_t>(1e9 * std::stod(argv[6]));
  try {
    Rank r(w, {{"cross_memory", *argv[7] == '1'}});
    r.init();
    for (const std::string& line : logged()) std::puts(line.c_str());
    std::puts("met");
    std::fflush(stdout);
    reduce(r, what == "stop");
  } catch (const StatusError& e) {
    std::printf("error %d %s\n", e.code, e.what());
    return 1;
  }
}
