#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "event.pb.h"
#include "plugins/logger/logger_run.hpp"

namespace {

using lhost::tensorboard::Event;
using lhost_test::failure;
using lhost_test::FullDisk;
using lhost_test::LoggerRun;
using lhost_test::State;
using lhost_test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// CRC-32C bit by bit, as TFRecord masks it
uint32_t masked(const std::string& bytes) {
  uint32_t c = 0xffffffff;
  for (const char b : bytes) {
    c ^= static_cast<uint8_t>(b);
    for (int i = 0; i < 8; ++i) c = (c & 1) ? (c >> 1) ^ 0x82f63b78 : c >> 1;
  }
  c = ~c;
  return ((c >> 15) | (c << 17)) + 0xa282ead8;
}

std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> all;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t length_crc = 0, crc = 0;
    if (bytes.size() - at < 16) throw std::runtime_error("record cut short");
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&length_crc, &bytes[at + 8], 4);
    if (masked(bytes.substr(at, 8)) != length_crc) throw std::runtime_error("wrong crc of the length");
    if (bytes.size() - at - 16 < length) throw std::runtime_error("record cut short");
    all.push_back(bytes.substr(at + 12, length));
    std::memcpy(&crc, &bytes[at + 12 + length], 4);
    if (masked(all.back()) != crc) throw std::runtime_error("wrong crc of the data");
    at += 16 + length;
  }
  return all;
}

