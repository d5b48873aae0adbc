// tests/host/manifest/together_test.cpp - settings that contradict one another.
#include "support.hpp"

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Tables {
  Parsed p;
  Diagnostics d;
  explicit Tables(const std::string& text) : p(text) {}
  Values check(const std::string& place, const Schema& schema) {
    const Node* n = p.root.at_path(place);
    return check_table(n ? *n : Node{}, place, schema, p.texts, d);
  }
  std::vector<std::string> run_and_trainer() {
    const Values run = check("run", run_keys()), trainer = check("trainer", trainer_keys());
    check_together(run, trainer, d);
    return lines(d);
  }
  std::vector<std::string> data() {
    check_data(check("data", data_keys()), d);
    return lines(d);
  }
  std::vector<std::string> checkpoints(size_t n) {
    std::vector<Values> all;
    std::vector<const Values*> policies;
    for (size_t i = 0; i < n; ++i)
      all.push_back(check("checkpoint[" + std::to_string(i) + "]", checkpoint_keys()));
    for (const Values& v : all) policies.push_back(&v);
    check_checkpoints(policies, d);
    return lines(d);
  }
};

TEST(Together, MinimaLieBelowMaxima) {
  EXPECT_THAT(
      Tables("[trainer]\nmax_epochs = 2\nmin_epochs = 3\nmax_steps = 10\nmin_steps = 11").run_and_trainer(),
      ElementsAre("3:14-15 trainer.min_epochs: found 3, expected at most max_epochs = 2",
                  "5:13-15 trainer.min_steps: found 11, expected at most max_steps = 10"));
  EXPECT_THAT(Tables("[trainer]\nmax_epochs = 3\nmin_epochs = 3\nmin_steps = 11").run_and_trainer(),
              IsEmpty());
  EXPECT_THAT(
      Tables("[trainer]\nmax_epochs = -1\nmin_epochs = 3\nmax_steps = -1\nmin_steps = 11").run_and_trainer(),
      IsEmpty());
}

TEST(Together, AWayToClipNeedsAValue) {
  EXPECT_THAT(Tables("[trainer]\ngradient_clip_algorithm = \"value\"").run_and_trainer(),
              ElementsAre("2:27-34 trainer.gradient_clip_algorithm: has no effect without gradient_clip_val; "
                          "add it or remove this one"));
  EXPECT_THAT(
      Tables("[trainer]\ngradient_clip_algorithm = \"value\"\ngradient_clip_val = 1").run_and_trainer(),
      IsEmpty());
}

TEST(Together, ARunsNameIsOneFolder) {
  for (const char* name : {"a/b", "..", ".", "/abs"}) {
    EXPECT_EQ(Tables("[run]\nname = \"" + std::string(name) + "\"").run_and_trainer().size(), 1u) << name;
  }
  EXPECT_THAT(Tables("[run]\nname = \"digits.mlp-1\"").run_and_trainer(), IsEmpty());
}

TEST(Together, SharesOfASplitAreNoMoreThanTheWhole) {
  EXPECT_THAT(Tables("[data]\nsplit = { train = \"80%\", val = 0.3 }").data(),
              ElementsAre("2:32-35 data.split.val: split.train and split.val together are \"80%\" + 0.3, "
                          "expected at most 1"));
  EXPECT_THAT(Tables("[data]\nsplit = { train = 0.9, val = 0.1 }").data(),
              IsEmpty());  // 1.0 but for rounding
  EXPECT_THAT(Tables("[data]\nsplit.train = 0.7\nsplit.val = \"30%\"").data(), IsEmpty());
  EXPECT_THAT(Tables("[data]\nsplit.val = 1").data(), IsEmpty());
}

TEST(Together, MonitorAndModeBelongTogether) {
  EXPECT_THAT(
      Tables("[[checkpoint]]\nmode = \"min\"").checkpoints(1),
      ElementsAre("2:8-13 checkpoint[0].mode: has no meaning without a monitor; add monitor = \"val_loss\""));
  EXPECT_THAT(Tables("[[checkpoint]]\nmonitor = \"perplexity\"").checkpoints(1),
              ElementsAre("2:11-23 checkpoint[0].monitor: is a low or a high \"perplexity\" better? add mode "
                          "= \"min\" or mode = \"max\""));
  for (const char* name : {"val_loss", "loss", "val_err", "val_acc"}) {
    Tables t("[[checkpoint]]\nmonitor = \"" + std::string(name) + "\"");
    EXPECT_THAT(t.checkpoints(1), IsEmpty());
    EXPECT_EQ(monitor_wants_max(t.check("checkpoint[0]", checkpoint_keys())), std::string(name) == "val_acc");
  }
  Tables explicit_mode("[[checkpoint]]\nmonitor = \"val_loss\"\nmode = \"max\"");
  EXPECT_TRUE(monitor_wants_max(explicit_mode.check("checkpoint[0]", checkpoint_keys())));
}

TEST(Together, OneCadenceOfSaving) {
  EXPECT_THAT(
      Tables("[[checkpoint]]\nevery_n_epochs = 1\nevery_n_steps = 5").checkpoints(1),
      ElementsAre(
          "3:17-18 checkpoint[0].every_n_steps: given together with every_n_epochs; remove one of the two"));
}

TEST(Together, TheBestOfSeveralNeedAMonitor) {
  EXPECT_THAT(Tables("[[checkpoint]]\nsave_top_k = 3").checkpoints(1),
              ElementsAre("2:14-15 checkpoint[0].save_top_k: found 3 without a monitor, expected -1, 0 or 1; "
                          "add monitor = \"val_loss\""));
  EXPECT_THAT(Tables("[[checkpoint]]\nsave_top_k = -1").checkpoints(1), IsEmpty());
}

TEST(Together, FileNamesHaveWholeBraces) {
  for (const char* bad : {"{epoch", "epoch}", "{epoch{step}}", "{}", "{:02d}", "{a}{"}) {
    EXPECT_EQ(Tables("[[checkpoint]]\nfilename = \"" + std::string(bad) + "\"").checkpoints(1).size(), 1u)
        << bad;
  }
  EXPECT_THAT(Tables("[[checkpoint]]\nfilename = \"{epoch:02d}-{val_loss:.2f}/x\"").checkpoints(1),
              IsEmpty());
}

TEST(Together, PoliciesDoNotOverwriteOneAnother) {
  EXPECT_THAT(Tables("[[checkpoint]]\nfilename = \"a\"\n[[checkpoint]]\nfilename = \"a\"").checkpoints(2),
              ElementsAre("4:12-15 checkpoint[1].filename: would overwrite the files of checkpoint[0]; give "
                          "them another filename or dir"));
  EXPECT_EQ(Tables("[[checkpoint]]\n[[checkpoint]]").checkpoints(2).size(), 1u);
  EXPECT_THAT(Tables("[[checkpoint]]\nfilename = \"a\"\n[[checkpoint]]\nfilename = \"a\"\ndir = \"b\"")
                  .checkpoints(2),
              IsEmpty());
  EXPECT_THAT(Tables("[[checkpoint]]\n[[checkpoint]]\nsave_top_k = 0\nsave_last = true").checkpoints(2),
              IsEmpty());
}

}  // namespace
}  // namespace lhost
