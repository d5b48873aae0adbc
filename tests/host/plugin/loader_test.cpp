#include "plugin/loader.hpp"

#include "plugin/host_table.hpp"
#include "support.hpp"

#include <dlfcn.h>
#include <lhost/callback.h>

using namespace lhost;
using namespace lhost_test;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

std::string why_refused(const std::string& name) {
  const Failure f = failure([&] { load_plugin(fixture(name)); });
  EXPECT_EQ(f.code, Exit::plugin);
  const std::string prefix = fixture(name) + ": ", what = f.what();
  EXPECT_EQ(what.substr(0, prefix.size()), prefix);  // every refusal names the file
  return what.substr(std::min(prefix.size(), what.size()));
}

}  // namespace

TEST(Loader, GivesAPluginWhoseComponentCanBeCreated) {
  const LoadedPlugin& p = load_plugin(fixture("plain"));
  EXPECT_EQ(p.path, fixture("plain"));
  EXPECT_EQ(p.note.name, "plain");
  ASSERT_EQ(p.components.size(), 1u);
  lh_create_args args{sizeof args, 0, nullptr, 0, nullptr, LH_STR("callback[0]")};
  void* self = nullptr;
  const void* table = nullptr;
  ASSERT_EQ(p.components[0].create(p.originals[0], &args, &self, &table), nullptr);
  const auto t = copy_table<lh_callback_v0>(table);
  EXPECT_EQ(t.on_event(static_cast<lh_callback*>(self), 0), nullptr);
  t.destroy(static_cast<lh_callback*>(self));
}

TEST(Loader, GivesTheSameObjectForTheSameFile) {
  TempDir dir;
  fs::create_symlink(fixture("plain"), dir / "link.so");
  const LoadedPlugin& p = load_plugin(fixture("plain"));
  EXPECT_EQ(&load_plugin(fixture("plain")), &p);
  EXPECT_EQ(&load_plugin(dir / "link.so"), &p);
  EXPECT_EQ(&load_plugin_table(fixture("plain")), &p);
}

TEST(Loader, KeepsPluginsSymbolsToThemselves) {
  load_plugin(fixture("plain"));
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "lh_plugin_v1"), nullptr);
}

TEST(Loader, AcceptsFrozenKindsUnknownKindsAndPluginsWithoutInit) {
  for (const char* name : {"frozen_kind", "unknown_kind", "no_init", "all_options", "two_kinds"})
    EXPECT_EQ(load_plugin(fixture(name)).note.name, name);
}

TEST(Loader, AcceptsALongerTable) {
  EXPECT_EQ(load_plugin(fixture("longer_table")).table.size, sizeof(lh_plugin));
}

TEST(Loader, RefusesAFileThatIsNotThere) {
  const Failure f = failure([] { load_plugin("/nonexistent/x.so"); });
  EXPECT_EQ(f.code, Exit::usage);
  EXPECT_STREQ(f.what(), "/nonexistent/x.so: no such file");
}

