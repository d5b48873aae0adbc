// support.hpp - runs of launch_program: what it printed, its exit code, how long it took, and what it left behind.
#pragma once
#include "support/shell.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lhost_test {

#if defined(__SANITIZE_THREAD__)
constexpr bool kForksWork = false;  // the sanitizer has a thread of its own
#else
constexpr bool kForksWork = true;
#endif
// What takes a second at most; loose, for a machine that does a lot else. What hangs takes a minute.
constexpr double kSoon = 12;

// Processes whose command line names this folder; zombies have none.
inline std::vector<int> processes_of(const std::string& folder) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::ifstream in(entry.path() / "cmdline");
    std::string line;
    std::getline(in, line);  // the process may be gone by now
    if (line.find(folder) != line.npos) found.push_back(std::stoi(name));
  }
  return found;
}

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
template <class F>
bool within(double seconds, F&& condition) {
  for (const double end = now_s() + seconds; now_s() < end; usleep(5000))
    if (condition()) return true;
  return condition();
}

struct Supervised {
  int exit_code = -1;
  std::string output;
  double seconds = 0;
};

class Supervise : public testing::Test {
 protected:
  std::string command(const std::string& flags, const std::string& behaviours) const {
    return "timeout -s KILL 60 " LHOST_TEST_LAUNCH_PROGRAM " --folder " + dir_.path() + " " + flags + " " +
           behaviours;
  }
  Supervised run(const std::string& flags, const std::string& behaviours) const {
    const double start = now_s();
    const Outcome o = shell(command(flags, behaviours));
    Supervised s{o.exit_code, o.output, now_s() - start};
    EXPECT_THAT(processes_of(dir_.path()), testing::IsEmpty()) << s.output;
    return s;
  }
  std::string log(int rank) const { return dir_.read("rank_" + std::to_string(rank) + ".log"); }
  TempDir dir_;
};

}  // namespace lhost_test
