// Where the output of ranks goes, and what they are told.
#include "launch/rendezvous_socket.hpp"
#include "support.hpp"

namespace lhost_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

int lines_of(const std::string& s) { return static_cast<int>(std::count(s.begin(), s.end(), '\n')); }

TEST_F(Supervise, EachRankLearnsWhoItIs) {
  const Supervised s = run("--ranks 3", "show");
  EXPECT_EQ(s.exit_code, 0) << s.output;
  EXPECT_THAT(s.output, AllOf(HasSubstr("rank 0 of 3 port "), HasSubstr(" addr 127.0.0.1"),
                              HasSubstr(" request bytes \x01\x02 "), HasSubstr(" restart 0 ")));
  EXPECT_THAT(log(1), StartsWith("rank 1 of 3 port "));
  EXPECT_THAT(log(2), StartsWith("rank 2 of 3 port "));
  const std::string one = log(1).substr(7), two = log(2).substr(7);
  EXPECT_EQ(one, two);  // same port and job
  EXPECT_THAT(s.output, Not(HasSubstr(" port 0 ")));
}

TEST_F(Supervise, F173_clStale_LeftOverVariablesAreReplaced) {
  const Outcome o = shell("RANK=9 WORLD_SIZE=8 LOCAL_RANK=7 MASTER_ADDR=elsewhere LHOST_JOB=old " +
                          command("--ranks 2", "show"));
  EXPECT_THAT(o.output, AllOf(HasSubstr("rank 0 of 2 port "), HasSubstr(" addr 127.0.0.1 ")));
  EXPECT_THAT(log(1), AllOf(StartsWith("rank 1 of 2 port "), Not(HasSubstr(" job old "))));
}

TEST_F(Supervise, RankZeroAloneHasTheSocketOfThatPort) {
  for (const char* launcher : {"exec", "spawn"}) {
    if (!kForksWork && launcher == std::string("spawn")) continue;
    const std::string out = run(std::string("--ranks 2 --launcher ") + launcher, "show").output;
    const size_t at = out.find(" port ") + 6;
    EXPECT_THAT(out, HasSubstr(" listens " + out.substr(at, out.find(' ', at) - at) + "\n"));
    EXPECT_THAT(log(1), HasSubstr(" listens nowhere\n"));
  }
}

TEST_F(Supervise, EachNodeMakesItsShareOfTheRanks) {
  const std::string port = std::to_string(20000 + getpid() % 10000),
                    both = "--ranks 2 --nodes 2 --port " + port;
  const Outcome o =
      shell(command(both + " --node 1", "show") + " & " + command(both + " --node 0", "show") + "; wait");
  EXPECT_THAT(o.output, HasSubstr("rank 0 of 4 port " + port + " "));
  EXPECT_THAT(o.output, HasSubstr(" job 127.0.0.1:" + port + " addr 127.0.0.1 listens " + port + "\n"));
  for (int r = 1; r < 4; ++r)
    EXPECT_THAT(log(r), AllOf(StartsWith("rank " + std::to_string(r) + " of 4 port " + port + " "),
                              HasSubstr(" job 127.0.0.1:" + port + " addr 127.0.0.1 listens nowhere\n")));
}

TEST_F(Supervise, ForkedRanksLearnTheSame) {
  if (!kForksWork) GTEST_SKIP();
  const Supervised s = run("--ranks 2 --launcher spawn", "show");
  EXPECT_EQ(s.exit_code, 0) << s.output;
  EXPECT_THAT(s.output, HasSubstr("rank 0 of 2 port "));
  EXPECT_THAT(log(1), AllOf(StartsWith("rank 1 of 2 port "), HasSubstr(" request bytes \x01\x02 ")));
}

TEST_F(Supervise, F075_ddThreads_ThreadsAreSharedUnlessTheUserSaysSo) {
  EXPECT_THAT(run("--ranks 64", "show").output, HasSubstr(" omp 1 "));
  EXPECT_THAT(shell("OMP_NUM_THREADS=5 " + command("--ranks 2", "show")).output, HasSubstr(" omp 5 "));
}

TEST_F(Supervise, OtherRanksWriteToTheirFiles) {
  const Supervised s = run("--ranks 3", "loud:3 loud:5 loud:0");
  EXPECT_EQ(s.exit_code, 0);
  EXPECT_EQ(lines_of(s.output), 4);
  EXPECT_EQ(lines_of(log(1)), 5);
  EXPECT_EQ(log(2), "");
}

TEST_F(Supervise, TailShowsEveryLineAndKeepsTheFile) {
  const Supervised s = run("--ranks 3 --tail", "ok loud:20000 loud:3");
  EXPECT_EQ(s.exit_code, 0);
  EXPECT_EQ(lines_of(s.output), 20004);
  EXPECT_EQ(lines_of(log(1)), 20000);
  EXPECT_THAT(s.output, AllOf(HasSubstr("[rank 1] line 19999."), HasSubstr("[rank 2] line 2.")));
}

TEST_F(Supervise, TailShowsALastLineWithoutAnEnd) {
  const Supervised s = run("--ranks 2 --tail", "slow:200 script:'printf unfinished'");
  EXPECT_THAT(s.output, HasSubstr("[rank 1] unfinished\n"));
  EXPECT_EQ(log(1), "unfinished");
}

TEST_F(Supervise, BothStreamsOfARankAreKept) {
  run("--ranks 2", "slow:300 script:'echo out; echo err >&2'");
  EXPECT_THAT(log(1), AllOf(HasSubstr("out\n"), HasSubstr("err\n")));
}

TEST_F(Supervise, ARankReadsNothingFromTheTerminal) {
  const Outcome o = shell("echo typed | " + command("--ranks 2", "'script:cat; exit 0'"));
  EXPECT_THAT(o.output, Not(HasSubstr("typed")));
}

TEST_F(Supervise, RanksInheritNoOtherDescriptors) {
  const Outcome o = shell("exec 7</dev/null 8</dev/null; " +
                          command("--ranks 2", "'script:ls -l /proc/self/fd | wc -l' slow:200"));
  // the shell's own: 0, 1, 2 and the folder that ls reads; "total 0" is a line, too
  EXPECT_THAT(o.output, StartsWith("5\n"));
}

TEST_F(Supervise, F059_ddPort_ManyAtATimeHaveTheirOwnPorts) {
  std::string all;
  for (int i = 0; i < 20; ++i) all += command("--ranks 2", "slow:3000 show") + " & ";
  shell(all + "wait");
  // rank_1.log is appended to by all of them
  std::vector<std::string> ports;
  const std::string text = log(1);
  for (size_t at = 0; (at = text.find(" port ", at)) != text.npos; at += 6)
    ports.push_back(text.substr(at + 6, text.find(' ', at + 6) - at - 6));
  EXPECT_EQ(ports.size(), 20u);
  std::sort(ports.begin(), ports.end());
  EXPECT_EQ(std::unique(ports.begin(), ports.end()), ports.end());
}

TEST_F(Supervise, ABusyPortIsNamedAtOnce) {
  const lhost::RendezvousSocket other(true, 0);
  const std::string port = std::to_string(other.port());
  const Supervised s = run("--ranks 2 --port " + port, "ok");
  EXPECT_EQ(s.exit_code, 3) << s.output;
  EXPECT_THAT(s.output, HasSubstr("FAILURE port " + port + " on 127.0.0.1 is in use by another program"));
  EXPECT_LT(s.seconds, kSoon);
}

}  // namespace
}  // namespace lhost_test
