// step and cosine against numbers of torch.optim.lr_scheduler (tests/golden/schedulers/make.py).
#include "support/component.hpp"

#include <gmock/gmock.h>
#include <lhost/scheduler.h>

#include <fstream>
#include <memory>

using namespace lhost_test;
using testing::HasSubstr;

namespace {

using Component = lhost_test::Component<lh_scheduler, lh_scheduler_v0>;

double rate(const Component& c, int64_t t, int64_t total, double base) {
  const lh_clock clock = {sizeof(lh_clock), 0, t, total};
  double out = -1;
  call(c->rate(c.self, &clock, base, &out));
  return out;
}

struct Case {
  std::string kind;
  int64_t a;
  double b, base;
  int64_t total, t;
  double stepped, closed;
};
std::vector<Case> golden() {
  std::ifstream in(LHOST_TEST_SOURCE "/tests/golden/schedulers/schedules.txt");
  std::vector<Case> cases;
  for (Case c; in >> c.kind >> c.a >> c.b >> c.base >> c.total >> c.t >> c.stepped >> c.closed;)
    cases.push_back(c);
  return cases;
}
Options options_of(const Case& c) {
  if (c.kind == "step") return {{"step_size", c.a}, {"gamma", c.b}};
  return {{"t_max", c.a}, {"eta_min", c.b}};
}

TEST(Scheduler, RatesEqualTorch) {
  const auto cases = golden();
  ASSERT_EQ(cases.size(), 649u);
  for (const Case& c : cases) {
    const double r = rate(Component("scheduler", c.kind, options_of(c)), c.t, c.total, c.base);
    EXPECT_NEAR(r, c.stepped, 1e-12) << c.kind << " at " << c.t;
    EXPECT_NEAR(r, c.closed, 1e-12) << c.kind << " at " << c.t;
  }
}
TEST(Scheduler, CosineWithoutTMaxEndsWithTraining) {
  size_t compared = 0;
  for (const Case& c : golden()) {
    if (c.kind != "cosine" || c.a != c.total) continue;
    ++compared;
    EXPECT_NEAR(rate(Component("scheduler", "cosine", {{"eta_min", c.b}}), c.t, c.total, c.base), c.closed,
                1e-12);
  }
  EXPECT_GT(compared, 400u);
}
TEST(Scheduler, CosineThatEndsWithTrainingStaysAtItsEnd) {
  const Component whole("scheduler", "cosine", {{"eta_min", 0.25}});
  EXPECT_DOUBLE_EQ(rate(whole, 10, 10, 1), 0.25);
  EXPECT_DOUBLE_EQ(rate(whole, 17, 10, 1), 0.25);
  EXPECT_DOUBLE_EQ(rate(Component("scheduler", "cosine", {{"t_max", int64_t{10}}}), 20, 10, 1), 1)
      << "as PyTorch";
}

TEST(Scheduler, CosineOfARunWithoutTicksIsTheBaseRate) {
  EXPECT_EQ(rate(Component("scheduler", "cosine"), 0, 0, 0.5), 0.5);
}
TEST(Scheduler, ConstantKeepsTheBaseRate) {
  const Component c("scheduler", "constant");
  for (int64_t t : {0, 1, 1000000}) EXPECT_EQ(rate(c, t, -1, 0.125), 0.125);
}
TEST(Scheduler, EachGroupIsScheduledFromItsOwnRate) {
  const Component c("scheduler", "step", {{"step_size", int64_t{2}}, {"gamma", 0.5}});
  EXPECT_EQ(rate(c, 4, 10, 1.0), 0.25);
  EXPECT_EQ(rate(c, 4, 10, 8.0), 2.0);
}

std::string verdict(const Component& c, int64_t total) {
  const lh_clock clock = {sizeof(lh_clock), 0, 0, total};
  return c->check ? failure(c->check(c.self, &clock)) : "(no error)";
}
TEST(Scheduler, CosineRefusesATrainingOfUnknownLength) {
  EXPECT_THAT(verdict(Component("scheduler", "cosine"), -1), HasSubstr("set scheduler.t_max"));
  EXPECT_EQ(verdict(Component("scheduler", "cosine"), 100), "(no error)");
  EXPECT_EQ(verdict(Component("scheduler", "cosine", {{"t_max", int64_t{10}}}), -1), "(no error)");
}
TEST(Scheduler, StepAndConstantNeedNoLength) {
  EXPECT_EQ(verdict(Component("scheduler", "step", {{"step_size", int64_t{1}}}), -1), "(no error)");
  EXPECT_EQ(verdict(Component("scheduler", "constant"), -1), "(no error)");
}

}  // namespace
