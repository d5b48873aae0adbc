// tests/host/manifest/unknown_test.cpp
#include "support.hpp"

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> unknown(const std::string& text, const std::string& prefix, const Schema& schema) {
  const Parsed p(text);
  KnownKeys everything = host_known_keys();
  everything["strategy ddp"] = {"bucket_cap"};
  Diagnostics d;
  report_unknown(p.root, prefix, {&schema, &selection_keys()}, everything, d);
  return lines(d);
}

TEST(Unknown, SuggestsTheClosestKeyOfTheSameTable) {
  EXPECT_THAT(unknown("max_epoch = 10", "trainer", trainer_keys()),
              ElementsAre("1:1-10 trainer.max_epoch: unknown key; did you mean \"max_epochs\"?"));
}

TEST(Unknown, LooksInAllOtherTablesNext) {
  EXPECT_THAT(unknown("batch_size = 10\nbucket_cpa = 1\nsede = 1\nmatch = \"x\"", "trainer", trainer_keys()),
              ElementsAre("1:1-11 trainer.batch_size: unknown key; it is a key of [data]",
                          "2:1-11 trainer.bucket_cpa: unknown key; did you mean \"bucket_cap\"? it is an "
                          "option of strategy ddp",
                          "3:1-5 trainer.sede: unknown key; did you mean \"seed\"? it is a key of [run]",
                          "4:1-6 trainer.match: unknown key; it is a key of [optimizer.group]"));
}

TEST(Unknown, ListsWhatThereIsWhereNothingIsClose) {
  EXPECT_THAT(
      unknown("quite_something_else = 1", "resume", resume_keys()),
      ElementsAre("1:1-21 resume.quite_something_else: unknown key; there are from, strict, use, plugin, "
                  "version, name"));
  EXPECT_THAT(
      unknown("quite_something_else = 1", "trainer", trainer_keys()),
      ElementsAre("1:1-21 trainer.quite_something_else: unknown key; lhost inspect trainer lists all"));
}

TEST(Unknown, ATableOfTheTopIsShownAsATable) {
  EXPECT_THAT(
      unknown("precision = \"x\"", "trainer", trainer_keys()),
      ElementsAre(
          "1:1-10 trainer.precision: unknown key; write [precision] use = \"...\", a table of its own"));
}

TEST(Unknown, ListsAreTheSameTableWhateverTheirIndex) {
  EXPECT_THAT(unknown("monitr = 1\non_error = 1", "checkpoint[3]", checkpoint_keys()),
              ElementsAre("1:1-7 checkpoint[3].monitr: unknown key; did you mean \"monitor\"?",
                          "2:1-9 checkpoint[3].on_error: unknown key; it is a key of [callback]"));
}

TEST(Unknown, WalksIntoTablesOfDottedKeys) {
  const Schema schema = {option("train.images", LH_T_PATH), option("train.labels", LH_T_PATH),
                         option("every", LH_T_CADENCE)};
  EXPECT_THAT(unknown("train = { images = 1, lables = 2 }\nevery = { anything = 1 }\ntrian.images = 1",
                      "data", schema),
              ElementsAre("1:23-29 data.train.lables: unknown key; did you mean \"labels\"?",
                          "3:1-6 data.trian: unknown key; did you mean \"train\"?"));
}

TEST(Unknown, NamesTablesAtTheTop) {
  const Schema root = root_keys();
  EXPECT_THAT(
      unknown("max_epochs = 1\n[trianer]\n[[loger]]\n[run]\n[zzzzzz]\n", "", root),
      ElementsAre("1:1-11 max_epochs: unknown key; it is a key of [trainer]",
                  "2:2-9 trianer: unknown table; did you mean [trainer]?",
                  "3:3-8 loger: unknown table; did you mean [logger]?", "5:2-8 zzzzzz: unknown table"));
}

TEST(Unknown, FollowsEverySingleTypingErrorOfEveryHostKey) {
  for (const auto& [table, keys] : host_known_keys()) {
    if (table.empty()) continue;
    for (const std::string& key : keys) {
      const size_t dot = key.rfind('.') + 1;
      std::vector<std::string> leaf;  // names at the same level
      for (const std::string& k : keys) {
        if (k.rfind('.') + 1 == dot && k.substr(0, dot) == key.substr(0, dot)) leaf.push_back(k.substr(dot));
      }
      std::string name = key.substr(dot), swapped = name;
      std::swap(swapped[0], swapped[1]);
      for (const std::string& wrong : {swapped, name.substr(1), name + "x", "q" + name.substr(1)}) {
        if (std::find(leaf.begin(), leaf.end(), wrong) != leaf.end()) continue;
        EXPECT_EQ(closest(wrong, leaf), name) << table << " " << wrong;
      }
    }
  }
}

TEST(Closest, CountsInsertionsDeletionsChangesAndSwaps) {
  EXPECT_EQ(closest("dpp", {"ddp", "fsdp"}), "ddp");
  EXPECT_EQ(closest("fdsp", {"ddp", "fsdp"}), "fsdp");
  EXPECT_EQ(closest("ls", {"dir", "lr"}), "lr");
  EXPECT_EQ(closest("lr", {"dir", "name"}), "");  // half of it is not enough
  EXPECT_EQ(closest("maxEpochs", {"max_epochs"}), "max_epochs");
  EXPECT_EQ(closest("", {"a"}), "");
  EXPECT_EQ(closest(std::string(100000, 'a'), {std::string(100000, 'b')}), "");
}

}  // namespace
}  // namespace lhost
