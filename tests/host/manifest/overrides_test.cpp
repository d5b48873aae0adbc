// tests/host/manifest/overrides_test.cpp - KEY=VALUE: values, paths, places of errors, LHOST_SET.
#include "manifest/overrides.hpp"
#include "support.hpp"

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const kBase = R"([trainer]
max_epochs = 10
[run]
dir = "runs"
[strategy]
use = "ddp"
bucket_cap = "25MiB"
[[logger]]
use = "tensorboard"
flush_secs = 10
[optimizer]
lr = 0.1
[[optimizer.group]]
match = "bias"
lr = 0.2
)";

struct Result {
  Node root;
  std::vector<std::string> problems;
  Texts texts;
};
Result apply(const std::vector<std::string>& items, Origin origin = Origin::command_line,
             const std::string& base = kBase) {
  Parsed p(base);
  Diagnostics d;
  for (const std::string& item : items) {
    p.texts.push_back({"command line", "/cwd", item});
    apply_override(p.root, static_cast<int>(p.texts.size()) - 1, 0, item.size(), origin, p.texts, d);
  }
  return {p.root, lines(d), p.texts};
}
std::string value(const Result& r, const std::string& path) {
  const Node* n = r.root.at_path(path);
  return n ? to_toml(*n) : "nothing";
}

TEST(Override, ValuesAreTomlAndOtherwiseText) {
  const Result r = apply({"a.int=3", "a.float=2.5e-1", "a.bool=true", "a.quoted=\"x y\"", "a.list=[1, 2]",
                          "a.table={ b = 1 }", "a.word=fsdp", "a.path=/data/x.toml",
                          "a.empty=", "a.hash=run#3", "a.version=1.2.3", "a.equals=x=y", "a.\"odd key\"=1"});
  EXPECT_THAT(r.problems, IsEmpty());
  EXPECT_EQ(to_toml(*r.root.find("a")),
            "{ int = 3, float = 0.25, bool = true, quoted = \"x y\", list = [1, 2], table = { b = 1 }, word "
            "= \"fsdp\", "
            "path = \"/data/x.toml\", empty = \"\", hash = \"run#3\", version = \"1.2.3\", equals = \"x=y\", "
            "\"odd key\" = 1 }");
}

TEST(Override, ReplacesAppendsAndIndexes) {
  const Result r = apply({"trainer.max_epochs=3", "logger+={use=\"csv\"}", "logger[0].flush_secs=1",
                          "optimizer.group[0].lr=1", "optimizer.group+={match=\"norm\"}", "new+=1", "new+=2",
                          "logger[1]={use=\"jsonl\"}"});
  EXPECT_THAT(r.problems, IsEmpty());
  EXPECT_EQ(value(r, "trainer.max_epochs"), "3");
  EXPECT_EQ(value(r, "logger"), "[{ use = \"tensorboard\", flush_secs = 1 }, { use = \"jsonl\" }]");
  EXPECT_EQ(value(r, "optimizer.group"), "[{ match = \"bias\", lr = 1 }, { match = \"norm\" }]");
  EXPECT_EQ(value(r, "new"), "[1, 2]");
}

TEST(Override, PlacesAreThoseOfTheArgument) {
  const Result r = apply({"optimizer.lr= 3e-4", "model.hidden=[1, \"\xC3\xA9\", 3]", "a.word=x\xC3\xA9y"});
  EXPECT_EQ(place(r.root.at_path("optimizer.lr")->source), "1:15-19");
  EXPECT_EQ(place(r.root.at_path("model.hidden")->source), "1:14-25");
  EXPECT_EQ(place(r.root.at_path("model.hidden")->array[2].source), "1:23-24");
  EXPECT_EQ(place(r.root.at_path("a.word")->source), "1:8-11");
  EXPECT_EQ(r.root.at_path("optimizer.lr")->source.origin, Origin::command_line);
  EXPECT_EQ(r.root.at_path("model.hidden")->source.text, 2);
  EXPECT_EQ(r.root.table.back().key, "a");
  EXPECT_EQ(place(r.root.table.back().key_source), "1:1-2");
}

TEST(Override, UnknownKeysPointIntoTheArgument) {
  const Result r = apply({"trainer.max_epoch=3"});
  Diagnostics d;
  report_unknown(*r.root.find("trainer"), "trainer", {&trainer_keys()}, host_known_keys(), d);
  EXPECT_THAT(lines(d), ElementsAre("1:9-18 trainer.max_epoch: unknown key; did you mean \"max_epochs\"?"));
}

TEST(Override, LeavesTheTablesPlaceToTheFile) {
  const Result r = apply({"trainer.max_steps=3"});
  EXPECT_EQ(r.root.find("trainer")->source.origin, Origin::file);
}

