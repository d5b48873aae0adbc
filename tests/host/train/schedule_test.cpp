#include "train/schedule.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace lhost {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

// rate = base * 2^-t; notes its clock.
struct Halving {
  Halving() {
    table.size = sizeof table;
    table.destroy = [](lh_scheduler*) {};
    table.check = [](lh_scheduler* s, const lh_clock* c) -> lh_status {
      of(s).checked.push_back(*c);
      return c->total < 0 ? make_status(LH_INVALID_ARGUMENT, "scheduler:halving", "check", "needs an end")
                          : nullptr;
    };
    table.rate = [](lh_scheduler* s, const lh_clock* c, double base, double* out) -> lh_status {
      of(s).asked.push_back(*c);
      if (c->t > 1000) return make_status(LH_OUT_OF_RANGE, "scheduler:halving", "rate", "too late");
      *out = std::ldexp(base, -static_cast<int>(c->t));
      return nullptr;
    };
  }
  static Halving& of(lh_scheduler* s) { return *reinterpret_cast<Halving*>(s); }
  Scheduler scheduler() {
    return Scheduler(Created{this, &table, {"scheduler", "halving", "scheduler", "1", 0}});
  }
  lh_scheduler_v0 table{};
  std::vector<lh_clock> asked, checked;
};

struct ScheduleOf : testing::Test {
  Halving halving;
  Scheduler scheduler = halving.scheduler(), none;
  static ScheduleSettings settings(int64_t warmup, double share = 0, int64_t frequency = 1) {
    return {warmup, share, true, frequency};
  }
};

TEST_F(ScheduleOf, NothingIsTheBaseRates) {
  Schedule s(none, settings(0), 100, {0.1, 0.2});
  EXPECT_TRUE(s.constant());
  for (int64_t t : {0, 1, 99, 500}) EXPECT_THAT(s.at(t), ElementsAre(0.1, 0.2));
}

TEST_F(ScheduleOf, AsksForEachGroupFromItsOwnBase) {
  Schedule s(scheduler, settings(0), 100, {1, 8});
  EXPECT_FALSE(s.constant());
  EXPECT_THAT(s.at(0), ElementsAre(1, 8));
  EXPECT_THAT(s.at(3), ElementsAre(0.125, 1));
  EXPECT_THAT(s.at(1), ElementsAre(0.5, 4)) << "a function of the time alone";
  EXPECT_EQ(halving.asked.back().total, 100);
}

TEST_F(ScheduleOf, WarmsUpInEqualStepsAndThenStartsFromTheBase) {
  Schedule s(scheduler, settings(4), 100, {1, 10});
  for (int64_t t = 0; t < 4; ++t) {
    const double share = static_cast<double>(t + 1) / 5;
    EXPECT_THAT(s.at(t), ElementsAre(DoubleEq(share), DoubleEq(10 * share)));
  }
  EXPECT_TRUE(halving.asked.empty()) << "the scheduler does not know of the warm-up";
  EXPECT_THAT(s.at(4), ElementsAre(1, 10));
  EXPECT_EQ(halving.asked[0].t, 0);
  EXPECT_EQ(halving.asked[0].total, 96);
  EXPECT_THAT(s.at(6), ElementsAre(0.25, 2.5));
}

TEST_F(ScheduleOf, WarmsUpWithoutASchedulerToo) {
  Schedule s(none, settings(1), -1, {3});
  EXPECT_FALSE(s.constant());
  EXPECT_THAT(s.at(0), ElementsAre(1.5));
  EXPECT_THAT(s.at(1), ElementsAre(3));
}

TEST_F(ScheduleOf, AShareIsRoundedToTicks) {
  Schedule five(none, settings(0, 0.05), 90, {1});  // 4.5 ticks: 5
  EXPECT_THAT(five.at(4), ElementsAre(DoubleEq(5.0 / 6)));
  EXPECT_THAT(five.at(5), ElementsAre(1));
  Schedule none_of_it(none, settings(0, 0.05), 9, {1});  // 0.45 of a tick
  EXPECT_THAT(none_of_it.at(0), ElementsAre(1));
}

TEST_F(ScheduleOf, AShareOfARunWithoutEndIsRefused) {
  const Schedule s(none, settings(0, 0.05), -1, {1});
  try {
    s.check();
    FAIL();
  } catch (const ComponentFailure& f) {
    EXPECT_THAT(f.what(), HasSubstr("max_epochs"));
  }
  EXPECT_NO_THROW(Schedule(none, settings(5), -1, {1}).check());
}

TEST_F(ScheduleOf, AsksTheSchedulerWhetherItCanWork) {
  Schedule(scheduler, settings(4), 100, {1}).check();
  ASSERT_EQ(halving.checked.size(), 1u);
  EXPECT_EQ(halving.checked[0].t, 0);
  EXPECT_EQ(halving.checked[0].total, 96);
  EXPECT_THROW(Schedule(scheduler, settings(4), -1, {1}).check(), ComponentFailure);
  EXPECT_EQ(halving.checked[1].total, -1);
  halving.table.check = nullptr;
  const Scheduler careless = halving.scheduler();
  EXPECT_NO_THROW(Schedule(careless, settings(4), -1, {1}).check());
}

TEST_F(ScheduleOf, ATickMayBeSeveralUnits) {
  Schedule s(scheduler, settings(0, 0, 10), 95, {1});
  EXPECT_EQ(s.total(), 10) << "the tenth tick is cut short";
  EXPECT_THAT(s.at(9), ElementsAre(1));
  EXPECT_THAT(s.at(10), ElementsAre(0.5));
  EXPECT_THAT(s.at(29), ElementsAre(0.25));
}

TEST_F(ScheduleOf, AResumedRunKeepsItsCurve) {
  Schedule s(scheduler, settings(0, 0.1), 200, {1});
  s.keep_total(100);
  EXPECT_EQ(s.total(), 100);
  EXPECT_THAT(s.at(9), ElementsAre(DoubleEq(10.0 / 11))) << "10 ticks of warm-up, not 20";
  EXPECT_THAT(s.at(10), ElementsAre(1));
  EXPECT_EQ(halving.asked.back().total, 90);
}

TEST_F(ScheduleOf, AWarmUpLongerThanTheRunLeavesNothingAfterIt) {
  Schedule s(scheduler, settings(20), 10, {1});
  EXPECT_THAT(s.at(9), ElementsAre(DoubleEq(10.0 / 21)));
  EXPECT_THAT(s.at(20), ElementsAre(1));
  EXPECT_EQ(halving.asked.back().total, 0);
}

TEST_F(ScheduleOf, ASchedulersErrorIsThrown) {
  Schedule s(scheduler, settings(0), -1, {1});
  EXPECT_THROW(s.at(1001), ComponentFailure);
}

}  // namespace
}  // namespace lhost
