#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plugins/logger/logger_run.hpp"

namespace {

using lhost_test::failure;
using lhost_test::FullDisk;
using lhost_test::LoggerRun;
using lhost_test::State;
using lhost_test::TempDir;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class JsonlLogger : public ::testing::Test {
 protected:
  std::string file() const { return dir_.read("metrics.jsonl"); }
  // Every line must be whole and strict JSON.
  std::vector<json> lines() const {
    std::vector<json> all;
    const std::string text = file();
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      EXPECT_NE(end, text.npos);
      all.push_back(json::parse(text.substr(at, end - at)));
      at = end + 1;
    }
    return all;
  }
  TempDir dir_;
};

TEST_F(JsonlLogger, WritesOneObjectARecord) {
  LoggerRun("jsonl", dir_.path())
      .open()
      .record(10, {{"loss", 0.5}})
      .record(20, {{"test_acc", 0.1}}, LH_STAGE_TEST);
  EXPECT_EQ(
      file(),
      "{\"global_step\":10,\"epoch\":1,\"samples\":320,\"unix_time\":1700000010.123456,\"stage\":\"fit\","
      "\"metrics\":{\"loss\":0.5}}\n"
      "{\"global_step\":20,\"epoch\":2,\"samples\":640,\"unix_time\":1700000020.123456,\"stage\":\"test\","
      "\"metrics\":{\"test_acc\":0.1}}\n");
}

TEST_F(JsonlLogger, NamesTheStages) {
  LoggerRun run("jsonl", dir_.path());
  run.open();
  for (const int32_t stage : {LH_STAGE_FIT, LH_STAGE_VALIDATE, LH_STAGE_TEST, LH_STAGE_PREDICT})
    run.record(1, {}, stage);
  run.close();
  std::vector<std::string> names;
  for (const json& line : lines()) names.push_back(line["stage"]);
  EXPECT_THAT(names, ::testing::ElementsAre("fit", "validate", "test", "predict"));
}

TEST_F(JsonlLogger, WritesWhatIsNotFiniteAsText) {
  LoggerRun("jsonl", dir_.path())
      .open()
      .record(10, {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}, {"d", 1e300}});
  const json metrics = lines().at(0)["metrics"];
  EXPECT_EQ(metrics["a"], "NaN");
  EXPECT_EQ(metrics["b"], "Infinity");
  EXPECT_EQ(metrics["c"], "-Infinity");
  EXPECT_EQ(metrics["d"], 1e300);
}

TEST_F(JsonlLogger, EscapesNames) {
  const std::string odd = "say \"hi\"\\\n\x01 \xc3\xa4";
  LoggerRun run("jsonl", dir_.path());
  run.open().record(10, {{odd, 1}, {"broken \xff", 2}}).record(20, {{odd, 3}}).close();
  EXPECT_EQ(lines().at(0)["metrics"][odd], 1);
  EXPECT_EQ(lines().at(0)["metrics"]["broken \xef\xbf\xbd"], 2);
  EXPECT_EQ(lines().at(1)["metrics"][odd], 3);
}

TEST_F(JsonlLogger, ResumesWithoutDoubles) {
  State state;
  LoggerRun("jsonl", dir_.path()).open().steps(10, 200).close();
  const std::string uninterrupted = file();
  std::filesystem::remove(dir_ / "metrics.jsonl");
  {
    LoggerRun run("jsonl", dir_.path());
    run.open().steps(10, 100);
    state = run.save();
    run.steps(110, 150);
  }
  LoggerRun("jsonl", dir_.path()).resume(&state).steps(110, 200).close();
  EXPECT_EQ(file(), uninterrupted);
}

TEST_F(JsonlLogger, ResumesAfterTheLastWholeLine) {
  State state;
  {
    LoggerRun run("jsonl", dir_.path());
    run.open().steps(10, 30);
    state = run.save();
  }
  dir_.write("metrics.jsonl", file().substr(0, file().size() - 5));  // a crash of the machine lost the end
  LoggerRun("jsonl", dir_.path()).resume(&state).steps(40, 50).close();
  std::vector<int64_t> steps;
  for (const json& line : lines()) steps.push_back(line["global_step"]);
  EXPECT_THAT(steps, ::testing::ElementsAre(10, 20, 40, 50));
}

TEST_F(JsonlLogger, ResumesWithoutStateOrFile) {
  LoggerRun("jsonl", dir_.path()).resume(nullptr).steps(10, 10).close();
  LoggerRun("jsonl", dir_.path()).resume(nullptr).steps(20, 20).close();
  EXPECT_EQ(lines().size(), 2u);
}

TEST_F(JsonlLogger, NeverOverwritesAndStaysInTheRun) {
  dir_.write("metrics.jsonl", "kept");
  EXPECT_THAT(failure(LoggerRun("jsonl", dir_.path()).try_open()),
              HasSubstr("metrics.jsonl: exists already"));
  EXPECT_EQ(file(), "kept");
  EXPECT_THROW(LoggerRun("jsonl", dir_.path(), {{"file", "../x"}}), lhost_test::StatusError);
}

TEST_F(JsonlLogger, SurvivesAFullDisk) {
  LoggerRun run("jsonl", dir_.path());
  run.open();
  {
    FullDisk full(7);
    EXPECT_EQ(failure(run.try_record(10, {{"a", 2}})), "(no error)");
    EXPECT_THAT(failure(run.try_flush()),
                AllOf(HasSubstr("metrics.jsonl: cannot be written"), HasSubstr("large")));
  }
  run.record(20, {{"a", 3}}).close();
  EXPECT_EQ(lines().size(), 2u);
}

}  // namespace
