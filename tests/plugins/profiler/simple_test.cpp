#include "support/component.hpp"

#include <gmock/gmock.h>
#include <lhost/profiler.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace lhost_test;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMs = 1000000;

struct Simple : testing::Test {
  Simple() {
    char name[] = "/tmp/lhost-profiler-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Simple() override {
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
  }
  uint64_t start(int64_t rank = 0) {
    lh_run_info info{};
    info.size = sizeof info;
    info.dir = str(folder);
    info.rank = rank;
    uint64_t mask = 0;
    call(profiler->start(profiler.self, &info, &mask));
    return mask;
  }
  void begin(int32_t span, int64_t ms) { profiler->begin(profiler.self, span, ms * kMs); }
  void end(int32_t span, int64_t ms) { profiler->end(profiler.self, span, ms * kMs); }
  std::string stop() {
    lh_str summary{};
    call(profiler->stop(profiler.self, &summary));
    return text(summary);
  }
  std::string file(const char* name) const {
    std::ifstream in(folder + "/" + name);
    std::stringstream s;
    s << in.rdbuf();
    return s.str();
  }
  std::string folder;
  Component<lh_profiler, lh_profiler_v0> profiler{"profiler", "simple"};
};

// Two steps of 40 and 60 ms, in them a forward of 10 and 30 ms, between them data for 100 ms: 200 ms in all.
const char* const kTable =
    "span           count     total s     mean ms      min ms      max ms   share\n"
    "step               2       0.100      50.000      40.000      60.000  50.0 %\n"
    "data               1       0.100     100.000     100.000     100.000  50.0 %\n"
    "forward            2       0.040      20.000      10.000      30.000  20.0 %\n"
    "wall time 0.200 s; forward, backward, sync and optimizer are parts of step";

TEST_F(Simple, TableOfSpansSortedByTotal) {
  EXPECT_EQ(start(), (1u << LH_SPAN_COUNT) - 1);
  begin(LH_SPAN_STEP, 1000);
  begin(LH_SPAN_FORWARD, 1000);
  end(LH_SPAN_FORWARD, 1010);
  end(LH_SPAN_STEP, 1040);
  begin(LH_SPAN_DATA, 1040);
  end(LH_SPAN_DATA, 1140);
  begin(LH_SPAN_STEP, 1140);
  begin(LH_SPAN_FORWARD, 1150);
  end(LH_SPAN_FORWARD, 1180);
  end(LH_SPAN_STEP, 1200);
  EXPECT_EQ(stop(), kTable);
  EXPECT_EQ(file("profile.txt"), std::string(kTable) + "\n");
}
TEST_F(Simple, ASpanInsideItselfCountsOnce) {
  start();
  begin(LH_SPAN_CALLBACK, 0);
  begin(LH_SPAN_CALLBACK, 10);
  end(LH_SPAN_CALLBACK, 20);
  end(LH_SPAN_CALLBACK, 50);
  EXPECT_THAT(stop(), HasSubstr("callback           1       0.050"));
}
TEST_F(Simple, UnknownAndUnopenedSpansAreIgnored) {
  start();
  end(LH_SPAN_STEP, 5);
  begin(LH_SPAN_COUNT, 1);
  end(LH_SPAN_COUNT, 2);
  begin(-1, 1);
  end(-1, 2);
  const std::string table = stop();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1) << table;
  EXPECT_THAT(table, HasSubstr("wall time 0.000 s"));
}
TEST_F(Simple, F130_pfRank_EachRankHasItsOwnFile) {
  start(3);
  stop();
  EXPECT_TRUE(fs::exists(folder + "/profile.rank_3.txt"));
  EXPECT_FALSE(fs::exists(folder + "/profile.txt"));
}
TEST_F(Simple, AFileThatCannotBeWrittenIsAnErrorWithItsPath) {
  start();
  fs::create_directory(folder + "/profile.txt");
  lh_str summary{};
  const std::string message = failure(profiler->stop(profiler.self, &summary));
  EXPECT_THAT(message, HasSubstr(folder + "/profile.txt: Is a directory"));
}

}  // namespace
