// One rank ends badly, all end, and the right one is named.
#include "support.hpp"

namespace lhost_test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Case {
  const char* name;
  const char* victim;
  const char* others;
  int exit_code;
  const char* text;
};
std::string name_of(const testing::TestParamInfo<std::tuple<std::string, int, Case>>& i) {
  return std::get<0>(i.param) + "_rank" + std::to_string(std::get<1>(i.param)) + "_" +
         std::get<2>(i.param).name;
}

class OneRankEndsBadly : public Supervise,
                         public testing::WithParamInterface<std::tuple<std::string, int, Case>> {};
const Case kCases[] = {
    {"reports", "throw:boom", "peer", 1, "failed in model:fake (training_step): boom"},
    {"reports_others_hang", "throw:boom", "hang", 1, "failed in model:fake (training_step): boom"},
    {"exits", "exit:7", "peer", 7, "ended with exit code 7 in model:fake (training_step)"},
    {"ends_too_early", "exit:0", "hang", 1, "ended without an error while others still trained"},
    {"ends_too_early_others_notice", "exit:0", "peer", 1,
     "ended without an error while others still trained"},
    {"crashes", "crash", "peer", 139,
     "crashed with SIGSEGV (Segmentation fault) in model:fake (training_step)"},
    {"is_killed", "signal:9", "peer", 137, "was ended by SIGKILL (Killed)"},
    {"is_killed_others_deaf", "signal:9", "deaf", 137, "was ended by SIGKILL (Killed)"},
    {"has_no_memory", "memory", "peer", 3, "out of memory"},
    {"hangs", "hang", "deadline:100", 1,
     "did not come: it is in model:fake (training_step), epoch 0, batch 17"},
    {"is_busy", "busy", "deadline:100", 1,
     "did not come: it is in model:fake (training_step), epoch 0, batch 17"},
    {"is_stopped", "stop", "deadline:300", 1, "did not come: it was stopped by a signal"},
};
INSTANTIATE_TEST_SUITE_P(All, OneRankEndsBadly,
                         testing::Combine(testing::Values("exec", "spawn"), testing::Values(0, 2),
                                          testing::ValuesIn(kCases)),
                         name_of);

TEST_P(OneRankEndsBadly, AndIsNamed) {
  const auto& [launcher, victim, c] = GetParam();
  if (launcher == "spawn" && !kForksWork) GTEST_SKIP() << "no fork of a process with threads";
  std::string behaviours;
  for (int r = 0; r < 3; ++r) behaviours += std::string(r == victim ? c.victim : c.others) + " ";
  // Patience costs nothing where all end by themselves.
  const bool all_end = std::string(c.others) == "peer";
  const Supervised s = run(
      "--ranks 3 --settle " + std::string(all_end ? "10000" : "500") + " --launcher " + launcher, behaviours);
  std::string others = victim == 0 ? "1, 2" : "0, 1", list = victim == 0 ? "1,2" : "0,1";
#ifdef __SANITIZE_ADDRESS__  // reports a crash, and exits
  if (std::string(c.name) == "crashes") {
    EXPECT_EQ(s.exit_code, 1) << s.output;
    EXPECT_THAT(s.output, HasSubstr("culprit " + std::to_string(victim) + " secondary [" + list + "]"));
    return;
  }
#endif
#ifdef __SANITIZE_THREAD__
  if (std::string(c.name) == "crashes") {
    EXPECT_EQ(s.exit_code, 66) << s.output;
    EXPECT_THAT(s.output, HasSubstr("culprit " + std::to_string(victim) + " secondary [" + list + "]"));
    return;
  }
#endif
  EXPECT_EQ(s.exit_code, c.exit_code) << s.output;
  EXPECT_THAT(s.output, HasSubstr("error: rank " + std::to_string(victim) + " "));
  EXPECT_THAT(s.output, HasSubstr(c.text));
  EXPECT_THAT(s.output, HasSubstr("\n  because of it ended: ranks " + others + "\n"));
  EXPECT_THAT(s.output, HasSubstr("culprit " + std::to_string(victim) + " secondary [" + list + "]"));
  const std::string path = dir_ / ("rank_" + std::to_string(victim) + ".log");
  if (victim == 0) EXPECT_THAT(s.output, Not(HasSubstr("its output:")));
  else EXPECT_THAT(s.output, HasSubstr("its output: " + path));
  EXPECT_LT(s.seconds, kSoon);
}

