#include "fakes.hpp"

using namespace lhost_test;

namespace {

using LrMonitor = CallbackTest;
using Logged = FakeRun::Logged;

TEST_F(LrMonitor, RecordsTheRateOfEachStep) {
  fake().groups = {{LH_STR(""), 0.5}};
  CallbackUnderTest c("lr_monitor");
  c.hear(LH_STAGE_FIT, LH_ON_EPOCH_START);
  c.hear(LH_STAGE_FIT, LH_ON_BEFORE_STEP);
  fake().groups[0].lr = 0.25;
  c.hear(LH_STAGE_FIT, LH_ON_BEFORE_STEP);
  EXPECT_EQ(fake().logged, (std::vector<Logged>{{"lr", LH_ON_STEP, 0.5}, {"lr", LH_ON_STEP, 0.25}}));
  EXPECT_EQ(fake().declared.size(), 1u) << "a metric is declared once";
}
TEST_F(LrMonitor, NamesTheGroups) {
  fake().groups = {{LH_STR(""), 0.5}, {LH_STR("bias"), 0.1}};
  CallbackUnderTest c("lr_monitor");
  c.hear(LH_STAGE_FIT, LH_ON_BEFORE_STEP);
  EXPECT_EQ(fake().logged, (std::vector<Logged>{{"lr", LH_ON_STEP, 0.5}, {"lr/bias", LH_ON_STEP, 0.1}}));
}
TEST_F(LrMonitor, RecordsOnceAnEpochWhenAsked) {
  fake().groups = {{LH_STR(""), 0.5}};
  CallbackUnderTest c("lr_monitor", {{"interval", "epoch"}});
  c.hear(LH_STAGE_FIT, LH_ON_EPOCH_START);
  c.hear(LH_STAGE_FIT, LH_ON_BEFORE_STEP);
  c.hear(LH_STAGE_FIT, LH_ON_BEFORE_STEP);
  EXPECT_EQ(fake().logged, (std::vector<Logged>{{"lr", LH_ON_EPOCH, 0.5}}));
}

}  // namespace
