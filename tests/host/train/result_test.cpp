#include "train/result.hpp"

#include "base/files.hpp"
#include "support/temp_dir.hpp"

#include <lhost/abi.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace lhost {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json parsed(const RunResult& r) { return json::parse(to_json(r)); }

RunResult trained() {
  RunResult r;
  r.stages["fit"] = {2, 10, 640, 2};
  r.stages["test"] = {0, 0, 100, 0};
  r.last = {{"loss", 0.25}};
  r.best = {{"val_loss", 0.5}};
  r.test = {{"test_acc", 1}};
  r.best_path = "runs/a/best.ckpt";
  r.best_monitor = "val_loss";
  r.best_value = 0.5;
  r.last_path = "runs/a/last.ckpt";
  r.versions = {{"lhost", "1.2.3"}};
  r.plugins = {{"model:mlp", "1.0.0"}};
  return r;
}

TEST(ResultJson, HoldsWhatARunCameTo) {
  const json expected = {
      {"schema", 1},
      {"outcome", "done"},
      {"exit_code", 0},
      {"stages",
       {{"fit",
         {{"samples", 640}, {"seconds", 2.0}, {"samples_per_s", 320.0}, {"epochs", 2}, {"global_step", 10}}},
        {"test", {{"samples", 100}, {"seconds", 0.0}, {"samples_per_s", 0.0}}}}},
      {"metrics", {{"last", {{"loss", 0.25}}}, {"best", {{"val_loss", 0.5}}}, {"test", {{"test_acc", 1.0}}}}},
      {"checkpoints",
       {{"best", {{"path", "runs/a/best.ckpt"}, {"monitor", "val_loss"}, {"value", 0.5}}},
        {"last", "runs/a/last.ckpt"}}},
      {"versions", {{"lhost", "1.2.3"}, {"plugins", {{"model:mlp", "1.0.0"}}}}}};
  EXPECT_EQ(parsed(trained()), expected);
}

TEST(ResultJson, OfAFailureSaysWhatAndWhere) {
  RunResult r;
  r.outcome = "failed";
  r.code = Exit::environment;
  r.error = "disk full";
  r.error_code = "RESOURCE_EXHAUSTED";
  r.where = "checkpointer:torch (save)";
  r.stop_reason = "because";
  const json j = parsed(r);
  EXPECT_EQ(j["exit_code"], 3);
  EXPECT_EQ(j["error"], json({{"code", "RESOURCE_EXHAUSTED"},
                              {"message", "disk full"},
                              {"where", "checkpointer:torch (save)"}}));
  EXPECT_EQ(j["stop_reason"], "because");
  EXPECT_FALSE(parsed(RunResult{}).contains("error"));
  EXPECT_FALSE(parsed(RunResult{}).contains("stop_reason"));
}

TEST(ResultJson, WithoutCheckpointsSaysNull) {
  EXPECT_EQ(parsed(RunResult{})["checkpoints"], json({{"best", nullptr}, {"last", nullptr}}));
  EXPECT_EQ(parsed(RunResult{})["stages"], json::object());
}

TEST(ResultJson, WithoutAMonitorTheBestHasAPathOnly) {
  RunResult r;
  r.best_path = "x.ckpt";
  EXPECT_EQ(parsed(r)["checkpoints"]["best"], json({{"path", "x.ckpt"}}));
}

TEST(ResultJson, NumbersThatJsonLacksAreTexts) {
  RunResult r;
  r.last = {{"a", std::nan("")}, {"b", HUGE_VAL}, {"c", -HUGE_VAL}};
  r.best_path = "x.ckpt";
  r.best_value = std::nan("");
  EXPECT_EQ(parsed(r)["metrics"]["last"], json({{"a", "nan"}, {"b", "inf"}, {"c", "-inf"}}));
  EXPECT_EQ(parsed(r)["checkpoints"]["best"]["value"], "nan");
}

TEST(ResultJson, NumbersReadBackAsTheSame) {
  RunResult r;
  for (double v : {0.1, 1.0 / 3, 1e-310, 123456789.125}) {
    r.last["m"] = v;
    EXPECT_EQ(parsed(r)["metrics"]["last"]["m"].get<double>(), v);
  }
}

TEST(ResultJson, TextThatIsNotUtf8IsReplaced) {
  RunResult r;
  r.error = "bad \xFF byte";
  EXPECT_EQ(parsed(r)["error"]["message"], "bad \xEF\xBF\xBD byte");
}

TEST(WriteResult, PutsItIntoTheRunFolder) {
  const lhost_test::TempDir dir;
  RunResult r = trained();
  r.run_folder = dir.path();
  write_result(r);
  EXPECT_EQ(dir.read("result.json"), to_json(r));
  r.run_folder = dir / "none";
  EXPECT_THROW(write_result(r), Failure);
}

// abi.h lists the codes as `LH_NAME = n,` between LH_OK and LH_PEER_LOST.
TEST(CodeName, IsTheHeadersNameForEveryCode) {
  const std::string header = read_file(LHOST_TEST_SOURCE "/plugin-api/include/lhost/abi.h");
  int found = 0;
  size_t at = header.find("LH_OK = 0");
  ASSERT_NE(at, header.npos);
  const size_t end = header.find("};", at);
  for (; at < end; at = header.find("LH_", at + 1)) {
    const size_t equal = header.find(" = ", at);
    if (equal > end) break;
    EXPECT_EQ(code_name(std::stoi(header.substr(equal + 3))), header.substr(at + 3, equal - at - 3));
    ++found;
  }
  EXPECT_EQ(found, 19);
  EXPECT_STREQ(code_name(12345), "UNKNOWN");
}

}  // namespace
}  // namespace lhost