class TensorBoardLogger : public ::testing::Test {
 protected:
  std::vector<std::string> files(const std::string& folder = "tensorboard") const {
    std::vector<std::string> names;
    for (const auto& e : std::filesystem::directory_iterator(dir_ / folder))
      names.push_back(folder + "/" + e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<Event> events(const std::string& file) const {
    std::vector<Event> all;
    for (const std::string& r : records(dir_.read(file))) EXPECT_TRUE(all.emplace_back().ParseFromString(r));
    return all;
  }
  // The steps at which a tag has a value, over all files as TensorBoard reads them.
  std::vector<int64_t> steps(const std::string& tag) const {
    std::vector<int64_t> all;
    for (const std::string& f : files())
      for (const Event& e : events(f))
        for (const auto& v : e.summary().value())
          if (v.tag() == tag) all.push_back(e.step());
    return all;
  }
  TempDir dir_;
};

std::vector<int64_t> tens(int64_t to) {
  std::vector<int64_t> v;
  for (int64_t s = 10; s <= to; s += 10) v.push_back(s);
  return v;
}

TEST_F(TensorBoardLogger, WritesOneEventARecord) {
  LoggerRun("tensorboard", dir_.path())
      .open()
      .record(10, {{"loss", 0.5}, {"acc", 0.1}})
      .record(20, {{"loss", 0.25}});
  ASSERT_EQ(files().size(), 1u);
  EXPECT_THAT(files()[0],
              ::testing::MatchesRegex("tensorboard/events\\.out\\.tfevents\\.[0-9]{10}\\..+\\.[0-9]+\\.0"));
  const std::vector<Event> all = events(files()[0]);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].file_version(), "brain.Event:2");
  EXPECT_EQ(all[1].step(), 10);
  EXPECT_NEAR(all[1].wall_time(), 1700000010.123456789, 1e-6);
  ASSERT_EQ(all[1].summary().value_size(), 2);
  EXPECT_EQ(all[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(all[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(all[1].summary().value(1).tag(), "acc");
  EXPECT_EQ(all[1].summary().value(1).simple_value(), 0.1f);
  ASSERT_EQ(all[2].summary().value_size(), 1);
  EXPECT_EQ(all[2].summary().value(0).simple_value(), 0.25f);
}

// Field numbers and types by hand from TensorBoard's event.proto and summary.proto.
TEST_F(TensorBoardLogger, HasTensorBoardsBytes) {
  LoggerRun("tensorboard", dir_.path()).open().record(300, {{"ab", 1.0}});
  const std::vector<std::string> all = records(dir_.read(files().at(0)));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0][0], 0x09);  // wall_time, double
  EXPECT_EQ(all[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  const double time = 1700000300.123456789;
  std::string expected = "\x09" + std::string(reinterpret_cast<const char*>(&time), 8);
  expected += "\x10\xac\x02";  // step = 300
  expected +=
      "\x2a\x0b\x0a\x09\x0a\x02"
      "ab";                                            // summary { value { tag = "ab"
  expected += std::string("\x15\x00\x00\x80\x3f", 5);  // simple_value = 1.0
  EXPECT_EQ(all[1].substr(9), expected.substr(9));
}

TEST_F(TensorBoardLogger, KeepsWhatIsNotFinite) {
  LoggerRun("tensorboard", dir_.path()).open().record(10, {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}});
  const auto values = events(files().at(0)).at(1).summary();
  EXPECT_TRUE(std::isnan(values.value(0).simple_value()));
  EXPECT_EQ(values.value(1).simple_value(), INFINITY);
  EXPECT_EQ(values.value(2).simple_value(), -INFINITY);
}

TEST_F(TensorBoardLogger, WritesHyperParametersAsText) {
  LoggerRun run("tensorboard", dir_.path());
  run.open();
  const lh_pair pairs[] = {{LH_STR("optimizer.lr"), LH_STR("0.001")}, {LH_STR("a"), LH_STR("\"x|y\"")}};
  lhost_test::call(run.component()->params(run.component().self, pairs, 2));
  run.close();
  const Event e = events(files().at(0)).at(1);
  EXPECT_EQ(e.step(), 0);
  const auto& value = e.summary().value(0);
  EXPECT_EQ(value.tag(), "hyper_parameters/text_summary");
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(value.tensor().dtype(), 7);
  EXPECT_THAT(value.tensor().string_val(0),
              AllOf(HasSubstr("| optimizer.lr | 0.001 |\n"), HasSubstr("| a | \"x\\|y\" |\n")));
}

TEST_F(TensorBoardLogger, ResumesWithoutDoubles) {
  State state;
  {
    LoggerRun run("tensorboard", dir_.path());
    run.open().steps(10, 100);
    state = run.save();
    run.steps(110, 150);
  }
  LoggerRun("tensorboard", dir_.path()).resume(&state).steps(110, 200).close();
  EXPECT_EQ(steps("loss"), tens(200));
  ASSERT_EQ(files().size(), 2u);
  const std::vector<Event> second = events(files()[1]);
  EXPECT_EQ(second.at(0).file_version(), "brain.Event:2");
  EXPECT_EQ(second.at(1).session_log().status(), lhost::tensorboard::SessionLog::START);
  EXPECT_EQ(second.at(1).step(), 101);  // TensorBoard drops what it had read from here on
}

TEST_F(TensorBoardLogger, ResumesAgainFromTheOlderCheckpoint) {
  State early, late;
  {
    LoggerRun run("tensorboard", dir_.path());
    run.open().steps(10, 50);
    early = run.save();
    run.steps(60, 100);
  }
  {
    LoggerRun run("tensorboard", dir_.path());
    run.resume(&early).steps(60, 120);
    late = run.save();
    run.steps(130, 150);
  }
  LoggerRun("tensorboard", dir_.path()).resume(&late).steps(130, 160).close();
  EXPECT_EQ(steps("loss"), tens(160));
  LoggerRun("tensorboard", dir_.path()).resume(&early).steps(60, 80).close();
  EXPECT_EQ(steps("loss"), tens(80));
}

TEST_F(TensorBoardLogger, ResumesWhereTheFileIsGoneAndSaysSo) {
  State state;
  {
    LoggerRun run("tensorboard", dir_.path());
    run.open().steps(10, 20);
    state = run.save();
  }
  std::filesystem::remove_all(dir_ / "tensorboard");
  lhost_test::logged().clear();
  LoggerRun("tensorboard", dir_.path()).resume(&state).steps(30, 30).close();
  EXPECT_THAT(steps("loss"), ElementsAre(30));
  EXPECT_THAT(lhost_test::logged(), ElementsAre(HasSubstr("is gone")));
}

TEST_F(TensorBoardLogger, ResumesWithoutStateInANewFile) {
  LoggerRun("tensorboard", dir_.path()).open().steps(10, 20).close();
  LoggerRun("tensorboard", dir_.path()).resume(nullptr).steps(30, 40).close();
  EXPECT_EQ(steps("loss"), tens(40));
}

TEST_F(TensorBoardLogger, ShowsRecordsAfterFlush) {
  LoggerRun run("tensorboard", dir_.path(), {{"dir", "a/b"}});
  run.open().steps(10, 30).flush();
  EXPECT_EQ(events(files("a/b").at(0)).size(), 4u);
}

TEST_F(TensorBoardLogger, TwoInOneFolderAreRefused) {
  LoggerRun first("tensorboard", dir_.path()), second("tensorboard", dir_.path());
  first.open();
  EXPECT_THAT(failure(second.try_open()), HasSubstr("another logger"));
  EXPECT_THROW(LoggerRun("tensorboard", dir_.path(), {{"dir", "a/../../b"}}), lhost_test::StatusError);
}

TEST_F(TensorBoardLogger, SurvivesAFullDisk) {
  LoggerRun run("tensorboard", dir_.path());
  run.open().steps(10, 10);
  {
    FullDisk full(30);
    EXPECT_THAT(failure(run.try_flush()),
                AllOf(HasSubstr("tfevents"), HasSubstr("cannot be written: File too large")));
  }
  run.steps(20, 20).close();
  EXPECT_EQ(steps("loss"), tens(20));
}

}  // namespace
