// One rank ends badly: whatever the cause and the moment, the run ends in seconds with that rank's words last on the
// terminal and its exit code, result.json says the same, and nothing is left behind.
#include "lhost/runtime.hpp"
#include "support/shell.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const char* const kManifest = R"(
extends = ")" LHOST_TEST_SOURCE R"(/configs/digits.toml"
[run]
name = "t"
stages = ["fit"]
[trainer]
devices = 2
max_epochs = 2
limit_train_batches = 4
num_sanity_val_steps = 0
[collective]
timeout = "2s"
)";

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

struct Failures : testing::Test {
  // The command's environment carries a mark by which every process of it can be found.
  lhost_test::Outcome lhost(const std::string& arguments, const std::string& before = "") {
    const std::string manifest = dir.write("t.toml", kManifest);
    return lhost_test::shell("cd " + dir.path() + " && " + before + " LHOST_TEST_MARK=" + dir.path() +
                             " timeout 40 " + LHOST_TEST_BIN "/lhost run " + manifest +
                             " --plugin-dir " LHOST_TEST_FIXTURES "/e2e run.dir=" + dir / "runs" + " " +
                             arguments);
  }
  std::vector<std::string> left_behind() const {
    std::vector<std::string> found;
    for (const auto& e : fs::directory_iterator("/proc")) {
      const std::string name = e.path().filename();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      std::ifstream in(e.path() / "environ");
      const std::string all((std::istreambuf_iterator<char>(in)), {});
      if (all.find("LHOST_TEST_MARK=" + dir.path()) != all.npos) found.push_back(name);
    }
    return found;
  }
  void expect_nothing_left() const {
    for (int i = 0; i < 50 && !left_behind().empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_THAT(left_behind(), testing::IsEmpty());
    for (const auto& e : fs::directory_iterator("/dev/shm"))
      EXPECT_EQ(e.path().filename().string().find("lhost"), std::string::npos) << e.path();
  }
  nlohmann::json result(int version = 0) const {
    return nlohmann::json::parse(dir.read("runs/t/version_" + std::to_string(version) + "/result.json"));
  }
  lhost_test::TempDir dir;
};

struct Cause {
  const char *act, *words;
  int exit_code;
  double seconds;  // at most
};
const Cause kCauses[] = {
    {"throw", "boom", 1, 5}, {"kill9", "SIGKILL", 137, 5}, {"segv", "SIGSEGV", 139, 5},
    {"exit7", "7", 7, 5},    {"exit0", "", 1, 5},          {"oom", "out of memory", 3, 5},
    {"hang", "rank", 1, 12}, {"busy", "rank", 1, 12},      {"stop", "stopped", 1, 12}};
const char* const kPhases[] = {"create", "start", "batch", "before_step", "validation", "teardown"};

struct Case {
  Cause cause;
  std::string phase, launcher;
  int rank;
};

// Every cause in every phase, with victim and launcher taking turns; each pair of cause and launcher comes with both ranks.
std::vector<Case> cases() {
  std::vector<Case> all;
  int turn = 0;
  for (const Cause& cause : kCauses)
    for (const char* phase : kPhases) {
      ++turn;
      const bool slow = cause.seconds > 5;
      const std::string at = phase;
      if (at == "teardown" && std::string(cause.act) == "exit0") continue;  // by then nothing is missing
      if (slow && at != "batch" && at != "validation" && at != "start")
        continue;  // each costs the time limit
      all.push_back({cause, phase, turn % 2 ? "exec" : "spawn", (turn / 2) % 2});
    }
  return all;
}

struct FailureGrid : Failures, testing::WithParamInterface<Case> {};

TEST_P(FailureGrid, F057_ddDie_EndsTheRunAndNamesTheRank) {
  const Case& c = GetParam();
  const std::string rank = std::to_string(c.rank);
  const auto start = Clock::now();
  const auto o =
      lhost("strategy.use=ddp launcher.use=" + c.launcher + " 'callback+={use=\"saboteur\", rank=" + rank +
            ", act=\"" + c.cause.act + "\", phase=\"" + c.phase + "\"}'");
  EXPECT_LT(seconds_since(start), c.cause.seconds + 2) << "two seconds to start";
  const bool made = c.phase == "create" && std::string(c.cause.act) == "throw";
  const int expected = made ? 4 : c.cause.exit_code;  // a plugin that cannot be made is refused
  EXPECT_EQ(o.exit_code, expected) << o.output;
  const std::string end =
      o.output.substr(o.output.rfind("error:") == o.output.npos ? 0 : o.output.rfind("error:"));
  EXPECT_THAT(end, HasSubstr("rank " + rank)) << o.output;
  EXPECT_THAT(end, HasSubstr(c.cause.words)) << o.output;
  const nlohmann::json r = result();
  EXPECT_EQ(r.at("outcome"), "failed");
  EXPECT_EQ(r.at("exit_code"), expected);
  EXPECT_THAT(r.at("error").at("message").get<std::string>(), HasSubstr("rank " + rank));
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Every, FailureGrid, testing::ValuesIn(cases()), [](const auto& x) {
  return std::string(x.param.cause.act) + "_" + x.param.phase + "_rank" + std::to_string(x.param.rank) + "_" +
         x.param.launcher;
});

TEST_F(Failures, ADataErrorOnOneRankIsItsOwn) {
  const auto o = lhost("strategy.use=ddp data.train.labels=" +
                       dir.write("labels", std::string("\0\0\x08\x01\0\0\x05\x9d", 8)));
  EXPECT_NE(o.exit_code, 0);
  EXPECT_THAT(o.output, HasSubstr("labels"));
  expect_nothing_left();
}

// Only rank 0 writes what is larger than the limit.
TEST_F(Failures, F023_ckAtomic_AFullDiskOnRankZeroIsNamedAndLeavesNoHalfFile) {
  const auto o = lhost("strategy.use=ddp", "ulimit -f 150;");
  EXPECT_EQ(o.exit_code, 3) << o.output;
  EXPECT_THAT(o.output.substr(o.output.rfind("error:")), AllOf(HasSubstr("rank 0"), HasSubstr(".ckpt")));
  for (const auto& e : fs::recursive_directory_iterator(dir / "runs"))
    EXPECT_EQ(e.path().string().find("lhost-tmp"), std::string::npos) << e.path();
  expect_nothing_left();
}

TEST_F(Failures, F059_ddPort_ABusyPortIsNamed) {
  const auto start = Clock::now();
  const auto o = lhost(
      "strategy.use=ddp launcher.use=exec",
      "exec 9<>/dev/null; python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\", 0)); "
      "s.listen(); print(s.getsockname()[1], flush=True); time.sleep(8)' > port & sleep 1; "
      "MASTER_PORT=$(cat port)");
  EXPECT_LT(seconds_since(start), 10);
  EXPECT_EQ(o.exit_code, 3) << o.output;
  EXPECT_THAT(o.output, HasSubstr("port " + dir.read("port").substr(0, 5)));
}

TEST_F(Failures, F059_ddPort_EightRunsAtOnceAllFinish) {
  std::vector<std::thread> runs;
  std::vector<int> codes(8);
  const std::string manifest = dir.write("t.toml", kManifest);
  for (size_t i = 0; i < codes.size(); ++i)
    runs.emplace_back([&, i] {
      codes[i] =
          lhost_test::shell("timeout 60 " LHOST_TEST_BIN "/lhost run " + manifest +
                            " collective.timeout=30s trainer.max_epochs=1 strategy.use=ddp -q run.dir=" +
                            dir / ("runs" + std::to_string(i)))
              .exit_code;
    });
  for (std::thread& t : runs) t.join();
  EXPECT_THAT(codes, testing::Each(0));
}

TEST_F(Failures, F190_sgConsistent_ASignalToAnyRankStopsAllAfterOneStepWithOneCheckpoint) {
  for (const char* target : {"0", "1", "all"}) {
    const lhost_test::TempDir other;
    const std::string to = target, whom = to == "all" ? "$P"
                                                      : "$(pgrep -P $P | sed -n " +
                                                            std::to_string(std::stoi(to) + 1) + "p)";
    const std::string manifest = dir.write("t.toml", kManifest);
    const auto o =
        lhost_test::shell("cd " + other.path() + "; timeout 40 " LHOST_TEST_BIN "/lhost run " + manifest +
                          " strategy.use=ddp trainer.max_epochs=100000 run.dir=runs -q & T=$!; sleep 2; "
                          "P=$(pgrep -P $T); kill -TERM " +
                          whom + "; wait $T");
    EXPECT_EQ(o.exit_code, 143) << target << "\n" << o.output;
    EXPECT_TRUE(fs::exists(other / "runs/t/version_0/checkpoints/last.ckpt")) << target << o.output;
    EXPECT_THAT(o.output, HasSubstr("terminated at rank 0")) << target;
  }
}

TEST_F(Failures, F058_ddZombie_KillingTheSupervisorEndsItsRanks) {
  const std::string manifest = dir.write("t.toml", kManifest);
  for (const char* launcher : {"exec", "spawn"}) {
    lhost_test::shell(
        "cd " + dir.path() + "; LHOST_TEST_MARK=" + dir.path() + " " LHOST_TEST_BIN "/lhost run " + manifest +
        " strategy.use=ddp launcher.use=" + launcher +
        " trainer.max_epochs=100000 run.dir=runs -q & P=$!; sleep 2; kill -9 $P; wait $P 2>/dev/null");
    expect_nothing_left();
  }
}

TEST_F(Failures, F074_ddLongop_ASlowCheckpointTripsNobody) {
  const auto o = lhost(
      "strategy.use=ddp 'callback+={use=\"saboteur\", rank=0, act=\"sleep\", lasts=\"5s\", "
      "phase=\"checkpoint\"}'");
  EXPECT_EQ(o.exit_code, 0) << o.output;
}

TEST_F(Failures, DivergentControlFlowIsNamedByCheck) {
  const auto o = lhost(
      "strategy.use=ddp collective.check=true collective.timeout=10s 'callback+={use=\"saboteur\", rank=1, "
      "act=\"broadcast\", "
      "phase=\"before_step\"}'");
  EXPECT_NE(o.exit_code, 0);
  EXPECT_THAT(o.output, HasSubstr("the ranks do not do the same")) << o.output;
  EXPECT_THAT(o.output, HasSubstr("broadcast of 3 float32")) << o.output;
}

TEST_F(Failures, F194_sgRequeue_ARestartGoesOnFromTheLastCheckpoint) {
  const std::string plain = "strategy.use=ddp model.dropout=0 trainer.max_epochs=4 ";
  ASSERT_EQ(lhost(plain).exit_code, 0);
  const auto o = lhost(
      plain + "run.max_restarts=2 'callback+={use=\"saboteur\", rank=1, act=\"kill9\", at=9, unless=\"" +
      dir / "once" + "\"}'");
  EXPECT_EQ(o.exit_code, 0) << o.output;
  EXPECT_THAT(o.output, HasSubstr("started again (1 of 2)"));
  EXPECT_EQ(result(0).at("metrics").at("last").at("val_loss"),
            result(1).at("metrics").at("last").at("val_loss"))
      << "as if nothing had happened";
  const auto twice =
      lhost(plain + "run.max_restarts=5 'callback+={use=\"saboteur\", rank=1, act=\"throw\", at=1}'");
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.output, HasSubstr("the same failure twice"));
}

TEST_F(Failures, F073_ddExit_ShortRunsOfFourRanksAllEndWell) {
  for (int i = 0; i < 15; ++i)
    ASSERT_EQ(lhost("strategy.use=ddp_spawn trainer.devices=4 trainer.max_steps=3 collective.timeout=30s -q")
                  .exit_code,
              0)
        << i;
}

}  // namespace