TEST_F(Supervise, ThePlaceOfTheFailureIsTold) {
  const Supervised s = run("--ranks 2", "peer throw:boom");
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  EXPECT_THAT(s.output,
              HasSubstr(std::string("\n  on ") + host + ", epoch 0, batch 17, step 3; its output: "));
}

TEST_F(Supervise, WhatARankWithoutAPageEntryPrintedLastIsShown) {
  const Supervised s = run("--ranks 2", "peer uncaught:boom");
  EXPECT_EQ(s.exit_code, 134) << s.output;
  EXPECT_THAT(s.output, HasSubstr("rank 1 crashed with SIGABRT (Aborted)"));
  EXPECT_THAT(s.output, HasSubstr("\n  |   what():  boom\n"));
}

TEST_F(Supervise, TheReportIsTheLastThingOnTheTerminal) {
  const Supervised s = run("--ranks 2", "script:'echo mine' throw:boom");
  const size_t result = s.output.find("RESULT"), error = s.output.find("error: rank 1");
  ASSERT_NE(result, s.output.npos);
  ASSERT_NE(error, s.output.npos);
  EXPECT_LT(s.output.find("mine"), error);
  EXPECT_EQ(s.output.find("mine", error), s.output.npos);
}

TEST_F(Supervise, ALostPeerIsTheCauseOnlyIfThereIsNothingElse) {
  const Supervised s = run("--ranks 2", "peer peer");
  EXPECT_EQ(s.exit_code, 1) << s.output;
  EXPECT_THAT(s.output, HasSubstr("lost the other ranks, and none of this machine failed first"));
}

TEST_F(Supervise, AllEndInOrder) {
  for (const char* launcher : {"exec", "spawn"}) {
    if (!kForksWork && launcher == std::string("spawn")) continue;
    const Supervised s = run(std::string("--ranks 3 --launcher ") + launcher, "slow:300 ok slow:100");
    EXPECT_EQ(s.exit_code, 0) << s.output;
    EXPECT_EQ(s.output, "RESULT exit 0 culprit -1 secondary [] restarts 0 asked 0\n");
  }
}

TEST_F(Supervise, WhateverItsOwnStarterLeftIt) {
  for (const char* before : {"trap '' CHLD; ", "exec <&-; ", "exec <&- >&-; "}) {
    const Outcome o = shell(before + command("--ranks 3 --tail", "ok throw:boom slow:100"));
    EXPECT_EQ(o.exit_code, 1) << before << o.output;
    EXPECT_THAT(o.output, HasSubstr("error: rank 1 failed in model:fake (training_step): boom"));
  }
}

TEST_F(Supervise, WhatLeavesTheFunctionOfAForkIsReported) {
  if (!kForksWork) GTEST_SKIP();
  const Supervised s = run("--ranks 2 --launcher spawn", "peer raise:boom");
  EXPECT_EQ(s.exit_code, 3) << s.output;
  EXPECT_THAT(s.output, HasSubstr("error: rank 1 failed: boom"));
}

TEST_F(Supervise, WhoHasFinishedWaitsForWhoHasNot) {
  const Supervised s = run("--ranks 2 --settle 50", "ok slow:600");
  EXPECT_EQ(s.exit_code, 0) << s.output;
  EXPECT_GT(s.seconds, 0.6);
}

TEST_F(Supervise, WhatARankStartedEndsWithTheRun) {
  const Supervised s = run("--ranks 2", "helper helper");
  EXPECT_EQ(s.exit_code, 0) << s.output;
}

TEST_F(Supervise, ARankThatIsSavingIsWaitedFor) {
  const Supervised s = run("--ranks 2 --settle 100 --terminate 50", "saves:800 throw:boom");
  EXPECT_EQ(s.exit_code, 1) << s.output;
  EXPECT_THAT(s.output, HasSubstr("saved\n"));
  EXPECT_THAT(s.output, HasSubstr("error: rank 1 "));
}

TEST_F(Supervise, ButNotForEver) {
  const Supervised s = run("--ranks 2 --settle 100 --terminate 50 --saving 300", "saves:60000 throw:boom");
  EXPECT_EQ(s.exit_code, 1) << s.output;
  EXPECT_LT(s.seconds, kSoon);
}

TEST_F(Supervise, AProgramThatIsNotThereIsAnError) {
  const Supervised s = run("--ranks 2 --program /no/such/program", "ok");
  EXPECT_EQ(s.exit_code, 1);
  EXPECT_THAT(s.output, HasSubstr("cannot execute /no/such/program: No such file or directory"));
}

}  // namespace
}  // namespace lhost_test