TEST(Loader, RefusesWhatTheNoteRefusesBeforeItIsOpened) {
  EXPECT_THAT(why_refused("other_major"), HasSubstr("built for plugin ABI 2.x"));
  EXPECT_THAT(why_refused("no_note"), HasSubstr("not an lhost plugin"));
  EXPECT_EQ(dlopen(fixture("other_major").c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(Loader, RefusesATruncatedFile) {
  TempDir dir;
  const std::string cut = dir.write("cut.so", bytes_of(fixture("plain")).substr(0, 4096));
  EXPECT_THAT(reason([&] { load_plugin(cut); }), HasSubstr("truncated: a segment ends at byte"));
}

TEST(Loader, PassesOnTheDynamicLoadersWords) {
  EXPECT_EQ(why_refused("unresolved"), "the dynamic loader refused it: " + fixture("unresolved") +
                                           ": undefined symbol: a_function_that_nobody_defines");
}

TEST(Loader, RefusesAMissingSymbol) {
  EXPECT_EQ(why_refused("no_symbol"), "its note is there, but the symbol lh_plugin_v1 is missing");
}

TEST(Loader, RefusesNotesThatLie) {
  EXPECT_EQ(why_refused("lies_about_major"), "its note lies: it gives the ABI major 1, the plugin itself 2");
  EXPECT_EQ(why_refused("lies_about_name"),
            "its note lies: it gives the name lies_about_name, the plugin itself someone_else");
  EXPECT_EQ(
      why_refused("lies_about_component"),
      "its note lies: it does not name the component callback/0.1:something_else, which the plugin offers");
  EXPECT_EQ(
      why_refused("lies_about_kind"),
      "its note lies: it does not name the component strategy/0.1:lies_about_kind, which the plugin offers");
  EXPECT_EQ(why_refused("hides_component"),
            "its note lies: it names the component callback:hidden, which the plugin does not offer");
}

TEST(Loader, RefusesMalformedTables) {
  EXPECT_THAT(why_refused("short_table"),
              HasSubstr("the plugin's table says that it has 24 bytes, expected at least 88"));
  EXPECT_THAT(why_refused("huge_table"), HasSubstr("the plugin's table says that it has 100000 bytes"));
  EXPECT_THAT(why_refused("short_component"), HasSubstr("component 0 says that it has 8 bytes"));
  EXPECT_EQ(why_refused("entry_returns_null"), "lh_plugin_v1 returned no table");
  EXPECT_EQ(why_refused("offers_twice"), "offers the component callback:offers_twice twice");
  EXPECT_EQ(why_refused("no_create"), "the component callback:no_create has no create");
  EXPECT_THAT(why_refused("bad_option_type"),
              HasSubstr("option count of callback:bad_option_type has the type 99"));
}

TEST(Loader, TurnsExceptionsIntoRefusals) {
  EXPECT_EQ(why_refused("entry_throws"),
            "an exception left lh_plugin_v1: no table today; this is a bug in the plugin");
  EXPECT_EQ(why_refused("init_throws"), "an exception left init: no init today; this is a bug in the plugin");
}

TEST(Loader, ReportsAFailedInitAndRemembersIt) {
  EXPECT_EQ(why_refused("init_fails"), "its init failed: the moon is not full");
  EXPECT_EQ(why_refused("init_fails"), "its init failed: the moon is not full");
  EXPECT_EQ(load_plugin_table(fixture("init_fails")).note.name,
            "init_fails");  // the table can still be described
}

TEST(Loader, RefusesASecondCopyOfAPluginAndNamesBoth) {
  TempDir dir;
  fs::copy_file(fixture("two_kinds"), dir / "copy.so");
  load_plugin(fixture("two_kinds"));
  EXPECT_EQ(reason([&] { load_plugin(dir / "copy.so"); }),
            dir / "copy.so" + ": the plugin \"two_kinds\" is already loaded from " + fixture("two_kinds") +
                "; name one file only");
}

TEST(Loader, LoadsLibTorchBeforeAPluginThatUsesIt) {
  Environment e("LHOST_LIBTORCH", fake_libtorch().c_str());
  ASSERT_EQ(dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD), nullptr);
  EXPECT_EQ(load_plugin(fixture("uses_torch")).note.torch, "2.11.3");
  void* torch = dlopen((fake_libtorch() + "/lib/libtorch_cpu.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(torch, nullptr);  // that one, though the plugin has no path to it
}

TEST(Loader, SaysThatLibTorchIsMissing) {
  TempDir dir;
  Environment e("LHOST_LIBTORCH", dir.path().c_str());
  fs::copy_file(fixture("uses_torch"), dir / "x.so");
  const Failure f = failure([&] { load_plugin(dir / "x.so"); });
  EXPECT_EQ(f.code, Exit::environment);
  EXPECT_THAT(f.what(), HasSubstr("LHOST_LIBTORCH: found no lib/libtorch_cpu.so in " + dir.path()));
}

namespace {
struct Small {
  uint32_t size, a;
};
struct Large {
  uint32_t size, a;
  uint64_t b, c;
};
}  // namespace

TEST(CopyTable, FillsWhatAShorterTableLacksWithZeros) {
  const Small foreign{sizeof(Small), 7};
  const auto own = copy_table<Large>(&foreign);
  EXPECT_EQ(own.size, sizeof(Large));
  EXPECT_EQ(own.a, 7u);
  EXPECT_EQ(own.b, 0u);
  EXPECT_EQ(own.c, 0u);
}

TEST(CopyTable, CutsALongerTable) {
  const Large foreign{sizeof(Large), 7, 8, 9};
  struct {
    Small table;
    uint64_t behind = 42;
  } own;
  copy_table(&own.table, sizeof own.table, &foreign);
  EXPECT_EQ(own.table.size, sizeof(Small));
  EXPECT_EQ(own.table.a, 7u);
  EXPECT_EQ(own.behind, 42u);
}

TEST(CopyTable, CopiesPartOfAMemberNeverBeyondTheForeignSize) {
  Large foreign{12, 7, ~uint64_t{0}, 9};  // its size ends in the middle of b
  const auto own = copy_table<Large>(&foreign);
  EXPECT_EQ(own.b, 0xffffffffu);
  EXPECT_EQ(own.c, 0u);
}
