#include "plugin/describe.hpp"

#include "plugin/ask_child.hpp"
#include "support.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

using namespace lhost;
using namespace lhost_test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

// A host of our own that counts how often it is started, and a cache of our own.
struct DescribeTest : ::testing::Test {
  TempDir dir;
  Environment cache_home{"XDG_CACHE_HOME", (dir / "cache").c_str()};
  InstallationGuard installed{{"", "", "", dir / "host.sh", ""}};

  void SetUp() override {
    dir.write("host.sh", "#!/bin/sh\necho started >> " + dir.path() +
                             "/starts\nexec " LHOST_TEST_DESCRIBE_CHILD " \"$@\"\n");
    chmod((dir / "host.sh").c_str(), 0700);
  }
  size_t starts() const {
    const std::string lines = dir.read("starts");
    return static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  std::string cache_file() const { return dir / "cache/lhost/plugins-1.json"; }
  std::string copy(const std::string& name) const {
    fs::copy_file(fixture(name), dir / (name + ".so"));
    return dir / (name + ".so");
  }
  std::vector<Answer> ask(const std::vector<std::string>& names,
                          std::chrono::milliseconds limit = 20s) const {
    std::vector<std::string> files;
    for (const std::string& n : names) files.push_back(fixture(n));
    return ask_child(dir / "host.sh", files, limit);
  }
};
using Describe = DescribeTest;
using DescribeCacheTest = DescribeTest;

}  // namespace

TEST_F(Describe, GivesComponentsInTheOrderOfTheFiles) {
  const auto plugins = describe_plugins({fixture("two_kinds"), fixture("plain")});
  ASSERT_EQ(plugins.size(), 2u);
  EXPECT_EQ(plugins[0].name, "two_kinds");
  EXPECT_EQ(plugins[0].version, "2.1");
  EXPECT_EQ(plugins[0].license, "MIT");
  EXPECT_EQ(plugins[0].path, fixture("two_kinds"));
  ASSERT_EQ(plugins[0].components.size(), 2u);
  EXPECT_EQ(plugins[0].components[1].kind, "logger");
  EXPECT_EQ(plugins[0].components[1].revision, "1");
  EXPECT_EQ(plugins[1].name, "plain");
  EXPECT_EQ(starts(), 1u);
}

TEST_F(Describe, FindsAComponentByKindAndName) {
  const PluginDescription p = describe_plugins({fixture("two_kinds")})[0];
  ASSERT_TRUE(p.find("logger", "two_kinds"));
  EXPECT_EQ(p.find("logger", ""), p.find("logger", "two_kinds"));  // the only one
  EXPECT_EQ(p.find("logger", "other"), nullptr);
  EXPECT_EQ(p.find("strategy", ""), nullptr);
}

TEST_F(Describe, CarriesWholeSchemas) {
  describe_plugins({fixture("all_options")});
  const Schema o =
      describe_plugins({fixture("all_options")})[0].components[0].options;  // through the cache as well
  EXPECT_EQ(starts(), 1u);
  ASSERT_EQ(o.size(), 16u);
  for (int32_t t = LH_T_BOOL; t <= LH_T_CADENCE; ++t) EXPECT_EQ(o[static_cast<size_t>(t - 1)].type, t);
  EXPECT_EQ(o[1].key, "int");
  EXPECT_EQ(o[1].doc, "a whole number");
  EXPECT_EQ(o[1].def, "3");
  EXPECT_EQ(o[1].min, "1");
  EXPECT_EQ(o[1].max, "9");
  EXPECT_THAT(o[5].choices, ::testing::ElementsAre("red", "green", "blue"));
  EXPECT_EQ(o[8].min_len, 1u);
  EXPECT_EQ(o[13].flags, uint32_t{LH_O_REQUIRED});
  EXPECT_EQ(o[14].flags, uint32_t{LH_O_SECRET});
  EXPECT_EQ(o[15].replaced_by, "int");
}

TEST_F(Describe, BlamesACrashOnItsFileAndDescribesTheRest) {
  const auto a = ask({"plain", "entry_crashes", "two_kinds"});
  ASSERT_EQ(a.size(), 3u);
  EXPECT_EQ(a[0].described.plugin.name, "plain");
  EXPECT_EQ(a[1].described.broken,
            fixture("entry_crashes") + ": the plugin crashed while being described (SIGSEGV)");
  EXPECT_EQ(a[1].described.code, Exit::plugin);
  EXPECT_TRUE(a[1].lasting);
  EXPECT_EQ(a[2].described.plugin.name, "two_kinds");
  EXPECT_EQ(starts(), 3u);  // all; the culprit alone in front; the rest
}

