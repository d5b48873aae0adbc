// tests/host/cli/list_test.cpp - lhost list and lhost inspect.
#include "support.hpp"

namespace cli_test {
namespace {

struct List : Cli {
  // A folder of plugins that are called by these fixtures' names.
  std::string folder(const std::string& name, const std::vector<std::string>& fixtures) const {
    for (const std::string& f : fixtures) place(LHOST_TEST_FIXTURES "/" + f + ".so", name + "/" + f + ".so");
    return prefix / name;
  }
};
using Inspect = List;

TEST_F(List, IsTheGoldenScreen) { expect_golden("list", screen("list")); }

TEST_F(List, MayBeOfOneKind) {
  EXPECT_EQ(
      screen("list optimizer"),
      "optimizer     sgd               1.0.0    installation  PREFIX/lib/lhost/plugins/1/optimizer/sgd.so\n");
  EXPECT_EQ(screen("list collective"), "");
}

TEST_F(List, OfAnUnknownKindNamesTheKinds) {
  EXPECT_THAT(refused(2, "list loggers"), AllOf(HasSubstr("no kind \"loggers\"; did you mean \"logger\"?"),
                                                HasSubstr("accelerator, callback")));
}

TEST_F(List, FoldersAreSearchedInOrder) {
  const std::string a = folder("a", {"same_component_a"}), b = folder("b", {"same_component_b", "plain"});
  const std::string text = screen("list callback --plugin-dir " + a + " --plugin-dir " + b);
  EXPECT_EQ(text,
            "callback      plain             1.0      --plugin-dir  PREFIX/b/plain.so\n"
            "callback      progress          1.0.0    installation  "
            "PREFIX/lib/lhost/plugins/1/callback/progress.so\n"
            "callback      same_component    1.0      --plugin-dir  PREFIX/a/same_component_a.so\n"
            "callback      same_component    1.0      --plugin-dir  PREFIX/b/same_component_b.so  (hidden by "
            "the one above)\n");
  EXPECT_THAT(screen("list callback", "LHOST_PLUGIN_PATH=" + b), HasSubstr("LHOST_PLUGIN_PATH"));
}

TEST_F(List, APluginFolderMustExist) {
  for (const char* command : {"list", "doctor", "inspect sgd", "plan t.toml", "run t.toml"}) {
    file("t.toml", manifest());
    EXPECT_THAT(refused(2, std::string(command) + " --plugin-dir none"),
                HasSubstr("--plugin-dir: found \"none\""));
  }
}

TEST_F(List, NamesWhatIsRefusedAndWhy) {
  const std::string text = screen("list --plugin-dir " + folder("a", {"other_major"}));
  EXPECT_THAT(text, HasSubstr("\nrefused       PREFIX/a/other_major.so: "));
  EXPECT_THAT(text, Not(HasSubstr("callback      other_major")));
}

TEST_F(List, OfNothingSaysWhereItLooked) {
  fs::remove_all(prefix / "lib/lhost/plugins");
  EXPECT_EQ(screen("list"),
            "no plugin is installed in:\n  PREFIX/.local/share/lhost/plugins/1  (user)\n"
            "  PREFIX/lib/lhost/plugins/1  (installation)\n");
}

TEST_F(Inspect, IsTheGoldenScreen) { expect_golden("inspect", screen("inspect sgd")); }

TEST_F(Inspect, ANameAKindOrAPathAreTheSame) {
  const std::string text = screen("inspect sgd");
  EXPECT_EQ(screen("inspect optimizer/sgd"), text);
  EXPECT_EQ(screen("inspect " + (prefix / "lib/lhost/plugins/1/optimizer/sgd.so")).substr(0, 30),
            text.substr(0, 30));
  fs::copy_file(LHOST_TEST_PLUGINS "/optimizer/sgd.so", work() + "/mine.so");
  const std::string mine = screen("inspect ./mine.so");
  EXPECT_THAT(mine, HasSubstr("file    WORK/mine.so\n"));
  EXPECT_EQ(mine.substr(mine.find("torch ")), text.substr(text.find("torch ")));
}

TEST_F(Inspect, AnUnknownNameGetsASuggestion) {
  EXPECT_EQ(refused(2, "inspect sdg"),
            "error: no component \"sdg\" is installed; did you mean \"sgd\"? (lhost list shows all)\n");
  EXPECT_THAT(refused(2, "inspect optimizer/csv"), HasSubstr("no component \"optimizer/csv\""));
  EXPECT_THAT(refused(2, "inspect frobnicate"), Not(HasSubstr("did you mean")));
  EXPECT_THAT(refused(2, "inspect ''"), HasSubstr("no component \"\""));
}

TEST_F(Inspect, AFileThatIsNoPluginIsRefused) {
  file("x.so", "not a library");
  EXPECT_THAT(refused(4, "inspect ./x.so"), HasSubstr("x.so"));
  EXPECT_THAT(refused(4, "inspect " + folder("a", {"other_major"}) + "/other_major.so"),
              HasSubstr("other_major.so"));
  EXPECT_THAT(refused(4, "inspect other_major --plugin-dir " + prefix / "a"), HasSubstr("other_major.so"));
}

TEST_F(Inspect, ShowsTheComponentThatWasAskedFor) {
  const std::string dir = " --plugin-dir " + folder("a", {"two_kinds"});
  EXPECT_THAT(screen("inspect logger/two_kinds" + dir),
              AllOf(HasSubstr("\nlogger  two_kinds  "), Not(HasSubstr("\ncallback  "))));
  EXPECT_THAT(screen("inspect callback/two_kinds" + dir),
              AllOf(HasSubstr("\ncallback  two_kinds  "), Not(HasSubstr("\nlogger  "))));
  EXPECT_THAT(screen("inspect two_kinds" + dir),
              AllOf(HasSubstr("\ncallback  two_kinds  "), HasSubstr("\nlogger  two_kinds  ")));
}

TEST_F(Inspect, ATableShowsTheHostsKeysInIt) {
  EXPECT_THAT(screen("inspect trainer"),
              AllOf(testing::StartsWith("[trainer]\n"), HasSubstr("  limit_val_batches "),
                    HasSubstr("number or share")));
  EXPECT_THAT(screen("inspect checkpoint"), AllOf(testing::StartsWith("[[checkpoint]]  a checkpointer"),
                                                  HasSubstr("  save_top_k "), HasSubstr("  use ")));
  for (const char* table : {"run", "resume", "model", "data", "optimizer", "scheduler", "logger", "strategy"})
    EXPECT_THAT(screen(std::string("inspect ") + table), AllOf(HasSubstr("["), Not(HasSubstr(" ? "))))
        << table;
}

TEST_F(Inspect, NamesEveryTypeOfOption) {
  const std::string text = screen("inspect all_options --plugin-dir " + folder("a", {"all_options"}));
  for (const char* type :
       {" bool ", " int ", " float ", " string ", " path ", " enum ", " size ", " duration ", " list of int ",
        " list of float ", " list of string ", " share ", " cadence "})
    EXPECT_THAT(text, HasSubstr(type));
}

}  // namespace
}  // namespace cli_test
