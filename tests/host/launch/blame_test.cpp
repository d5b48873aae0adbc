// Who is to blame: tables of what processes and pages say.
#include "launch/blame.hpp"

#include <gmock/gmock.h>
#include <signal.h>

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// ---- one rank's end, in words

RankEnd exited(int code, RankPhase phase = RankPhase::running) {
  RankEnd e;
  e.how = RankEnd::How::exited;
  e.value = code;
  e.page.phase = phase;
  return e;
}
RankEnd finished() { return exited(0, RankPhase::ended); }
RankEnd signalled(int sig) {
  RankEnd e = exited(sig);
  e.how = RankEnd::How::signalled;
  return e;
}
RankEnd running(int64_t step = 3, int64_t batch = 17) {
  RankEnd e;
  e.page.phase = RankPhase::running;
  e.page.global_step = step;
  e.page.batch = batch;
  e.page.operation = "training_step";
  return e;
}
RankEnd failed(lh_code code, int exit_code = 1, int64_t time_ns = 100) {
  RankEnd e = exited(exit_code);
  e.page.failure =
      RankFailure{code, exit_code, time_ns, "the text", "model:mlp", "training_step", "epoch 0, step 3"};
  return e;
}
RankEnd at(RankEnd e, int64_t time_ns) {
  e.time_ns = time_ns;
  if (e.page.failure) e.page.failure->time_ns = time_ns;
  return e;
}
RankEnd operation(RankEnd e, const std::string& name) {
  e.page.operation = name;
  return e;
}
RankEnd phase(RankEnd e, RankPhase p) {
  e.page.phase = p;
  return e;
}
RankEnd peer() { return failed(LH_PEER_LOST, 71, 1); }  // long before all others

Blame blame(std::vector<RankEnd> ends, bool oom = false, bool whole_world = true) {
  for (size_t i = 0; i < ends.size(); ++i) ends[i].rank = static_cast<int64_t>(i);
  return find_blame(ends, {"node7", oom, whole_world});
}

