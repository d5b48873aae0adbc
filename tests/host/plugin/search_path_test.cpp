#include "plugin/registry.hpp"

#include "support.hpp"

using namespace lhost;
using namespace lhost_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The C library's own, but that a test may pretend to be a set-uid process.
static bool set_uid = false;
extern "C" char* secure_getenv(const char* name) noexcept { return set_uid ? nullptr : std::getenv(name); }

namespace {

struct SearchPathTest : ::testing::Test {
  TempDir dir;
  Environment plugins{"LHOST_PLUGIN_PATH", nullptr}, data{"XDG_DATA_HOME", nullptr},
      home{"HOME", "/home/ada"};
  InstallationGuard installed{{"/opt/lhost/plugins/1", "", "", "", ""}};
  ~SearchPathTest() override { set_uid = false; }

  static std::vector<std::string> found(const std::vector<std::string>& dirs = {}) {
    std::vector<std::string> list;
    for (const auto& f : search_path(dirs).folders) list.push_back(f.origin + " " + f.path);
    return list;
  }
};

}  // namespace

TEST_F(SearchPathTest, IsOptionThenEnvironmentThenUserThenInstallation) {
  Environment e("LHOST_PLUGIN_PATH", "/one::/two:");
  EXPECT_THAT(found({dir.path(), "/usr"}),
              ElementsAre("--plugin-dir " + dir.path(), "--plugin-dir /usr", "LHOST_PLUGIN_PATH /one",
                          "LHOST_PLUGIN_PATH /two", "user /home/ada/.local/share/lhost/plugins/1",
                          "installation /opt/lhost/plugins/1"));
}

TEST_F(SearchPathTest, TakesTheUsersFolderFromXdgDataHome) {
  Environment e("XDG_DATA_HOME", "/data");
  EXPECT_THAT(found(), ElementsAre("user /data/lhost/plugins/1", "installation /opt/lhost/plugins/1"));
}

TEST_F(SearchPathTest, NeverHoldsTheCurrentDirectoryOrLdLibraryPath) {
  Environment ld("LD_LIBRARY_PATH", "/ld"), relative("XDG_DATA_HOME", "data"), nobody("HOME", nullptr);
  EXPECT_THAT(found(), ElementsAre("installation /opt/lhost/plugins/1"));
  Environment e("LHOST_PLUGIN_PATH", "/one:.");
  const Failure f = failure([] { found(); });
  EXPECT_EQ(f.code, Exit::usage);
  EXPECT_THAT(f.what(), HasSubstr("found the relative folder \".\""));
}

TEST_F(SearchPathTest, IgnoresTheEnvironmentOfASetUidProcess) {
  Environment e("LHOST_PLUGIN_PATH", "/one");
  Environment d("XDG_DATA_HOME", "/data");
  set_uid = true;
  EXPECT_THAT(found({"/usr"}), ElementsAre("--plugin-dir /usr", "installation /opt/lhost/plugins/1"));
}

TEST_F(SearchPathTest, RefusesAPluginDirThatIsNoFolder) {
  const Failure f = failure([] { found({"/nonexistent"}); });
  EXPECT_EQ(f.code, Exit::usage);
  EXPECT_STREQ(f.what(), "--plugin-dir: found \"/nonexistent\", expected a folder that exists");
}
