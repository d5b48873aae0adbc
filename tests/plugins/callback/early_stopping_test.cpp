// The rules are Lightning's; numbers of the cases B113 to B115 were measured there.
#include "fakes.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

using namespace lhost_test;
using testing::HasSubstr;

namespace {

struct EarlyStopping : CallbackTest {
  // Validates once per value; the epoch in which a stop was asked for, or -1.
  static int stopped_epoch(const Options& options, const std::vector<double>& values) {
    CallbackUnderTest c("early_stopping", options);
    c.hear(LH_STAGE_FIT, LH_ON_START);
    for (size_t epoch = 0; epoch < values.size(); ++epoch) {
      fake().set_metric("val_loss", values[epoch]);
      c.hear(LH_STAGE_VALIDATE, LH_ON_END);
      if (!fake().stops.empty()) return static_cast<int>(epoch);
    }
    return -1;
  }
};

const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_F(EarlyStopping, StopsWhenPatienceIsUsedUp) {  // B113
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}, {"patience", int64_t{1}}}, {6, 5, 4, 4, 3, 3}), 3);
  EXPECT_THAT(fake().stops.at(0),
              HasSubstr("val_loss did not improve in 1 validation (mode \"min\"); best 4"));
}
TEST_F(EarlyStopping, CountsOnlyChangesGreaterThanMinDelta) {  // B114
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}, {"patience", int64_t{2}}, {"min_delta", 0.1}},
                          {1, .9, .85, .84, .83}),
            4);
  EXPECT_THAT(fake().stops.at(0), HasSubstr("best 0.85"));
}
TEST_F(EarlyStopping, StopsAtAValueThatIsNotFinite) {  // B115
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}}, {5, 4, kNan}), 2);
  EXPECT_THAT(fake().stops.at(0), HasSubstr("not a finite number"));
}
TEST_F(EarlyStopping, StopsAtTheStoppingThreshold) {
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}, {"stopping_threshold", 2.0}}, {4, 2, 1.9}), 2);
  EXPECT_THAT(fake().stops.at(0), HasSubstr("better than the stopping threshold 2"));
}
TEST_F(EarlyStopping, StopsAtTheDivergenceThreshold) {
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}, {"divergence_threshold", 8.0}}, {4, 8, 8.5}), 2);
  EXPECT_THAT(fake().stops.at(0), HasSubstr("worse than the divergence threshold 8"));
}
TEST_F(EarlyStopping, ANanWithoutFiniteCheckIsNoImprovement) {
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}, {"check_finite", false}, {"patience", int64_t{2}}},
                          {5, kNan, kNan, 1}),
            2);
}
TEST_F(EarlyStopping, PatienceZeroStopsAtTheFirstLookWithoutImprovement) {
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}, {"patience", int64_t{0}}}, {3, 2, 2}), 2);
}
TEST_F(EarlyStopping, ModeMaxWantsMore) {
  const Options o = {{"monitor", "val_loss"}, {"mode", "max"}, {"patience", int64_t{2}}};
  EXPECT_EQ(stopped_epoch(o, {.5, .6, .6, .59, .9}), 3);
}
TEST_F(EarlyStopping, ModeMaxTurnsTheThresholdsRound) {
  EXPECT_EQ(
      stopped_epoch({{"monitor", "val_loss"}, {"mode", "max"}, {"stopping_threshold", 0.9}}, {.8, .9, .95}),
      2);
  fake().stops.clear();
  EXPECT_EQ(
      stopped_epoch({{"monitor", "val_loss"}, {"mode", "max"}, {"divergence_threshold", 0.1}}, {.8, .05}), 1);
}
TEST_F(EarlyStopping, GoesOnWhileTheMetricImproves) {
  EXPECT_EQ(stopped_epoch({{"monitor", "val_loss"}, {"patience", int64_t{1}}}, {5, 4, 3, 2, 1}), -1);
}

