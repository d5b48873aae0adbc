#include "train/run_folder.hpp"
#include "base/failure.hpp"
#include "base/files.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

namespace lhost {
namespace {

namespace fs = std::filesystem;
using lhost_test::TempDir;
using testing::AllOf;
using testing::HasSubstr;

struct RunFolder : testing::Test {
  TempDir dir;
  std::string make() { return new_run_folder(dir.path(), "run"); }
  // A run folder with these files and this index.
  std::string version(int n, const std::vector<std::string>& files, const std::string& index) {
    const std::string folder = dir / ("run/version_" + std::to_string(n));
    for (const std::string& f : files) {
      make_folders(fs::path(folder + "/" + f).parent_path());
      write_atomically(folder + "/" + f, "x");
    }
    make_folders(folder);
    if (!index.empty()) write_atomically(folder + "/checkpoints.json", index);
    return folder;
  }
  ResumePoint find(const std::string& wanted) { return find_resume_point(dir.path(), "run", wanted); }
  std::string refused(const std::string& wanted) {
    try {
      find(wanted);
    } catch (const Failure& f) {
      EXPECT_EQ(f.code, Exit::usage);
      return f.what();
    }
    return "found";
  }
};

TEST_F(RunFolder, CountsUp) {
  EXPECT_EQ(make(), dir / "run/version_0");
  EXPECT_EQ(make(), dir / "run/version_1");
  EXPECT_TRUE(fs::is_directory(dir / "run/version_1"));
}

TEST_F(RunFolder, NeverFillsAGap) {
  version(2, {}, "");
  version(10, {}, "");
  EXPECT_EQ(make(), dir / "run/version_11") << "by number, not by letters";
}

TEST_F(RunFolder, TakesNoNoticeOfOtherNames) {
  for (const char* name :
       {"version_", "version_x", "version_3x", "version_-1", "xversion_7", "version_99999999999999999999"})
    make_folders(dir / ("run/" + std::string(name)));
  EXPECT_EQ(make(), dir / "run/version_0");
}

TEST_F(RunFolder, AFileTakesANumberToo) {
  make_folders(dir / "run");
  write_atomically(dir / "run/version_0", "");
  EXPECT_EQ(make(), dir / "run/version_1");
}

TEST_F(RunFolder, F053_lgRace_IsNobodyElsesWhenManyStartTogether) {
  std::vector<std::string> made(16);
  std::vector<std::thread> threads;
  for (std::string& m : made) threads.emplace_back([&m, this] { m = make(); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), 16u);
}

TEST_F(RunFolder, ThatCannotBeMadeIsTheEnvironmentsFailure) {
  write_atomically(dir / "run", "a file");
  try {
    make();
    FAIL();
  } catch (const Failure& f) {
    EXPECT_EQ(f.code, Exit::environment);
    EXPECT_THAT(f.what(), HasSubstr(dir / "run"));
  }
}

TEST_F(RunFolder, LastAndBestAreWhatTheNewestIndexNames) {
  version(1, {"checkpoints/a.ckpt"}, R"({"last": "checkpoints/a.ckpt", "best": "checkpoints/a.ckpt"})");
  const std::string newest = version(10, {"checkpoints/b.ckpt", "checkpoints/c.ckpt"},
                                     R"({"last": "checkpoints/c.ckpt", "best": "checkpoints/b.ckpt"})");
  version(9, {"checkpoints/d.ckpt"}, R"({"last": "checkpoints/d.ckpt", "best": "checkpoints/d.ckpt"})");
  EXPECT_EQ(find("last").file, newest + "/checkpoints/c.ckpt");
  EXPECT_EQ(find("best").file, newest + "/checkpoints/b.ckpt");
  EXPECT_EQ(find("last").run_folder, newest);
  EXPECT_TRUE(has_resume_point(dir.path(), "run"));
  EXPECT_FALSE(has_resume_point(dir.path(), "other"));
}

TEST_F(RunFolder, VersionsWithoutACheckpointAreSkipped) {
  const std::string good = version(0, {"x.ckpt"}, R"({"last": "x.ckpt", "best": null})");
  version(1, {}, "");
  version(2, {}, "{ damaged");
  version(3, {}, R"({"last": "gone.ckpt"})");
  version(4, {}, R"({"last": 5})");
  version(5, {}, "[]");
  version(6, {}, R"({"last": ""})");
  EXPECT_EQ(find("last").file, good + "/x.ckpt");
  EXPECT_THAT(refused("best"),
              AllOf(HasSubstr("no checkpoint in " + (dir / "run")), HasSubstr("--resume best")));
}

TEST_F(RunFolder, NothingToResumeFromSaysWhereItLooked) {
  EXPECT_THAT(refused("last"), AllOf(HasSubstr(dir / "run"), HasSubstr("--resume auto")));
  EXPECT_FALSE(has_resume_point(dir.path(), "run"));
}

TEST_F(RunFolder, AFileOfThisRunGoesOnInItsFolder) {
  const std::string folder = version(3, {"checkpoints/a.ckpt"}, "");
  version(30, {"checkpoints/a.ckpt"}, "");
  const ResumePoint p = find(folder + "/checkpoints/../checkpoints/a.ckpt");
  EXPECT_EQ(p.file, fs::canonical(folder).string() + "/checkpoints/a.ckpt");
  EXPECT_EQ(p.run_folder, folder);
}

TEST_F(RunFolder, ALinkIsFollowed) {
  const std::string folder = version(0, {"checkpoints/a.ckpt"}, "");
  fs::create_symlink("a.ckpt", folder + "/checkpoints/last.ckpt");
  EXPECT_EQ(find(folder + "/checkpoints/last.ckpt").file,
            fs::canonical(folder).string() + "/checkpoints/a.ckpt");
  EXPECT_EQ(find(folder + "/checkpoints/last.ckpt").run_folder, folder);
}

TEST_F(RunFolder, AnyOtherFileStartsANewFolder) {
  version(0, {}, "");
  write_atomically(dir / "weights.pt", "x");
  EXPECT_EQ(find(dir / "weights.pt").run_folder, "");
  EXPECT_EQ(find(dir / "weights.pt").file, fs::canonical(dir / "weights.pt").string());
}

TEST_F(RunFolder, IsWrittenByOneAtATime) {
  const std::string folder = make();
  {
    const FolderLock first(folder);
    try {
      const FolderLock second(folder);
      FAIL();
    } catch (const Failure& f) {
      EXPECT_EQ(f.code, Exit::environment);
      EXPECT_THAT(f.what(), AllOf(HasSubstr(folder), HasSubstr("another lhost")));
    }
    const FolderLock other(make());
  }
  const FolderLock again(folder);
}

TEST_F(RunFolder, IsFreeAgainWhenItsWriterWasKilled) {
  const std::string folder = make();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t writer = fork();
  if (writer == 0) {
    const FolderLock lock(folder);
    _exit(write(ready[1], "x", 1) == 1 && pause() == 0);
  }
  char x;
  ASSERT_EQ(read(ready[0], &x, 1), 1);
  EXPECT_THROW(FolderLock{folder}, Failure);
  kill(writer, SIGKILL);
  ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
  const FolderLock lock(folder);
  close(ready[0]), close(ready[1]);
}

TEST_F(RunFolder, AFileThatIsNotThereNamesTheChoices) {
  EXPECT_THAT(refused(dir / "none.ckpt"), AllOf(HasSubstr(dir / "none.ckpt"), HasSubstr("last, best, auto")));
  EXPECT_THAT(refused(dir.path()), HasSubstr("no such file"));
}

}  // namespace
}  // namespace lhost
