#include "plugin/registry.hpp"

#include "support.hpp"

using namespace lhost;
using namespace lhost_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

struct Folders : ::testing::Test {
  TempDir dir;
  void put(const std::string& name, const std::string& place) {
    fs::create_directories(fs::path(dir / place).parent_path());
    fs::copy_file(fixture(name), dir / place);
  }
  Registry registry(const std::vector<std::string>& folders) {
    SearchPath path;
    for (const std::string& f : folders) path.folders.push_back({dir / f, f});
    return {path, "2.11.0"};
  }
  static std::vector<std::string> paths(const Registry& r) {
    std::vector<std::string> list;
    for (const Installed& i : r.all()) list.push_back(i.path);
    return list;
  }
};

}  // namespace

using RegistryOf = Folders;

TEST_F(RegistryOf, FolderFindsFilesThereAndInItsKindFoldersSorted) {
  put("plain", "a/z.so");
  put("two_kinds", "a/b.so");
  put("all_options", "a/callback/c.so");
  put("plain", "a/callback/deeper/no.so");
  put("plain", "a/not_a_kind/no.so");
  put("plain", "a/no.so.1");
  const Registry r = registry({"a"});
  EXPECT_THAT(paths(r), ElementsAre(dir / "a/b.so", dir / "a/z.so", dir / "a/callback/c.so"));
  EXPECT_THAT(r.names("callback"), ElementsAre("all_options", "plain", "two_kinds"));
  EXPECT_THAT(r.names("logger"), ElementsAre("two_kinds"));
}

TEST_F(RegistryOf, MissingFolderIsEmpty) { EXPECT_TRUE(registry({"nowhere"}).all().empty()); }

TEST_F(RegistryOf, FoldersTakesTheFirstThatHasTheComponent) {
  put("two_kinds", "a/x.so");
  put("plain", "b/first.so");
  put("plain", "c/second.so");
  const Registry r = registry({"a", "b", "c"});
  const Installed* found = r.find("callback", "plain");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, dir / "b/first.so");
  EXPECT_EQ(found->origin, "b");
  EXPECT_THAT(r.names("callback"), ElementsAre("plain", "two_kinds"));  // each once
  EXPECT_EQ(r.find("callback", "nobody"), nullptr);
  EXPECT_EQ(r.find("strategy", "plain"), nullptr);
}

TEST_F(RegistryOf, FolderWithTwoFilesOfOneComponentNamesBoth) {
  put("same_component_a", "a/one.so");
  put("same_component_b", "a/callback/two.so");
  put("same_component_a", "b/three.so");
  const Registry r = registry({"a", "b"});
  const std::string why = reason([&] { r.find("callback", "same_component"); });
  EXPECT_THAT(why, HasSubstr("two plugins of one folder offer callback \"same_component\""));
  EXPECT_THAT(why, HasSubstr(dir / "a/one.so"));
  EXPECT_THAT(why, HasSubstr(dir / "a/callback/two.so"));
}

TEST_F(RegistryOf, LinksCountsAFileOnce) {
  put("plain", "a/plain.so");
  fs::create_directories(dir / "b");
  fs::create_symlink(dir / "a/plain.so", dir / "b/link.so");
  fs::create_hard_link(dir / "a/plain.so", dir / "b/hard.so");
  fs::create_symlink(dir / "a", dir / "c");
  const Registry r = registry({"b", "a", "c"});
  ASSERT_EQ(r.all().size(), 1u);
  EXPECT_TRUE(r.find("callback", "plain"));
}

TEST_F(RegistryOf, LinkNamesItsTarget) {
  put("plain", "elsewhere/plain.so");
  fs::create_directories(dir / "a");
  fs::create_symlink(dir / "elsewhere/plain.so", dir / "a/link.so");
  fs::create_symlink(dir / "gone.so", dir / "a/zombie.so");
  const Registry r = registry({"a"});
  EXPECT_THAT(paths(r), ElementsAre(dir / "elsewhere/plain.so", dir / "a/zombie.so"));
  EXPECT_EQ(r.all()[1].refused, "a link to a file that does not exist");
}

TEST_F(RegistryOf, RefusedPluginsKeepsThemWithTheReason) {
  put("other_major", "a/callback/old.so");
  fs::create_directories(dir / "a/logger");
  dir.write("a/logger/text.so", "hello");
  const Registry r = registry({"a"});
  EXPECT_TRUE(r.names("callback").empty());
  const Installed* noted = r.find("callback", "other_major");
  ASSERT_TRUE(noted);
  EXPECT_THAT(noted->refused, HasSubstr("built for plugin ABI 2.x"));
  const Installed* unreadable = r.find("logger", "text");
  ASSERT_TRUE(unreadable) << "a file without a note stands for the component of its place";
  EXPECT_EQ(unreadable->refused, "not an ELF file");
}

TEST_F(RegistryOf, APathAcceptsOrSaysWhyNot) {
  put("plain", "x/plain.so");
  const Registry r = registry({});
  EXPECT_EQ(r.read(dir / "x/../x/plain.so").path, dir / "x/plain.so");
  EXPECT_EQ(r.read(dir / "x/plain.so").note.name, "plain");
  EXPECT_EQ(failure([&] { r.read(dir / "x/none.so"); }).code, Exit::usage);
  const Failure f = failure([&] { r.read(fixture("newer_minor")); });
  EXPECT_EQ(f.code, Exit::plugin);
  EXPECT_THAT(f.what(), HasSubstr(fixture("newer_minor") + ": needs plugin ABI 1.3"));
}
