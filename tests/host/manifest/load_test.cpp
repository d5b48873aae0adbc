// tests/host/manifest/load_test.cpp - layers: who wins, what merges, what a circle or a missing file says.
#include "support.hpp"

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Load : public testing::Test {
 protected:
  Manifest load(const std::string& content) {
    input.path = folder.write("m.toml", content);
    return load();
  }
  Manifest load() {
    d = {};
    Manifest m = load_manifest(input, d);
    EXPECT_TRUE(m.root.is_table());
    return m;
  }
  void defaults(const std::string& content) {
    input.defaults_path = folder.write("share/defaults.toml", content);
  }
  static std::string value(const Manifest& m, const std::string& path) {
    const Node* n = m.root.at_path(path);
    return n ? to_toml(*n) : "nothing";
  }

  Folder folder;
  ManifestInput input;
  Diagnostics d;
};

TEST_F(Load, EachLayerWinsOverAllBelowIt) {
  defaults(
      "[trainer]\na = \"defaults\"\nb = \"defaults\"\nc = \"defaults\"\nd = \"defaults\"\ne = "
      "\"defaults\"\nf = \"defaults\"\n");
  folder.write("first.toml",
               "[trainer]\nb = \"first\"\nc = \"first\"\nd = \"first\"\ne = \"first\"\nf = \"first\"\n");
  folder.write("second.toml", "[trainer]\nc = \"second\"\nd = \"second\"\ne = \"second\"\nf = \"second\"\n");
  input.lhost_set = "trainer.e=environment;trainer.f=environment";
  input.overrides = {"trainer.f=command"};
  const Manifest m = load(
      "extends = [\"first.toml\", \"second.toml\"]\n[trainer]\nd = \"file\"\ne = \"file\"\nf = \"file\"\n");
  EXPECT_THAT(lines(d), IsEmpty());
  EXPECT_EQ(value(m, "trainer"),
            "{ a = \"defaults\", b = \"first\", c = \"second\", d = \"file\", e = \"environment\", f = "
            "\"command\" }");
  EXPECT_EQ(value(m, "extends"), "nothing");
  const Origin origins[] = {Origin::defaults_file, Origin::file,        Origin::file,
                            Origin::file,          Origin::environment, Origin::command_line};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(m.root.find("trainer")->table[i].value.source.origin, origins[i]);
}

TEST_F(Load, ProvenanceNamesTheText) {
  folder.write("sub/base.toml", "[run]\nseed = 1\n");
  input.overrides = {"run.dir=x"};
  const Manifest m = load("extends = \"sub/base.toml\"\n[run]\nname = \"n\"\n");
  EXPECT_EQ(m.path, folder.path("m.toml"));
  ASSERT_EQ(m.texts.size(), 3u);
  EXPECT_EQ(m.texts[0].name, folder.path("m.toml"));
  EXPECT_EQ(m.texts[0].folder + "/", folder.path());
  EXPECT_EQ(m.texts[1].name, folder.path("sub/base.toml"));
  EXPECT_EQ(m.texts[1].folder, folder.path("sub"));
  EXPECT_EQ(m.texts[2].name, "command line");
  EXPECT_EQ(m.texts[2].folder, std::filesystem::current_path().string());
  EXPECT_EQ(m.root.at_path("run.seed")->source.text, 1);
  EXPECT_EQ(m.root.at_path("run.name")->source.text, 0);
  EXPECT_EQ(m.root.at_path("run.dir")->source.text, 2);
}

TEST_F(Load, PathsFollowTheTextThatNamesThem) {
  folder.write("sub/base.toml", "[run]\ndir = \"out\"\n");
  Manifest m = load("extends = \"sub/base.toml\"\n");
  EXPECT_EQ(check_table(*m.root.find("run"), "run", run_keys(), m.texts, d).text("dir"),
            folder.path("sub/out"));
  input.overrides = {"run.dir=out"};
  m = load();
  EXPECT_EQ(check_table(*m.root.find("run"), "run", run_keys(), m.texts, d).text("dir"),
            (std::filesystem::current_path() / "out").string());
}

TEST_F(Load, TablesMergeAndListsReplace) {
  folder.write("base.toml",
               "[data]\nuse = \"idx\"\ntrain = { images = \"a\", labels = \"b\" }\n[model]\nhidden = [1, 2]\n"
               "[[logger]]\nuse = \"csv\"\n[[logger]]\nuse = \"jsonl\"\n[[callback]]\nevery = { epochs = 1 "
               "}\n[profiler]\nevery = { epochs = 1 }");
  const Manifest m = load(
      "extends = \"base.toml\"\n[data]\ntrain = { images = \"c\" }\n[model]\nhidden = [3]\n"
      "[[logger]]\nuse = \"tensorboard\"\n[profiler]\nevery = { steps = 5 }");
  EXPECT_EQ(value(m, "data.train"), "{ images = \"c\", labels = \"b\" }");
  EXPECT_EQ(value(m, "model.hidden"), "[3]");
  EXPECT_EQ(value(m, "logger"), "[{ use = \"tensorboard\" }]");
  EXPECT_EQ(value(m, "callback"), "[{ every = { epochs = 1 } }]");
  EXPECT_EQ(value(m, "profiler.every"), "{ steps = 5 }");  // a cadence is one value
}

