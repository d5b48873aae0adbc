// pace.hpp - how the driver paces a program that trains: it writes a number of steps as a line to standard input, the
// program makes as many and answers with a line of JSON; end of input ends the program. Start-up, waiting and the
// first steps are so never part of a measured slice. Used by raw_loop.cpp and pace.cpp; peers/pace.py is the same.
// A rank that a launcher has started has no standard input: with BENCH_PIPE=<path> in the environment, <path>.in and
// <path>.out are pipes that stand for it and for standard output, and only rank 0 is paced: the others wait for it.
#pragma once
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

class Pace {
 public:
  Pace() {
    const char *pipe = std::getenv("BENCH_PIPE"), *rank = std::getenv("RANK");
    paced_ = !pipe || !rank || std::string(rank) == "0";
    if (!pipe || !paced_) return;
    in_ = std::fopen((std::string(pipe) + ".in").c_str(), "re");
    out_ = std::fopen((std::string(pipe) + ".out").c_str(), "we");
  }
  // Waits for the driver. False: there is nothing more to do.
  bool wait() {
    long long n = 0;
    if (!paced_) return true;
    if (!in_ || std::fscanf(in_, "%lld", &n) != 1 || n < 1) return false;
    left_ = n;
    wall_ = now(CLOCK_MONOTONIC);
    cpu_ = now(CLOCK_PROCESS_CPUTIME_ID);
    thread_ = now(CLOCK_THREAD_CPUTIME_ID);
    return true;
  }
  bool step() { return paced_ && --left_ == 0; }  // true: the slice is over
  void answer(double loss) const {
    const double wall = now(CLOCK_MONOTONIC) - wall_, thread = now(CLOCK_THREAD_CPUTIME_ID) - thread_;
    const double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    std::fprintf(out_,
                 "{\"wall\": %.9f, \"cpu\": %.9f, \"thread\": %.9f, \"cpu_total\": %.9f, \"loss\": %.9g}\n",
                 wall, cpu - cpu_, thread, cpu, loss);
    std::fflush(out_);
  }

 private:
  static double now(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  std::FILE *in_ = stdin, *out_ = stdout;
  bool paced_ = true;
  int64_t left_ = 0;
  double wall_ = 0, cpu_ = 0, thread_ = 0;
};