TEST(Override, SaysWhatIsWrongWithIt) {
  struct {
    const char *item, *problem;
  } cases[] = {
      {"trainer.max_epochs", "1:1-19 expected KEY=VALUE, such as trainer.max_epochs=3"},
      {"=3", "1:1-3 expected KEY=VALUE, such as trainer.max_epochs=3"},
      {"", "1:1-2 expected KEY=VALUE, such as trainer.max_epochs=3"},
      {"trainer.=3", "1:9-10 expected a key such as trainer.max_epochs"},
      {"trainer max=3", "1:8-9 expected a key such as trainer.max_epochs"},
      {"logger[x].use=3", "1:8-9 expected an index such as [0]"},
      {"\"open=3", "1:1-2 the quoted key is not closed"},
      {"\xFF=3", "1:1-2 this is not valid UTF-8"},
      {"trainer.max_epochs.x=3",
       "1:20-21 trainer.max_epochs.x: trainer.max_epochs is an integer, not a table"},
      {"run.dir[0]=3", "1:8-11 run.dir[0]: run.dir is a string, not a list"},
      {"logger[4].use=csv",
       "1:7-10 logger[4]: there is no entry 4, the list has 1; add one with logger+=..."},
      {"logger.use=csv",
       "1:8-11 logger.use: logger is a list, not a table; write logger[0].use=... or logger+={...}"},
      {"trainer+=3", "1:1-8 trainer: trainer is a table, not a list; write = in place of +="},
      {"extends=base.toml",
       "1:1-8 extends: only a file can extend others; write it there, or make a manifest of both"},
      {"model.hidden=[1",
       "1:14-16 model.hidden: this is not a TOML value: the file ends (in a list); a text goes in quotes"},
      {"checkpoint[0].x={epoch}",
       "1:17-24 checkpoint[0].x: this is not a TOML value: expected '=', saw '}' (in a key-value pair); a "
       "text goes in quotes"}};
  for (const auto& c : cases) {
    const Result r = apply({c.item});
    EXPECT_THAT(r.problems, ElementsAre(c.problem)) << c.item;
    EXPECT_EQ(value(r, "trainer.max_epochs"), "10");
  }
}

TEST(Override, ANewComponentLosesTheOldOnesOptionsButNotTheHosts) {
  const std::string base =
      "[strategy]\nuse = \"ddp\"\nbucket_cap = 1\n[scheduler]\nuse = \"cosine\"\nt_max = 3\nwarmup = \"5%\"\n"
      "[[logger]]\nuse = \"tensorboard\"\nflush = 1\non_error = \"stop\"\nname = \"n\"\n"
      "[optimizer]\nuse = \"sgd\"\nversion = \"1\"\nlr = 1\n[[optimizer.group]]\nlr = 2\n";
  const Result r =
      apply({"strategy.use=fsdp", "scheduler.use=step", "logger[0].plugin=/x.so", "optimizer={use=\"adam\"}"},
            Origin::command_line, base);
  EXPECT_EQ(value(r, "strategy"), "{ use = \"fsdp\" }");
  EXPECT_EQ(value(r, "scheduler"), "{ warmup = \"5%\", use = \"step\" }");
  EXPECT_EQ(value(r, "logger"), "[{ on_error = \"stop\", name = \"n\", plugin = \"/x.so\" }]");
  EXPECT_EQ(value(r, "optimizer"), "{ use = \"adam\" }");
}

TEST(Override, KeepsWhatTheSameLayerSaysWhateverTheOrder) {
  const Result r = apply({"strategy.shard=2", "strategy.use=fsdp", "strategy.more=3"});
  EXPECT_EQ(value(r, "strategy"), "{ shard = 2, use = \"fsdp\", more = 3 }");
}

TEST(Override, TheSameComponentKeepsItsOptions) {
  EXPECT_EQ(value(apply({"strategy.use=ddp"}), "strategy"), "{ use = \"ddp\", bucket_cap = \"25MiB\" }");
}

TEST(SplitItems, MindsQuotesAndBrackets) {
  const std::string s = " a=1; b=\"x;\\\";y\" ;; c=[1,{d=';'}];e=it's;f=2 ;\tg.\"h;i\"=3";
  std::vector<std::string> items;
  for (const auto& [begin, end] : split_items(s)) items.push_back(s.substr(begin, end - begin));
  EXPECT_THAT(items, ElementsAre("a=1", "b=\"x;\\\";y\"", "c=[1,{d=';'}]", "e=it's", "f=2", "g.\"h;i\"=3"));
  EXPECT_THAT(split_items(""), IsEmpty());
  EXPECT_THAT(split_items(" ; ;"), IsEmpty());
}

TEST(Override, OfLhostSetKnowsItsPlaceInTheWhole) {
  Parsed p(kBase);
  p.texts.push_back({"LHOST_SET", "/cwd", "a.b=1; optimizer.lr=\"x\";\n c.d=[2,\n3]"});
  Diagnostics d;
  for (const auto& [begin, end] : split_items(p.texts[1].content)) {
    apply_override(p.root, 1, begin, end, Origin::environment, p.texts, d);
  }
  EXPECT_THAT(lines(d), IsEmpty());
  EXPECT_EQ(place(p.root.at_path("optimizer.lr")->source), "1:21-24");
  EXPECT_EQ(p.root.at_path("optimizer.lr")->source.origin, Origin::environment);
  EXPECT_EQ(place(p.root.at_path("c.d")->array[0].source), "2:7-8");
  EXPECT_EQ(place(p.root.at_path("c.d")->array[1].source), "3:1-2");
}

TEST(Override, SurvivesAnyDepth) {
  std::string path = "a";
  for (int i = 0; i < 100000; ++i) path += ".a";
  EXPECT_EQ(apply({path + "=1"}).problems.size(), 1u);
  EXPECT_EQ(apply({"x=" + std::string(100000, '[')}).problems.size(), 1u);
}

}  // namespace
}  // namespace lhost