TEST_F(Describe, StopsAPluginThatHangs) {
  const Answer a = ask({"entry_hangs"}, 300ms)[0];
  EXPECT_EQ(a.described.broken,
            fixture("entry_hangs") + ": did not answer within 300 ms while being described");
  EXPECT_TRUE(a.lasting);
}

TEST_F(Describe, SurvivesAStaticInitialiserThatThrows) {
  const auto a = ask({"static_throws"});
  EXPECT_THAT(a[0].described.broken,
              AllOf(StartsWith(fixture("static_throws") + ": threw in its initialiser"),
                    HasSubstr("registered twice")));
}

TEST_F(Describe, ReportsAPluginThatExits) {
  EXPECT_EQ(ask({"entry_exits"})[0].described.broken,
            fixture("entry_exits") + ": ended the process with code 9 while being described: I am leaving");
}

TEST_F(Describe, IsNotConfusedByAPluginThatPrints) {
  EXPECT_EQ(ask({"entry_prints"})[0].described.plugin.name, "entry_prints");
}

TEST_F(Describe, PassesOnTheLoadersRefusals) {
  const auto a = ask({"lies_about_name", "entry_throws"});
  EXPECT_THAT(a[0].described.broken, StartsWith(fixture("lies_about_name") + ": its note lies"));
  EXPECT_THAT(a[1].described.broken, HasSubstr("an exception left lh_plugin_v1: no table today"));
  EXPECT_FALSE(a[0].lasting);
}

TEST_F(Describe, DoesNotCallInit) {
  EXPECT_EQ(describe_plugins({fixture("init_fails")})[0].name, "init_fails");
}

TEST_F(Describe, NeverRunsWhatTheNoteRefuses) {
  EXPECT_THAT(reason([] { describe_plugins({fixture("other_major")}); }),
              StartsWith(fixture("other_major") + ": built for plugin ABI 2.x"));
  EXPECT_EQ(starts(), 0u);
}

TEST_F(Describe, NamesAllFilesThatAreBroken) {
  const Failure f = failure([] {
    describe_plugins({fixture("other_major"), fixture("plain"), fixture("entry_exits")});
  });
  EXPECT_EQ(f.code, Exit::plugin);
  EXPECT_THAT(f.what(), AllOf(HasSubstr(fixture("other_major") + ": "),
                              HasSubstr("\n" + fixture("entry_exits") + ": ")));
  const auto d = try_describe_plugins({fixture("other_major"), fixture("plain"), "/nonexistent.so"});
  EXPECT_NE(d[0].broken, "");
  EXPECT_EQ(d[1].plugin.name, "plain");
  EXPECT_EQ(d[2].broken, "/nonexistent.so: no such file");
  EXPECT_EQ(d[2].code, Exit::usage);
}

TEST_F(Describe, GivesTheChildNothingOfTheEnvironmentButFourNames) {
  dir.write("host.sh",
            "#!/bin/sh\nenv > " + dir.path() + "/env\nexec " LHOST_TEST_DESCRIBE_CHILD " \"$@\"\n");
  Environment a("LD_LIBRARY_PATH", "/evil"), b("LHOST_LIBTORCH", "/some/torch"), c("TOKEN", "secret"),
      e("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384");
  ask({"plain"});
  EXPECT_THAT(
      dir.read("env"),
      AllOf(HasSubstr("LHOST_LIBTORCH=/some/torch\n"), HasSubstr("PATH="), HasSubstr("GLIBC_TUNABLES=glibc"),
            ::testing::Not(HasSubstr("LD_LIBRARY_PATH")), ::testing::Not(HasSubstr("secret"))));
}

TEST_F(Describe, SaysThatTheHostCannotBeStarted) {
  const Failure f = failure([&] { ask_child(dir / "nothing", {fixture("plain")}, 1s); });
  EXPECT_EQ(f.code, Exit::environment);
  EXPECT_EQ(f.what(), "cannot start " + (dir / "nothing") + ": No such file or directory");
}

TEST_F(Describe, BlamesAnAnswerThatIsNoJson) {
  dir.write("host.sh", "#!/bin/sh\necho hello\n");
  EXPECT_THAT(ask({"plain"})[0].described.broken, HasSubstr("its description cannot be read"));
}

