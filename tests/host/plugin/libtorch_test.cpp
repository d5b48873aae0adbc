#include "support.hpp"

using namespace lhost;
using namespace lhost_test;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

// A LibTorch of two files in `root`.
void make_libtorch(const std::string& root, const std::string& minor) {
  fs::create_directories(root + "/lib");
  fs::create_directories(root + "/include/torch/headeronly");
  std::ofstream(root + "/lib/libtorch_cpu.so") << "not read here";
  std::ofstream(root + "/include/torch/headeronly/version.h")
      << "#pragma once\n#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR " << minor
      << "\n#define TORCH_VERSION_PATCH 5\n";
}

struct FindLibTorch : ::testing::Test {
  TempDir dir;
  Environment none{"LHOST_LIBTORCH", nullptr};
  InstallationGuard installed{{"", "", "", "", dir / "installed"}};
};

}  // namespace

TEST_F(FindLibTorch, TakesTheFolderOrTheSitePackagesThatIsNamed) {
  make_libtorch(dir / "site-packages/torch", "11");
  for (const char* named : {"site-packages", "site-packages/torch"}) {
    Environment e("LHOST_LIBTORCH", (dir / named).c_str());
    EXPECT_EQ(find_libtorch().root, dir / "site-packages/torch");
    EXPECT_EQ(find_libtorch().version, "2.11.5");
  }
}

TEST_F(FindLibTorch, ReadsBuildVersionWhereThereIsNoHeader) {
  make_libtorch(dir / "a", "11");
  fs::remove_all(dir / "a/include");
  Environment e("LHOST_LIBTORCH", (dir / "a").c_str());
  EXPECT_THAT(reason(find_libtorch), HasSubstr("a LibTorch without a version"));
  dir.write("a/build-version", "2.11.1+cpu\n");
  EXPECT_EQ(find_libtorch().version, "2.11.1");
}

TEST_F(FindLibTorch, UsesTheInstallationsOwn) {
  make_libtorch(dir / "installed", "11");
  EXPECT_EQ(find_libtorch().root, dir / "installed");
  make_libtorch(dir / "other", "11");
  Environment e("LHOST_LIBTORCH", (dir / "other").c_str());
  EXPECT_EQ(find_libtorch().root, dir / "other");  // the environment comes first
}

TEST_F(FindLibTorch, RefusesAnotherMinorWithTheReason) {
  make_libtorch(dir / "a", "12");
  Environment e("LHOST_LIBTORCH", (dir / "a").c_str());
  const Failure f = failure(find_libtorch);
  EXPECT_EQ(f.code, Exit::environment);
  EXPECT_THAT(f.what(),
              HasSubstr("is LibTorch 2.12.5, but lhost and its plugins are built for 2.11: LibTorch's C++ "
                        "interface differs between minor versions"));
  EXPECT_EQ(libtorch_version_or_empty(), "");
}

TEST_F(FindLibTorch, SaysWhereItLooked) {
  Environment e("LHOST_LIBTORCH", (dir / "nothing").c_str());
  const Failure f = failure(find_libtorch);
  EXPECT_EQ(f.code, Exit::environment);
  EXPECT_THAT(f.what(), HasSubstr(dir / "nothing"));
}

TEST(InstallationOfThisProcess, FollowsFromThePathOfTheExecutable) {
  const fs::path prefix = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  EXPECT_EQ(installation().plugins, prefix / "lib/lhost/plugins/1");
  EXPECT_EQ(installation().engine, prefix / "lib/lhost/liblhost_engine.so");
  EXPECT_EQ(installation().defaults, prefix / "share/lhost/defaults.toml");
  EXPECT_EQ(installation().host, fs::read_symlink("/proc/self/exe"));
}
