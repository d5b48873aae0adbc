#include <gmock/gmock.h>

#include <sys/stat.h>

#include <cmath>

#include "plugins/logger/logger_run.hpp"

namespace {

using lhost_test::failure;
using lhost_test::FullDisk;
using lhost_test::LoggerRun;
using lhost_test::State;
using lhost_test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CsvLogger : public ::testing::Test {
 protected:
  std::string file() const { return dir_.read("metrics.csv"); }
  TempDir dir_;
};

TEST_F(CsvLogger, WritesOneRowARecord) {
  LoggerRun("csv", dir_.path())
      .open()
      .record(10, {{"loss", 0.5}, {"acc", 0.1}})
      .record(20, {{"acc", 1}, {"loss", 1e-7}});
  EXPECT_EQ(file(),
            "global_step,epoch,samples,unix_time,loss,acc\n"
            "10,1,320,1700000010.123456,0.5,0.1\n"
            "20,2,640,1700000020.123456,1e-07,1\n");
}

TEST_F(CsvLogger, WidensTheTableForALaterMetric) {
  LoggerRun run("csv", dir_.path());
  run.open()
      .record(10, {{"loss", 0.5}})
      .record(20, {{"loss", 0.25}, {"val_acc", 0.75}})
      .record(30, {{"val_acc", 1}});
  run.record(40, {{"b", 1}, {"a", 2}}).close();
  EXPECT_EQ(file(),
            "global_step,epoch,samples,unix_time,loss,val_acc,b,a\n"
            "10,1,320,1700000010.123456,0.5,,,\n"
            "20,2,640,1700000020.123456,0.25,0.75,,\n"
            "30,3,960,1700000030.123456,,1,,\n"
            "40,4,1280,1700000040.123456,,,1,2\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "metrics.csv.tmp"));
}

TEST_F(CsvLogger, WritesEachByteOnceWhileColumnsStay) {
  LoggerRun run("csv", dir_.path());
  run.open().record(10, {{"loss", 1}}).flush();
  const auto inode = [this] {
    struct stat st {};
    stat((dir_ / "metrics.csv").c_str(), &st);
    return st.st_ino;
  };
  const auto before = inode();
  int64_t last = 0;
  for (int64_t s = 20; s < 100000; s += 10) {
    run.record(s, {{"loss", 1}});
    const auto size = static_cast<int64_t>(std::filesystem::file_size(dir_ / "metrics.csv"));
    ASSERT_GE(size, last);
    last = size;
  }
  EXPECT_EQ(inode(), before);  // a rewritten file would be another one
}

TEST_F(CsvLogger, QuotesNames) {
  LoggerRun("csv", dir_.path())
      .open()
      .record(10, {{"a,b", 1}, {"say \"hi\"", 2}, {"two\nlines", 3}, {"plain name", 4}});
  EXPECT_EQ(file(),
            "global_step,epoch,samples,unix_time,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",plain name\n"
            "10,1,320,1700000010.123456,1,2,3,4\n");
}

TEST_F(CsvLogger, WritesWhatIsNotFinite) {
  LoggerRun("csv", dir_.path()).open().record(10, {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}});
  EXPECT_THAT(file(), HasSubstr(",nan,inf,-inf\n"));
}

TEST_F(CsvLogger, TakesTheLastOfTwoValuesOfOneName) {
  LoggerRun("csv", dir_.path()).open().record(10, {{"a", 1}, {"a", 2}});
  EXPECT_EQ(file(), "global_step,epoch,samples,unix_time,a\n10,1,320,1700000010.123456,2\n");
}

TEST_F(CsvLogger, RecordsARecordWithoutMetrics) {
  LoggerRun("csv", dir_.path()).open().record(10, {}).record(20, {{"a", 1}});
  EXPECT_EQ(
      file(),
      "global_step,epoch,samples,unix_time,a\n10,1,320,1700000010.123456,\n20,2,640,1700000020.123456,1\n");
}

TEST_F(CsvLogger, ShowsRecordsAfterFlush) {
  LoggerRun run("csv", dir_.path());
  run.open().record(10, {{"loss", 1}}).flush();
  EXPECT_THAT(file(), HasSubstr("\n10,"));
}

TEST_F(CsvLogger, ResumesWithoutDoubles) {
  State state;
  LoggerRun("csv", dir_.path()).open().steps(10, 200).close();
  const std::string uninterrupted = file();
  std::filesystem::remove(dir_ / "metrics.csv");
  {
    LoggerRun run("csv", dir_.path());
    run.open().steps(10, 100);
    state = run.save();
    run.steps(110, 150);
  }
  LoggerRun("csv", dir_.path()).resume(&state).steps(110, 200).close();
  EXPECT_EQ(file(), uninterrupted);
}

TEST_F(CsvLogger, ResumesWhenTheTableBecameWiderAfterTheCheckpoint) {
  State state;
  {
    LoggerRun run("csv", dir_.path());
    run.open().record(10, {{"two\nlines", 1}});
    state = run.save();
    run.record(20, {{"late, \"and\" odd", 2}}).record(30, {{"two\nlines", 3}});
  }
  LoggerRun("csv", dir_.path()).resume(&state).record(20, {{"late, \"and\" odd", 5}});
  EXPECT_EQ(file(),
            "global_step,epoch,samples,unix_time,\"two\nlines\",\"late, \"\"and\"\" odd\"\n"
            "10,1,320,1700000010.123456,1,\n"
            "20,2,640,1700000020.123456,,5\n");
}

TEST_F(CsvLogger, ResumesWithoutStateAfterTheLastWholeRow) {
  dir_.write("metrics.csv", "global_step,epoch,samples,unix_time,a\n10,1,320,1.000000,1\n20,2,6");
  LoggerRun("csv", dir_.path()).resume(nullptr).record(20, {{"a", 2}});
  EXPECT_EQ(file(),
            "global_step,epoch,samples,unix_time,a\n10,1,320,1.000000,1\n20,2,640,1700000020.123456,2\n");
}

TEST_F(CsvLogger, ResumesWhereTheFileIsGone) {
  State state;
  {
    LoggerRun run("csv", dir_.path());
    run.open().steps(10, 50);
    state = run.save();
  }
  for (const char* left : {"", "global_st"}) {
    dir_.write("metrics.csv", left);
    LoggerRun("csv", dir_.path()).resume(&state).record(60, {{"a", 1}});
    EXPECT_EQ(file(), "global_step,epoch,samples,unix_time,a\n60,6,1920,1700000060.123456,1\n");
  }
}

TEST_F(CsvLogger, LeavesForeignFilesAlone) {
  dir_.write("metrics.csv", "mine,yours\n1,2\n");
  EXPECT_THAT(failure(LoggerRun("csv", dir_.path()).try_open()),
              AllOf(HasSubstr("metrics.csv"), HasSubstr("exists")));
  EXPECT_THAT(failure(LoggerRun("csv", dir_.path()).try_open(LH_RUN_RESUMED)),
              AllOf(HasSubstr("begins with \"mine,yours\""), HasSubstr("global_step,epoch")));
  EXPECT_EQ(file(), "mine,yours\n1,2\n");
}

TEST_F(CsvLogger, TwoOfOneNameAreRefused) {
  LoggerRun first("csv", dir_.path()), second("csv", dir_.path()),
      third("csv", dir_.path(), {{"file", "sub/b.csv"}});
  first.open();
  EXPECT_THAT(failure(second.try_open()), HasSubstr("another logger"));
  third.open().record(10, {{"a", 1}}).close();
  EXPECT_THAT(dir_.read("sub/b.csv"), HasSubstr("\n10,"));
}

TEST_F(CsvLogger, RefusesAFileOutsideTheRun) {
  EXPECT_THROW(LoggerRun("csv", dir_.path(), {{"file", "../x.csv"}}), lhost_test::StatusError);
  EXPECT_THROW(LoggerRun("csv", dir_.path(), {{"file", "/tmp/x.csv"}}), lhost_test::StatusError);
}

TEST_F(CsvLogger, SurvivesAFullDisk) {
  LoggerRun run("csv", dir_.path());
  run.open().record(10, {{"a", 1}}).flush();
  const std::string before = file();
  {
    FullDisk full(before.size() + 3);
    EXPECT_EQ(failure(run.try_record(20, {{"a", 2}})), "(no error)");
    EXPECT_THAT(failure(run.try_flush()),
                AllOf(HasSubstr("metrics.csv: cannot be written"), HasSubstr("large")));
  }
  run.flush();
  EXPECT_EQ(file(), before + "20,2,640,1700000020.123456,2\n");
}

TEST_F(CsvLogger, AFullDiskWhileWideningLeavesTheTable) {
  LoggerRun run("csv", dir_.path());
  run.open().record(10, {{"a", 1}}).flush();
  const std::string before = file();
  {
    FullDisk full(before.size());
    EXPECT_THAT(failure(run.try_record(20, {{"b", 2}})), HasSubstr("metrics.csv.tmp: cannot be written"));
    EXPECT_EQ(file(), before);
    EXPECT_FALSE(std::filesystem::exists(dir_ / "metrics.csv.tmp"));
  }
  run.record(30, {{"b", 3}}).close();
  EXPECT_EQ(file(),
            "global_step,epoch,samples,unix_time,a,b\n"
            "10,1,320,1700000010.123456,1,\n"
            "30,3,960,1700000030.123456,,3\n");
}

TEST_F(CsvLogger, ClosesAfterAFailedOpen) {
  LoggerRun run("csv", dir_ / "absent\n");
  dir_.write("absent\n", "a file where the folder should be");
  EXPECT_NE(failure(run.try_open()), "(no error)");
  run.close();
}

}  // namespace