TEST_F(DescribeCacheTest, AnswersForFilesThatHaveNotChanged) {
  const std::string a = copy("plain"), b = copy("two_kinds");
  describe_plugins({a});
  EXPECT_EQ(starts(), 1u);
  describe_plugins({a});
  EXPECT_EQ(starts(), 1u);
  const auto both = describe_plugins({b, a});  // one hit, one child for the other
  EXPECT_EQ(starts(), 2u);
  EXPECT_EQ(both[0].name, "two_kinds");
  EXPECT_EQ(both[1].name, "plain");
  describe_plugins({a, b});
  EXPECT_EQ(starts(), 2u);
}

TEST_F(DescribeCacheTest, SeesAReplacedFileEvenWithTheOldTimes) {
  const std::string file = copy("same_component_a");
  EXPECT_EQ(describe_plugins({file})[0].name, "same_component_a");
  const auto written = fs::last_write_time(file);
  fs::copy_file(fixture("same_component_b"), dir / "new.so");
  ASSERT_EQ(fs::file_size(dir / "new.so"), fs::file_size(file)) << "this test wants equal sizes";
  fs::last_write_time(dir / "new.so", written);
  fs::rename(dir / "new.so", file);
  EXPECT_EQ(describe_plugins({file})[0].name, "same_component_b");
  EXPECT_EQ(starts(), 2u);
}

TEST_F(DescribeCacheTest, SeesAFileRewrittenInPlaceWithTheOldTimes) {
  const std::string file = copy("same_component_a");
  describe_plugins({file});
  timespec times[2] = {{1, 0}, {1, 0}};
  utimensat(AT_FDCWD, file.c_str(), times, 0);
  describe_plugins({file});
  const std::string bytes = bytes_of(fixture("same_component_b"));
  std::ofstream(file, std::ios::binary | std::ios::in) << bytes;
  utimensat(AT_FDCWD, file.c_str(), times, 0);
  EXPECT_EQ(describe_plugins({file})[0].name, "same_component_b");
}

TEST_F(DescribeCacheTest, RemembersWhatCrashed) {
  const std::string file = copy("entry_crashes");
  const std::string first = reason([&] { describe_plugins({file}); });
  EXPECT_EQ(starts(), 1u);
  EXPECT_EQ(reason([&] { describe_plugins({file}); }), first);
  EXPECT_THAT(first, HasSubstr("SIGSEGV"));
  EXPECT_EQ(starts(), 1u);
}

TEST_F(DescribeCacheTest, AsksAgainAfterARefusal) {
  const std::string file = copy("unresolved");  // the library that it misses may come
  reason([&] { describe_plugins({file}); });
  reason([&] { describe_plugins({file}); });
  EXPECT_EQ(starts(), 2u);
}

TEST_F(DescribeCacheTest, ThatIsDamagedIsEmpty) {
  const std::string file = copy("plain");
  describe_plugins({file});
  const std::string good = bytes_of(cache_file());
  std::vector<std::string> bad = {"",
                                  "not json",
                                  "[]",
                                  "{}",
                                  "null",
                                  good.substr(0, good.size() / 2),
                                  R"({"host": ")" LHOST_VERSION R"(", "plugins": [{}]})",
                                  R"({"host": "another version", "plugins": []})",
                                  std::string(100000, '[')};
  size_t expected = starts();
  for (const std::string& content : bad) {
    dir.write("cache/lhost/plugins-1.json", content);
    EXPECT_EQ(describe_plugins({file})[0].name, "plain");
    EXPECT_EQ(starts(), ++expected) << content.substr(0, 50);
    EXPECT_EQ(bytes_of(cache_file()), good);  // and is whole again
  }
}

TEST_F(DescribeCacheTest, ThatCannotBeWrittenIsNoError) {
  dir.write("cache", "a file where the folder would be");
  EXPECT_EQ(describe_plugins({fixture("plain")})[0].name, "plain");
  EXPECT_EQ(describe_plugins({fixture("plain")})[0].name, "plain");
  EXPECT_EQ(starts(), 2u);
}

TEST_F(DescribeCacheTest, ForgetsFilesThatAreGone) {
  const std::string a = copy("plain"), b = copy("two_kinds");
  describe_plugins({a});
  fs::remove(a);
  describe_plugins({b});
  EXPECT_THAT(bytes_of(cache_file()), AllOf(HasSubstr(b), ::testing::Not(HasSubstr(a))));
}