TEST_F(Load, AnotherComponentDropsTheLowerOnesOptions) {
  defaults("[strategy]\nuse = \"single\"\nlazy = true\n");
  folder.write("base.toml",
               "[data]\nuse = \"idx\"\nimages = \"a\"\nbatch_size = 64\nsplit.val = 0.1\n[optimizer]\nplugin "
               "= \"x.so\"\nlr = 1\n"
               "[model]\nuse = \"mlp\"\nplugin = \"m.so\"\nhidden = 3\n[precision]\nuse = \"a\"\nx = "
               "1\n[scheduler]\nuse = \"step\"\nsize = 3\n");
  const Manifest m = load(
      "extends = \"base.toml\"\n[strategy]\nuse = \"ddp\"\n[data]\nuse = \"csv\"\nfile = \"f\"\n"
      "[optimizer]\nuse = \"sgd\"\n[model]\nuse = \"mlp\"\ndepth = 2\n[precision]\nplugin = "
      "\"p.so\"\n[scheduler]\ngamma = 1\n");
  EXPECT_EQ(value(m, "strategy"), "{ use = \"ddp\" }");
  EXPECT_EQ(value(m, "data"), "{ batch_size = 64, split = { val = 0.1 }, use = \"csv\", file = \"f\" }");
  EXPECT_EQ(value(m, "optimizer"), "{ use = \"sgd\" }");
  EXPECT_EQ(value(m, "model"), "{ use = \"mlp\", plugin = \"m.so\", hidden = 3, depth = 2 }");
  EXPECT_EQ(value(m, "precision"), "{ plugin = \"p.so\" }");
  EXPECT_EQ(value(m, "scheduler"), "{ use = \"step\", size = 3, gamma = 1 }");
}

TEST_F(Load, WithinOneTextNothingIsDropped) {
  const Manifest m = load("[strategy]\nbucket_cap = 1\nuse = \"single\"\n");
  EXPECT_EQ(value(m, "strategy"), "{ bucket_cap = 1, use = \"single\" }");
}

TEST_F(Load, AlwaysEntriesFollowTheUsersUnlessNamed) {
  defaults(
      "[[logger]]\nuse = \"csv\"\n[[callback]]\nuse = \"progress\"\nalways = true\n[[callback]]\nuse = "
      "\"extra\"\n");
  EXPECT_EQ(value(load(""), "callback"), "[{ use = \"extra\" }, { use = \"progress\" }]");
  EXPECT_EQ(value(load("[[callback]]\nuse = \"lr_monitor\"\n"), "callback"),
            "[{ use = \"lr_monitor\" }, { use = \"progress\" }]");
  EXPECT_EQ(
      value(load("[[callback]]\nuse = \"a\"\n[[callback]]\nuse = \"progress\"\nbar = false\n"), "callback"),
      "[{ use = \"a\" }, { use = \"progress\", bar = false }]");
  EXPECT_EQ(value(load("callback = []"), "callback"), "[{ use = \"progress\" }]");
  EXPECT_EQ(value(load("logger = []"), "logger"), "[]");
  EXPECT_EQ(value(load(""), "logger"), "[{ use = \"csv\" }]");
  input.overrides = {"callback+={use=\"b\"}", "logger=[]"};
  const Manifest m = load("[[callback]]\nuse = \"a\"\n");
  EXPECT_EQ(value(m, "callback"), "[{ use = \"a\" }, { use = \"b\" }, { use = \"progress\" }]");
  EXPECT_EQ(value(m, "logger"), "[]");
  EXPECT_THAT(lines(d), IsEmpty());
}

TEST_F(Load, AlwaysIsAKeyOfTheDefaultsFileOnly) {
  const Manifest m = load("[[callback]]\nuse = \"a\"\nalways = true\n");
  report_unknown(m.root.find("callback")->array[0], "callback[0]", {&selection_keys()}, {}, d);
  EXPECT_THAT(lines(d),
              ElementsAre("3:1-7 callback[0].always: unknown key; there are use, plugin, version, name"));
}

TEST_F(Load, TheInstalledDefaultsAreThoseOfTheDesign) {
  input.defaults_path = LHOST_TEST_SOURCE "/host/manifest/defaults.toml";
  const Manifest m = load("");
  EXPECT_THAT(lines(d), IsEmpty());
  EXPECT_EQ(
      to_toml(m.root),
      "{ schema = 1, accelerator = { use = \"auto\" }, launcher = { use = \"auto\" }, collective = { use = "
      "\"gloo\" }, strategy = { use = "
      "\"single\" }, "
      "precision = { use = \"32-true\" }, logger = [{ use = \"csv\" }], callback = [{ use = \"progress\" }], "
      "checkpoint = [{ use = \"torch\" }] }");
}

