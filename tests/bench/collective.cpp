// collective.cpp - what an all_reduce of float32 costs between two processes of this machine, one thread each: the plugin
// gloo with either order, and c10d's ProcessGroupGloo alone. Prints microseconds, of interleaved rounds: the 10th and 50th
// percentile of the time that passed, and the CPU time of one process with all its threads.
#define LHOST_TEST_TRANSPORT "gloo"
#include "plugins/collective/rig.hpp"

#include <ATen/ops/from_blob.h>
#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdio>

namespace {
using namespace lhost_test;

constexpr int kRounds = 5;
struct Way {
  const char* name;
  std::function<void(const Tensor&)> all_reduce;
  std::vector<double> us;
  double cpu_us = 0;
};

double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> bare(int rank, int port, int fd) {
  c10d::TCPStoreOptions s;
  s.port = static_cast<uint16_t>(port);
  s.isServer = rank == 0;
  s.waitWorkers = false;
  if (s.isServer) s.masterListenFd = fd;
  auto o = c10d::ProcessGroupGloo::Options::create();
  o->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::TCPStore>("127.0.0.1", s),
                                                     rank, 2, o);
}

void measure(std::vector<Way>& ways, int64_t count, int repeat) {
  const Tensor t(kFloat32, count);
  for (Way& w : ways) w.us.clear(), w.cpu_us = 0;
  for (int round = 0; round < kRounds; ++round)
    for (Way& w : ways) {
      double cpu_start = 0;
      for (int i = -repeat / 10; i < repeat; ++i) {
        if (i == 0) cpu_start = cpu_us();
        const auto start = std::chrono::steady_clock::now();
        w.all_reduce(t);
        const std::chrono::duration<double, std::micro> d = std::chrono::steady_clock::now() - start;
        if (i >= 0) w.us.push_back(d.count());
      }
      w.cpu_us += (cpu_us() - cpu_start) / repeat / kRounds;
    }
  for (Way& w : ways) std::sort(w.us.begin(), w.us.end());
}

void rank(int64_t me, const int64_t* ports, const int* fds) {
  offer_services();
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<Way> ways;
  const char* orders[] = {"rank", "backend"};
  for (int i = 0; i < 2; ++i) {
    Where w;
    w.rank = me, w.size = 2, w.port = ports[i], w.listen_fd = me == 0 ? fds[i] : -1;
    ranks.push_back(std::make_unique<Rank>(w, Options{{"order", std::string(orders[i])}}));
    Rank& r = *ranks.back();
    r.init();
    ways.push_back({orders[i], [&r](const Tensor& t) { r.all_reduce(t, t, LH_REDUCE_SUM); }, {}});
  }
  auto group = bare(static_cast<int>(me), static_cast<int>(ports[2]), fds[2]);
  ways.push_back({"c10d",
                  [&](const Tensor& t) {
                    std::vector<at::Tensor> x{at::from_blob(t.get()->data, {t.get()->shape[0]}, at::kFloat)};
                    group->allreduce(x)->wait();
                  },
                  {}});
  if (me == 0) {
    std::printf("%10s", "bytes");
    for (const Way& w : ways) std::printf(" | %8s: p10  median     cpu", w.name);
    std::printf("\n");
  }
  for (const int64_t bytes : {4, 4096, 65536, 1 << 20, 8 << 20}) {
    measure(ways, bytes / 4, static_cast<int>(std::clamp<int64_t>((64 << 20) / bytes, 10, 500)));
    if (me != 0) continue;
    std::printf("%10ld", static_cast<long>(bytes));
    for (const Way& w : ways)
      std::printf(" | %13.1f %7.1f %7.1f", w.us[w.us.size() / 10], w.us[w.us.size() / 2], w.cpu_us);
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main() {
  int64_t ports[3];
  int fds[3];
  for (int i = 0; i < 3; ++i) fds[i] = listen_somewhere(ports[i]);
  const pid_t child = fork();  // before any thread
  rank(child == 0 ? 1 : 0, ports, fds);
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
}
