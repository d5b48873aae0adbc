#include "base/files.hpp"

#include "base/failure.hpp"
#include "base/signals.hpp"
#include "support/temp_dir.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <algorithm>

namespace lhost {
namespace {

namespace fs = std::filesystem;
using lhost_test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(folder)) names.push_back(e.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The message of an environment failure.
template <class F>
std::string refused(const F& f) {
  try {
    f();
  } catch (const Failure& e) {
    EXPECT_EQ(e.code, Exit::environment);
    return e.what();
  }
  ADD_FAILURE() << "nothing failed";
  return {};
}

// While it lives no file of this process grows beyond `bytes`, as on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small = {bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() { setrlimit(RLIMIT_FSIZE, &old_); }

 private:
  SignalGuard no_signal_;  // the write says it instead
  rlimit old_{};
};

TEST(ReadFile, GivesEveryByte) {
  const TempDir dir;
  for (size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{1000000}}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % 251);
    EXPECT_TRUE(read_file(dir.write("x", bytes)) == bytes) << size;
  }
}

TEST(ReadFile, DoesNotTrustTheSizeThatTheSystemTells) {
  EXPECT_THAT(read_file("/proc/self/status"),
              AllOf(HasSubstr("Name:"), HasSubstr("VmSize:")));  // says 0 bytes
}

TEST(ReadFile, NamesPathAndReason) {
  const TempDir dir;
  EXPECT_THAT(refused([&] { read_file(dir / "none"); }),
              AllOf(HasSubstr(dir / "none"), HasSubstr("No such file")));
  EXPECT_THAT(refused([&] { read_file(dir.path()); }),
              AllOf(HasSubstr(dir.path()), HasSubstr("Is a directory")));
}

TEST(MakeFolders, MakesAllThatAreMissing) {
  const TempDir dir;
  make_folders(dir / "a/b/c");
  make_folders(dir / "a/b/c");
  EXPECT_TRUE(fs::is_directory(dir / "a/b/c"));
  dir.write("file", "");
  EXPECT_THAT(refused([&] { make_folders(dir / "file/b"); }),
              AllOf(HasSubstr(dir / "file/b"), HasSubstr("Not a directory")));
}

TEST(AtomicFileOf, IsThereCompleteOrNotAtAll) {
  const TempDir dir;
  dir.write("x", "old");
  AtomicFile file(dir / "x");
  file.write("ne");
  EXPECT_EQ(dir.read("x"), "old");
  file.write("w");
  file.commit();
  EXPECT_EQ(dir.read("x"), "new");
  EXPECT_THAT(names_in(dir.path()), ElementsAre("x"));
}

TEST(AtomicFileOf, WithoutCommitLeavesNothing) {
  const TempDir dir;
  {
    AtomicFile file(dir / "x");
    file.write("half");
    EXPECT_EQ(names_in(dir.path()).size(), 1u);
    EXPECT_FALSE(fs::exists(dir / "x"));
  }
  EXPECT_THAT(names_in(dir.path()), IsEmpty());
}

TEST(AtomicFileOf, OnAFullDiskKeepsTheOldFileAndLeavesNothing) {
  const TempDir dir;
  dir.write("x", "old");
  const std::string large(100000, 'x');
  EXPECT_THAT(refused([&] {
                const SmallFiles full(50000);
                write_atomically(dir / "x", large);
              }),
              AllOf(HasSubstr("cannot write " + (dir / "x")), HasSubstr("File too large")));
  EXPECT_EQ(dir.read("x"), "old");
  EXPECT_THAT(names_in(dir.path()), ElementsAre("x"));
}

TEST(AtomicFileOf, ThatCannotTakeItsNameLeavesNothing) {
  const TempDir dir;
  make_folders(dir / "x/y");
  EXPECT_THAT(refused([&] { write_atomically(dir / "x", "text"); }), HasSubstr(dir / "x"));
  EXPECT_THAT(names_in(dir.path()), ElementsAre("x"));
}

TEST(AtomicFileOf, NeedsItsFolder) {
  const TempDir dir;
  EXPECT_THAT(refused([&] { AtomicFile file(dir / "none/x"); }),
              AllOf(HasSubstr(dir / "none/x"), HasSubstr("No such file")));
}

TEST(AtomicFileOf, ReplacesALinkNotWhatItPointsTo) {
  const TempDir dir;
  dir.write("target", "target");
  fs::create_symlink("target", dir / "link");
  write_atomically(dir / "link", "new");
  EXPECT_EQ(dir.read("target"), "target");
  EXPECT_EQ(dir.read("link"), "new");
  EXPECT_FALSE(fs::is_symlink(dir / "link"));
}

TEST(WriteAtomically, WorksInTheCurrentFolder) {
  const TempDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  write_atomically("x", "text");
  fs::current_path(before);
  EXPECT_EQ(dir.read("x"), "text");
}

TEST(RemoveLeftovers, TakesFilesOfDeadWritersOnly) {
  const TempDir dir;
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  ASSERT_EQ(waitpid(dead, nullptr, 0), dead);
  const auto mark = [](const std::string& stem, const std::string& pid) {
    return stem + ".lhost-tmp-" + pid;
  };
  dir.write(mark("a.ckpt", std::to_string(dead)), "");
  dir.write(mark("b.ckpt", std::to_string(getpid())), "");
  dir.write(mark("c.ckpt", "1"), "");
  dir.write(mark("d.ckpt", "junk"), "");
  dir.write("e.ckpt", "");
  remove_leftovers(dir.path());
  EXPECT_THAT(names_in(dir.path()),
              ElementsAre(mark("b.ckpt", std::to_string(getpid())), mark("c.ckpt", "1"), "e.ckpt"));
}

TEST(RemoveLeftovers, LooksIntoFoldersBelow) {
  const TempDir dir;
  make_folders(dir / "a/b");
  dir.write("a/b/x.ckpt.lhost-tmp-4194305", "");  // no such process
  dir.write("a/b/y.ckpt", "");
  remove_leftovers(dir.path());
  EXPECT_THAT(names_in(dir / "a/b"), ElementsAre("y.ckpt"));
}

TEST(RemoveLeftovers, OfNoFolderDoesNothing) {
  const TempDir dir;
  remove_leftovers(dir / "none");
  EXPECT_THAT(names_in(dir.path()), IsEmpty());
}

}  // namespace
}  // namespace lhost