TEST_F(Load, CirclesAreToldWithTheirWay) {
  folder.write("a.toml", "extends = \"sub/b.toml\"\n");
  folder.write("sub/b.toml", "[run]\nx = 1\n");
  input.path = folder.path("a.toml");
  load();
  EXPECT_THAT(lines(d), IsEmpty());

  folder.write("sub/b.toml", "extends = [\"../a.toml\"]\n");
  const Manifest m = load();
  EXPECT_THAT(
      lines(d),
      ElementsAre(
          "1:12-23 extends: these manifests extend one another in a circle: a.toml -> b.toml -> a.toml"));
  EXPECT_EQ(m.texts[static_cast<size_t>(d.list()[0].source.text)].name, folder.path("sub/b.toml"));
  EXPECT_FALSE(m.complete);

  folder.write("a.toml", "extends = \"a.toml\"\n");
  load();
  EXPECT_THAT(
      lines(d),
      ElementsAre("1:11-19 extends: these manifests extend one another in a circle: a.toml -> a.toml"));
}

TEST_F(Load, TheSameBaseTwiceIsNoCircleAndReadOnce) {
  for (int i = 0; i < 30; ++i) {
    const std::string next = std::to_string(i + 1) + ".toml";
    folder.write(std::to_string(i) + ".toml", "extends = [\"" + next + "\", \"" + next + "\"]\n");
  }
  folder.write("30.toml", "[run]\nseed = 7\n");
  input.path = folder.path("0.toml");
  const Manifest m = load();
  EXPECT_THAT(lines(d), IsEmpty());
  EXPECT_EQ(value(m, "run.seed"), "7");
  EXPECT_EQ(m.texts.size(), 31u);
}

TEST_F(Load, BasesThatCannotBeReadPointToTheName) {
  std::filesystem::create_directory(folder.path("dir"));
  load("extends = [\"none.toml\", \"dir\", 3, \"\"]\n[run]\nname = \"x\"\n");
  EXPECT_THAT(
      lines(d),
      ElementsAre("1:12-23 extends: the manifest " + folder.path("none.toml") + " does not exist",
                  "1:25-30 extends: the manifest " + folder.path("dir") + " is a folder, not a manifest",
                  "1:32-33 extends: found an integer, expected a manifest's path or a list of paths",
                  "1:35-37 extends: found \"\", expected a manifest's path or a list of paths"));
}

TEST_F(Load, SyntaxErrorsOfEveryTextAreReportedAndNothingElse) {
  folder.write("base.toml", "a = \n");
  const Manifest m = load("extends = \"base.toml\"\n[run]\nseed = \n");
  EXPECT_FALSE(m.complete);
  EXPECT_EQ(d.list().size(), 1u);  // the file's own comes first: what it extends is not known then
  folder.write("m.toml", "extends = \"base.toml\"\n[run]\n");
  EXPECT_FALSE(load().complete);
  EXPECT_EQ(d.list()[0].source.text, 1);
}

TEST_F(Load, AnUnreadableMainFileIsAUsageFailure) {
  input.path = folder.path("none.toml");
  try {
    load();
    FAIL();
  } catch (const Failure& f) {
    EXPECT_EQ(f.code, Exit::usage);
    EXPECT_THAT(f.what(), HasSubstr("none.toml does not exist"));
  }
  for (const std::string& path : {folder.path(), std::string("/dev/zero")}) {
    input.path = path;
    EXPECT_THROW(load(), Failure) << path;
  }
}

TEST_F(Load, MissingDefaultsAreAnEnvironmentFailure) {
  input.defaults_path = folder.path("none.toml");
  try {
    load("");
    FAIL();
  } catch (const Failure& f) {
    EXPECT_EQ(f.code, Exit::environment);
  }
}

TEST_F(Load, KnownTablesAreTablesAfterwards) {
  const Manifest m = load(
      "trainer = 5\noptimizer = { group = 1, lr = 1 }\ncheckpoint = \"torch\"\nlogger = [\"csv\", { use = "
      "\"jsonl\" }, 3]\n"
      "[[run]]\n[callback]\nuse = \"progress\"\n");
  EXPECT_THAT(
      lines(d),
      testing::UnorderedElementsAre(
          "1:11-12 trainer: found an integer, expected a table; write [trainer]",
          "2:23-24 optimizer.group: found an integer, expected a list of tables; write [[optimizer.group]]",
          "3:14-21 checkpoint: found the string \"torch\", expected a list of tables; write [[checkpoint]]",
          "4:11-16 logger[0]: found the string \"csv\", expected a table; write { use = \"csv\" }",
          "4:37-38 logger[2]: found an integer, expected a table",
          "5:1-8 run: found a list, expected a table; write [run], once",
          "6:1-11 callback: found a table, expected a list of tables; write [[callback]]"));
  EXPECT_EQ(to_toml(m.root), "{ optimizer = { lr = 1 }, logger = [{ use = \"jsonl\" }] }");
}

TEST_F(Load, AByteOrderMarkAndCarriageReturnsDoNotMatter) {
  const Manifest m = load("\xEF\xBB\xBF[run]\r\nname = \"x\"\r\n");
  EXPECT_THAT(lines(d), IsEmpty());
  EXPECT_EQ(value(m, "run.name"), "\"x\"");
}

}  // namespace
}  // namespace lhost