TEST_F(EarlyStopping, TheSanityCheckIsNotLookedAt) {
  CallbackUnderTest c("early_stopping", {{"monitor", "val_loss"}});
  c.hear(LH_STAGE_FIT, LH_ON_START);
  fake().set_metric("val_loss", kNan);
  fake().step.flags = LH_STEP_SANITY;
  c.hear(LH_STAGE_VALIDATE, LH_ON_END);
  EXPECT_TRUE(fake().stops.empty());
}
TEST_F(EarlyStopping, AValidationOutsideFitIsNotLookedAt) {
  CallbackUnderTest c("early_stopping", {{"monitor", "val_loss"}});
  c.hear(LH_STAGE_VALIDATE, LH_ON_END);
  EXPECT_TRUE(fake().stops.empty());
}
TEST_F(EarlyStopping, AMissingMetricFailsAndListsThoseThatExist) {
  CallbackUnderTest c("early_stopping", {{"monitor", "val_los"}, {"mode", "min"}});
  c.hear(LH_STAGE_FIT, LH_ON_START);
  fake().set_metric("loss", 1);
  fake().set_metric("val_loss", 1);
  const std::string message = failure(c.send(LH_STAGE_VALIDATE, LH_ON_END));
  EXPECT_THAT(message, HasSubstr("no metric \"val_los\""));
  EXPECT_THAT(message, HasSubstr("known are \"loss\", \"val_loss\""));
}
TEST_F(EarlyStopping, AMissingMetricWarnsOnceWhenNotStrict) {
  CallbackUnderTest c("early_stopping", {{"monitor", "val_los"}, {"mode", "min"}, {"strict", false}});
  c.hear(LH_STAGE_FIT, LH_ON_START);
  c.hear(LH_STAGE_VALIDATE, LH_ON_END);
  c.hear(LH_STAGE_VALIDATE, LH_ON_END);
  ASSERT_EQ(logged().size(), 1u);
  EXPECT_THAT(logged()[0], HasSubstr("nothing has been logged yet"));
}
TEST_F(EarlyStopping, SaysSoWhenItNeverLooked) {
  CallbackUnderTest c("early_stopping", {{"monitor", "val_loss"}});
  c.hear(LH_STAGE_FIT, LH_ON_START);
  c.hear(LH_STAGE_FIT, LH_ON_END);
  ASSERT_EQ(logged().size(), 1u);
  EXPECT_THAT(logged()[0], HasSubstr("never looked at"));
}

// State as a map, as a checkpoint would keep it.
struct State {
  std::map<std::string, lh_value> values;
  lh_state_out out{sizeof(lh_state_out), 0, this,
                   [](void* s, lh_str name, const lh_value* v) -> lh_status {
                     static_cast<State*>(s)->values[text(name)] = *v;
                     return nullptr;
                   },
                   nullptr};
  lh_state_in in{sizeof(lh_state_in), 0, this,
                 [](void* s, lh_str name, lh_value* v) -> lh_status {
                   auto& known = static_cast<State*>(s)->values;
                   const auto i = known.find(text(name));
                   *v = i == known.end() ? lh_value{} : i->second;
                   return nullptr;
                 },
                 nullptr};
};

TEST_F(EarlyStopping, GoesOnCountingAfterAResume) {
  const Options options = {{"monitor", "val_loss"}, {"patience", int64_t{3}}};
  State state;
  {
    CallbackUnderTest c("early_stopping", options);
    c.hear(LH_STAGE_FIT, LH_ON_START);
    for (double v : {2.0, 1.0, 1.5}) {
      fake().set_metric("val_loss", v);
      c.hear(LH_STAGE_VALIDATE, LH_ON_END);
    }
    call(c->save_state(c.self, &state.out));
  }
  EXPECT_EQ(state.values.at("wait").u.i, 1);
  EXPECT_EQ(state.values.at("best").u.f, 1.0);

  CallbackUnderTest c("early_stopping", options);
  call(c->load_state(c.self, &state.in));
  c.hear(LH_STAGE_FIT, LH_ON_START);
  fake().set_metric("val_loss", 1.2);  // better than nothing, not better than what was before the resume
  c.hear(LH_STAGE_VALIDATE, LH_ON_END);
  EXPECT_TRUE(fake().stops.empty());
  c.hear(LH_STAGE_VALIDATE, LH_ON_END);
  EXPECT_EQ(fake().stops.size(), 1u);
}

}  // namespace
