#include "fakes.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

using namespace lhost_test;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

namespace {

struct Progress : CallbackTest {
  Progress() {
    setenv("LC_ALL", "C.UTF-8", 1);
    fake().info.max_epochs = 20;
    fake().info.batches = 21;
    fake().width = 120;
  }
  static const Options& every_batch() {
    static const Options o = {{"refresh_per_second", 1e9}};
    return o;
  }
  // One epoch of training with a validation of 3 batches at its end.
  static void epoch(CallbackUnderTest& c, int64_t number) {
    fake().step.epoch = number;
    fake().info.batches = 21;
    c.hear(LH_STAGE_FIT, LH_ON_EPOCH_START);
    for (int64_t b = 0; b < 21; ++b) {
      fake().step.batch = b;
      ++fake().step.global_step;
      c.hear(LH_STAGE_FIT, LH_ON_BATCH_END);
    }
    fake().info.batches = 3;
    c.hear(LH_STAGE_VALIDATE, LH_ON_START);
    for (int64_t b = 0; b < 3; ++b) {
      fake().step.batch = b;
      c.hear(LH_STAGE_VALIDATE, LH_ON_BATCH_END);
    }
    c.hear(LH_STAGE_VALIDATE, LH_ON_END);
    fake().step.batch = 20;
    c.hear(LH_STAGE_FIT, LH_ON_EPOCH_END);
  }
};

TEST_F(Progress, PaintsTheBarOfTheEpochAndOfItsValidation) {
  fake().set_metric("loss", 0.2134);
  CallbackUnderTest c("progress", every_batch());
  c.hear(LH_STAGE_FIT, LH_ON_START);
  epoch(c, 3);
  c.hear(LH_STAGE_FIT, LH_ON_END);
  ASSERT_EQ(fake().painted.size(), 21u + 3u + 1u);
  EXPECT_THAT(fake().painted[12], StartsWith("epoch  4/20 ━━━━━━━━━━━━━━━━━━╸───────────  62% 13/21  "));
  EXPECT_THAT(fake().painted[12], testing::EndsWith("  loss 0.213"));
  EXPECT_THAT(fake().painted[22], StartsWith("validate ━━━━━━━━━━━━━━━━━━━━──────────  67% 2/3  "));
  EXPECT_EQ(fake().painted.back(), "") << "the line goes away at the end";
  ASSERT_EQ(fake().printed.size(), 1u) << "on a terminal nothing scrolls, but the last epoch stays";
  EXPECT_THAT(fake().printed[0], testing::AllOf(StartsWith("epoch  4/20"), HasSubstr("loss  0.213")));
}
TEST_F(Progress, PaintsNoMoreOftenThanAsked) {
  CallbackUnderTest c("progress", {{"refresh_per_second", 1e-300}});
  c.hear(LH_STAGE_FIT, LH_ON_START);
  for (int e = 0; e < 20; ++e) epoch(c, e);
  EXPECT_EQ(fake().painted.size(), 1u) << "the first batch, then not for eleven days";
}
TEST_F(Progress, OnAPipeOneLineAnEpoch) {
  fake().tty = false;
  CallbackUnderTest c("progress", every_batch());
  c.hear(LH_STAGE_FIT, LH_ON_START);
  for (int e = 2; e < 4; ++e) {
    fake().set_metric("loss", 0.2134 + e);
    fake().set_metric("val_loss", 0.2313);
    epoch(c, e);
  }
  c.hear(LH_STAGE_FIT, LH_ON_END);
  EXPECT_TRUE(fake().painted.empty());
  ASSERT_EQ(fake().printed.size(), 2u);
  EXPECT_THAT(fake().printed[0],
              MatchesRegex("epoch  3/20  21 steps  [0-9.]+ s  loss  2.213  val_loss  0.231"));
  EXPECT_THAT(fake().printed[1],
              MatchesRegex("epoch  4/20  21 steps  [0-9.]+ s  loss  3.213  val_loss  0.231"));
}
TEST_F(Progress, RefreshZeroGivesLinesOnATerminalToo) {
  CallbackUnderTest c("progress", {{"refresh_per_second", 0.0}});
  c.hear(LH_STAGE_FIT, LH_ON_START);
  epoch(c, 0);
  EXPECT_TRUE(fake().painted.empty());
  EXPECT_EQ(fake().printed.size(), 1u);
}
TEST_F(Progress, SaysNothingWhereTheTerminalIsOff) {
  fake().enabled = false;
  for (bool tty : {true, false}) {
    fake().tty = tty;
    CallbackUnderTest c("progress", every_batch());
    c.hear(LH_STAGE_FIT, LH_ON_START);
    epoch(c, 0);
    c.hear(LH_STAGE_FIT, LH_ON_END);
  }
  EXPECT_TRUE(fake().painted.empty());
  EXPECT_TRUE(fake().printed.empty());
}
TEST_F(Progress, FlaggedMetricsAndTheLossAreShown) {
  fake().tty = false;
  fake().set_metric("grad_norm", 1);
  fake().set_metric("loss", 2);
  fake().set_metric("val_acc", 0.5, LH_PROG_BAR);
  CallbackUnderTest c("progress");
  epoch(c, 0);
  EXPECT_THAT(fake().printed.at(0), testing::EndsWith(" s  loss  2.000  val_acc  0.500"));
}
TEST_F(Progress, WithoutFlagsTheFirstSixAreShown) {
  fake().tty = false;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) fake().set_metric(name, 1);
  CallbackUnderTest c("progress");
  epoch(c, 0);
  EXPECT_THAT(fake().printed.at(0), HasSubstr("  f  1.000"));
  EXPECT_THAT(fake().printed.at(0), Not(HasSubstr("  g  1.000")));
}
TEST_F(Progress, WithoutALimitOfEpochsNoneIsNamed) {
  fake().tty = false;
  fake().info.max_epochs = -1;
  CallbackUnderTest c("progress");
  epoch(c, 8);
  EXPECT_THAT(fake().printed.at(0), StartsWith("epoch 9  21 steps  "));
}
TEST_F(Progress, ARunThatFailsLeavesNoLine) {
  CallbackUnderTest c("progress", every_batch());
  c.hear(LH_STAGE_FIT, LH_ON_START);
  epoch(c, 0);
  c.hear(LH_STAGE_FIT, LH_ON_EXCEPTION);
  EXPECT_EQ(fake().painted.back(), "");
}
TEST_F(Progress, TestAndPredictHaveTheirOwnBars) {
  for (const auto& [stage, label] :
       {std::pair(LH_STAGE_TEST, "test"), std::pair(LH_STAGE_PREDICT, "predict")}) {
    fake().painted.clear();
    fake().step.batch = 0;
    CallbackUnderTest c("progress", every_batch());
    c.hear(stage, LH_ON_START);
    c.hear(stage, LH_ON_BATCH_END);
    c.hear(stage, LH_ON_END);
    ASSERT_EQ(fake().painted.size(), 2u);
    EXPECT_THAT(fake().painted[0], StartsWith(std::string(label) + " ━"));
    EXPECT_EQ(fake().painted[1], "");
  }
}
TEST_F(Progress, ATestShowsNothingOfTheTrainingBefore) {
  fake().set_metric("loss", 0.5);
  CallbackUnderTest c("progress", every_batch());
  c.hear(LH_STAGE_FIT, LH_ON_START);
  epoch(c, 0);
  c.hear(LH_STAGE_FIT, LH_ON_END);
  EXPECT_THAT(fake().painted[22], HasSubstr("loss 0.500"));
  fake().painted.clear();
  c.hear(LH_STAGE_TEST, LH_ON_START);
  c.hear(LH_STAGE_TEST, LH_ON_BATCH_END);
  EXPECT_THAT(fake().painted.at(0), Not(HasSubstr("loss")));
}
TEST_F(Progress, TheBarFollowsTheLocale) {
  const std::pair<const char*, const char*> cases[] = {
      {"C", "#"}, {"en_US.ISO-8859-1", "#"}, {"en_US.UTF-8", "━"}, {"de_DE.utf8", "━"}};
  for (const auto& [locale, cell] : cases) {
    setenv("LC_ALL", locale, 1);
    fake().painted.clear();
    fake().step.batch = 20;
    CallbackUnderTest c("progress", every_batch());
    c.hear(LH_STAGE_TEST, LH_ON_START);
    c.hear(LH_STAGE_TEST, LH_ON_BATCH_END);
    EXPECT_THAT(fake().painted.at(0), StartsWith("test " + std::string(cell))) << locale;
  }
}
TEST_F(Progress, SubscribesToNothingInsideAStep) {
  CallbackUnderTest c("progress");
  EXPECT_TRUE(c.subscribes(LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_END)));
  EXPECT_FALSE(c.subscribes(LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_START)));
  EXPECT_FALSE(c.subscribes(LH_EVENT(LH_STAGE_FIT, LH_ON_BEFORE_STEP)));
}

}  // namespace
