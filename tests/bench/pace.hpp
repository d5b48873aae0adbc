// pace.hpp - how the driver paces a program that trains: it writes a number of steps as a line to standard input, the
// program makes as many and answers with a line of JSON; end of input ends the program. Start-up, waiting and the
// first steps are so never part of a measured slice. Used by raw_loop.cpp and pace.cpp; peers/pace.py is the same.
#pragma once
#include <time.h>

#include <cstdint>
#include <cstdio>

class Pace {
 public:
  // Waits for the driver. False: there is nothing more to do.
  bool wait() {
    long long n = 0;
    if (std::scanf("%lld", &n) != 1 || n < 1) return false;
    left_ = n;
    wall_ = now(CLOCK_MONOTONIC);
    cpu_ = now(CLOCK_PROCESS_CPUTIME_ID);
    thread_ = now(CLOCK_THREAD_CPUTIME_ID);
    return true;
  }
  bool step() { return --left_ == 0; }  // true: the slice is over
  void answer(double loss) const {
    const double wall = now(CLOCK_MONOTONIC) - wall_, thread = now(CLOCK_THREAD_CPUTIME_ID) - thread_;
    const double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    std::printf("{\"wall\": %.9f, \"cpu\": %.9f, \"thread\": %.9f, \"cpu_total\": %.9f, \"loss\": %.9g}\n",
                wall, cpu - cpu_, thread, cpu, loss);
    std::fflush(stdout);
  }

 private:
  static double now(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  int64_t left_ = 0;
  double wall_ = 0, cpu_ = 0, thread_ = 0;
};