struct Case {
  const char* name;
  std::vector<RankEnd> ends;
  int64_t culprit;
  int exit_code;
  const char* text;
  bool oom = false;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class BlameTable : public testing::TestWithParam<Case> {};

TEST_P(BlameTable, NamesTheCulprit) {
  const Case& c = GetParam();
  const Blame b = blame(c.ends, c.oom);
  EXPECT_EQ(b.culprit, c.culprit);
  EXPECT_EQ(b.exit_code, c.exit_code);
  EXPECT_THAT(b.report, HasSubstr(c.text));
}

const Case kTable[] = {
    {"NobodyFailed", {finished(), finished()}, -1, 0, ""},
    {"ProgramsWithoutAPage", {exited(0), exited(0)}, -1, 0, ""},
    {"AnErrorBeforeLostPeers",
     {peer(), failed(LH_INTERNAL), peer()},
     1,
     1,
     "rank 1 failed in model:mlp (training_step): the text"},
    {"AnErrorOfData", {failed(LH_DATA_LOSS), peer()}, 0, 1, "the text"},
    {"AnErrorOfAPlugin", {peer(), failed(LH_PLUGIN_FAULT, 4)}, 1, 4, "the text"},
    {"AnErrorBeforeAnAbort", {failed(LH_ABORTED, 71, 1), failed(LH_INTERNAL)}, 1, 1, "the text"},
    {"AnErrorWhoseProcessHangs",
     {[] {
        RankEnd e = running();
        e.page.failure = failed(LH_INTERNAL).page.failure;
        return e;
      }(),
      peer()},
     0,
     1,
     "the text"},
    {"AnErrorThatExitsWith71", {peer(), failed(LH_INTERNAL, 71)}, 1, 1, "the text"},
    {"TheFirstOfTwoErrors", {at(failed(LH_INTERNAL), 20), at(failed(LH_DATA_LOSS, 3), 10)}, 1, 3, "the text"},
    {"TheLowerOfTwoAtOnce", {at(failed(LH_INTERNAL), 10), at(failed(LH_INTERNAL), 10)}, 0, 1, "the text"},
    {"AnExitCode", {peer(), exited(7)}, 1, 7, "rank 1 ended with exit code 7"},
    {"AnExitCodeBefore71Alone", {exited(71), exited(7)}, 1, 7, "rank 1 ended with exit code 7"},
    {"ACrash", {peer(), signalled(SIGSEGV)}, 1, 139, "rank 1 crashed with SIGSEGV (Segmentation fault)"},
    {"AnAbort", {signalled(SIGABRT), peer()}, 0, 134, "rank 0 crashed with SIGABRT (Aborted)"},
    {"ACrashBeforeMemory",
     {failed(LH_RESOURCE_EXHAUSTED, 3, 1), at(signalled(SIGSEGV), 900)},
     1,
     139,
     "crashed"},
    {"AnErrorBeforeASignal", {at(signalled(SIGKILL), 1), failed(LH_INTERNAL)}, 1, 1, "the text"},
    {"Memory", {peer(), failed(LH_RESOURCE_EXHAUSTED, 3)}, 1, 3, "the text"},
    {"MemoryBeforeASignal", {at(signalled(SIGTERM), 1), failed(LH_RESOURCE_EXHAUSTED, 3)}, 1, 3, "the text"},
    {"KilledForMemory",
     {peer(), signalled(SIGKILL)},
     1,
     137,
     "killed by the system for lack of memory (SIGKILL)",
     true},
    {"KilledForMemoryBeforeTerminated",
     {at(signalled(SIGTERM), 1), at(signalled(SIGKILL), 9)},
     1,
     137,
     "lack of memory",
     true},
    {"ASignalThatIsNotForMemory", {peer(), signalled(SIGTERM)}, 1, 143, "was ended by SIGTERM", true},
    {"Killed", {peer(), signalled(SIGKILL), peer()}, 1, 137, "rank 1 was ended by SIGKILL (Killed)"},
    {"TheFirstOfTwoSignals",
     {at(signalled(SIGKILL), 9), at(signalled(SIGTERM), 1)},
     1,
     143,
     "was ended by SIGTERM"},
    {"ASignalBeforeAnEarlyEnd", {at(exited(0), 1), at(signalled(SIGKILL), 9)}, 1, 137, "SIGKILL"},
    {"TooEarly", {running(), exited(0)}, 1, 1, "rank 1 ended without an error while others still trained"},
    {"TooEarlyBeforeLostPeers",
     {peer(), exited(0)},
     1,
     1,
     "ended without an error while others still trained"},
    {"TooEarlyBeforeAHang",
     {failed(LH_DEADLINE, 1, 1), exited(0), running()},
     1,
     1,
     "ended without an error"},
    {"WhoHasFinishedIsNot", {finished(), peer(), failed(LH_INTERNAL)}, 2, 1, "the text"},
    {"AHang",
     {failed(LH_DEADLINE), running(), failed(LH_DEADLINE)},
     1,
     1,
     "rank 1 did not come: it is in training_step, epoch 0, batch 17"},
    {"AHangBeforeLostPeers", {failed(LH_DEADLINE), peer(), running()}, 2, 1, "rank 2 did not come"},
    {"AHangBeforeWhoWasAsked", {failed(LH_DEADLINE), running(), exited(143)}, 1, 1, "rank 1 did not come"},
    {"OfTwoThatHangWhoIsBehind", {running(5), failed(LH_DEADLINE), running(4)}, 2, 1, "rank 2 did not come"},
    {"OfTwoInAStepWhoIsABatchBehind",
     {running(5, 9), failed(LH_DEADLINE), running(5, 8)},
     2,
     1,
     "rank 2 did not come"},
    {"OfTwoThatHangWhoWasStopped",
     {running(4), failed(LH_DEADLINE),
      [] {
        RankEnd e = running(5);
        e.stopped = true;
        return e;
      }()},
     2,
     1,
     "rank 2 did not come: it was stopped by a signal in training_step"},
    {"OfTwoThatHangWhoDoesNotWaitItself",
     {operation(running(4), "collective:gloo (all_reduce)"), failed(LH_DEADLINE), running(5)},
     2,
     1,
     "rank 2 did not come: it is in training_step"},
    {"WhoHasNotEvenStarted",
     {running(0), failed(LH_DEADLINE), phase(running(0), RankPhase::starting),
      phase(running(0), RankPhase::meeting)},
     2,
     1,
     "rank 2 did not come: it is starting"},
    {"AHangInSaving",
     {failed(LH_DEADLINE), phase(running(), RankPhase::saving)},
     1,
     1,
     "rank 1 did not come: it is saving"},
    {"AHangInNothingKnown",
     {failed(LH_DEADLINE), operation(running(), "")},
     1,
     1,
     "rank 1 did not come: it is busy, epoch 0, batch 17"},
    {"AllWaited",
     {at(failed(LH_DEADLINE), 5), at(failed(LH_DEADLINE), 4)},
     1,
     1,
     "rank 1 failed in model:mlp"},
    {"OnlyLostPeers", {at(peer(), 5), at(peer(), 4)}, 1, 1, "rank 1 lost the other ranks"},
    {"Only71", {exited(71), exited(71)}, 0, 1, "the other nodes' output has the cause"},
    {"AnAbortAlone", {failed(LH_ABORTED, 71), running()}, 0, 1, "lost the other ranks"},
};
INSTANTIATE_TEST_SUITE_P(All, BlameTable, testing::ValuesIn(kTable),
                         [](const auto& i) { return std::string(i.param.name); });

// ---- ends on request

TEST(Blame, WhoWasAskedToEndHasNotFailed) {
  for (int code : {75, 129, 130, 143}) {
    const Blame b = blame({exited(code, RankPhase::ended), exited(code, RankPhase::ended)});
    EXPECT_TRUE(b.asked);
    EXPECT_EQ(b.exit_code, code);
    EXPECT_EQ(b.report, "");
  }
}
TEST(Blame, AFailureWhileAllWereAskedToEndIsOne) {
  const Blame b = blame({exited(143), failed(LH_DATA_LOSS), exited(143)});
  EXPECT_FALSE(b.asked);
  EXPECT_EQ(b.culprit, 1);
}
TEST(Blame, ALostPeerWhileAllWereAskedToEndIsNone) {
  const Blame b = blame({peer(), exited(130)});
  EXPECT_TRUE(b.asked);
  EXPECT_EQ(b.exit_code, 130);
}

TEST(Blame, WhoeverTheOthersLostIsHereIfNobodyIsElsewhere) {
  const Blame here = blame({peer(), running(), peer()}, false, true);
  EXPECT_EQ(here.culprit, 1);
  EXPECT_THAT(here.report, HasSubstr("rank 1 did not come: it is in training_step"));
  const Blame elsewhere = blame({peer(), running(), peer()}, false, false);
  EXPECT_EQ(elsewhere.culprit, 0);
  EXPECT_THAT(elsewhere.report, HasSubstr("the other nodes' output has the cause"));
}

// ---- the consequences

TEST(Blame, AllButTheCulpritAndWhoFinishedAreSecondary) {
  const Blame b = blame({finished(), peer(), running(), failed(LH_INTERNAL), exited(71), peer()});
  EXPECT_EQ(b.culprit, 3);
  EXPECT_THAT(b.secondary, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(b.report, HasSubstr("\n  because of it ended: ranks 1, 2, 4, 5"));
}
TEST(Blame, ManySecondaryRanksAreOneShortLine) {
  std::vector<RankEnd> ends(64, peer());
  ends[5] = failed(LH_INTERNAL);
  EXPECT_THAT(blame(ends).report, HasSubstr("\n  because of it ended: ranks 0-4, 6-63"));
  EXPECT_THAT(blame({peer(), failed(LH_INTERNAL)}).report, HasSubstr("\n  because of it ended: rank 0"));
  EXPECT_THAT(blame({failed(LH_INTERNAL)}).report, Not(HasSubstr("because")));
}
TEST(Blame, NobodyIsSecondaryToASuccess) {
  EXPECT_THAT(blame({finished(), finished()}).secondary, IsEmpty());
}
TEST(Blame, WithoutRanksThereIsNone) { EXPECT_EQ(blame({}).culprit, -1); }

// ---- the report

TEST(Blame, TheReportSaysWhereAndWhere) {
  RankEnd e = failed(LH_INTERNAL);
  e.log = "runs/x/version_0/rank_1.log";
  EXPECT_EQ(blame({peer(), e}).report,
            "rank 1 failed in model:mlp (training_step): the text\n"
            "  on node7, epoch 0, step 3; its output: runs/x/version_0/rank_1.log\n"
            "  because of it ended: rank 0");
}
TEST(Blame, APageWithoutAPlaceSaysWhatItKnows) {
  RankEnd e = signalled(SIGKILL);
  e.page.stage = LH_STAGE_VALIDATE;
  e.page.epoch = 2;
  e.page.batch = 4;
  e.page.global_step = 99;
  EXPECT_THAT(blame({e}).report, HasSubstr("on node7, validate, epoch 2, batch 4, step 99"));
  e.page.phase = RankPhase::saving;
  EXPECT_THAT(blame({e}).report, HasSubstr("step 99, while saving"));
  e.page.phase = RankPhase::meeting;
  EXPECT_THAT(blame({e}).report, HasSubstr("on node7, while meeting the others"));
}
TEST(Blame, TheEndOfALogHelpsOnlyWhereNothingElseIsKnown) {
  RankEnd e = exited(7);
  e.log_tail = "Traceback\n  boom";
  EXPECT_THAT(blame({e}).report, HasSubstr("exit code 7\n  | Traceback\n  |   boom\n"));
  e = failed(LH_INTERNAL);
  e.log_tail = "Traceback";
  EXPECT_THAT(blame({e}).report, Not(HasSubstr("Traceback")));
}

// ---- the same failure again

TEST(Blame, TheSameFailureHasTheSameKind) {
  RankEnd later = failed(LH_INTERNAL, 1, 5000);
  later.page.global_step = 12;
  EXPECT_EQ(blame({peer(), failed(LH_INTERNAL)}).kind, blame({peer(), later}).kind);
  EXPECT_EQ(blame({peer(), later}).global_step, 12);
  RankEnd other = failed(LH_INTERNAL);
  other.page.failure->message = "another text";
  EXPECT_NE(blame({peer(), failed(LH_INTERNAL)}).kind, blame({peer(), other}).kind);
  EXPECT_NE(blame({peer(), failed(LH_INTERNAL)}).kind, blame({failed(LH_INTERNAL), peer()}).kind);
  EXPECT_NE(blame({peer(), signalled(SIGKILL)}).kind, blame({peer(), signalled(SIGTERM)}).kind);
}

}  // namespace
}  // namespace lhost
