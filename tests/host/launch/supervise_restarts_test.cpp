// After a failure: another attempt, until there is no hope.
#include "support.hpp"

namespace lhost_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Supervise, StartsAgainUntilItWorks) {
  const Supervised s = run("--ranks 2 --restarts 3 --tail", "slow:200 flaky:2");
  EXPECT_EQ(s.exit_code, 0) << s.output;
  EXPECT_THAT(s.output, HasSubstr("started again (1 of 3)"));
  EXPECT_THAT(s.output, HasSubstr("started again (2 of 3)"));
  EXPECT_THAT(s.output, HasSubstr("RESULT exit 0 culprit -1 secondary [] restarts 2 asked 0"));
}

TEST_F(Supervise, GivesUpAfterTheAllowedAttempts) {
  const Supervised s = run("--ranks 2 --restarts 2", "slow:200 flaky:9");
  EXPECT_EQ(s.exit_code, 1);
  EXPECT_THAT(s.output, HasSubstr("not started again: 2 restarts were all that was allowed"));
  EXPECT_THAT(s.output, HasSubstr("restarts 2"));
}

TEST_F(Supervise, TheSameFailureAtTheSameStepEndsIt) {
  const Supervised s = run("--ranks 2 --restarts 9", "slow:200 throw:boom");
  EXPECT_EQ(s.exit_code, 1);
  EXPECT_THAT(s.output, HasSubstr("the same failure twice at step 3: not started again"));
  EXPECT_THAT(s.output, HasSubstr("restarts 1"));
}

TEST_F(Supervise, WithoutRestartsNothingIsSaidOfThem) {
  EXPECT_THAT(run("--ranks 2", "slow:200 throw:boom").output, Not(HasSubstr("again")));
}

TEST_F(Supervise, AnotherAttemptHasItsOwnRequestAndNumber) {
  const Supervised s = run("--ranks 2 --restarts 1", "show flaky:1");
  EXPECT_THAT(s.output, HasSubstr("request bytes \x01\x02 omp"));
  EXPECT_THAT(s.output, HasSubstr("request bytes \x01\x02! omp"));
  EXPECT_THAT(s.output, HasSubstr(" restart 1 "));
}

TEST_F(Supervise, WhatWasAskedToEndIsNotStartedAgain) {
  const Supervised s = run("--ranks 2 --restarts 3", "exit:75 exit:75");
  EXPECT_EQ(s.exit_code, 75);
  EXPECT_EQ(s.output, "RESULT exit 75 culprit -1 secondary [] restarts 0 asked 1\n");
}

}  // namespace
}  // namespace lhost_test
