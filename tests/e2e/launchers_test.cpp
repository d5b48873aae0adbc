// Ranks that somebody else has made: under the variables of srun, of Kubernetes and of a real mpirun a run has the bits of
// one whose ranks lhost makes itself, and when one rank dies the others end in seconds.
#include "e2e/whole_runs.hpp"

namespace {

using lhost_test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

// The variables of each launcher, as functions of the rank $1; what follows is the command.
const char* const kPlaces = R"(
slurm() { local r=$1; shift; exec env SLURM_JOB_ID=$((4711 + $$)) SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_NPROCS=2 \
  SLURM_NNODES=1 SLURM_JOB_NUM_NODES=1 SLURM_STEP_NUM_NODES=1 SLURM_TASKS_PER_NODE=2 SLURM_STEP_TASKS_PER_NODE=2 \
  SLURM_NODEID=0 SLURM_PROCID=$r SLURM_LOCALID=$r SLURM_JOB_NODELIST=$(hostname) SLURM_JOB_NAME=train "$@"; }
# One machine stands for two nodes.
slurm_nodes() { local r=$1; shift; exec env SLURM_JOB_ID=$((4711 + $$)) SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_NNODES=2 \
  SLURM_STEP_NUM_NODES=2 'SLURM_TASKS_PER_NODE=1(x2)' SLURM_NODEID=$r SLURM_PROCID=$r SLURM_LOCALID=0 \
  SLURM_JOB_NODELIST=localhost,node2 SLURM_JOB_NAME=train "$@" trainer.devices=1; }
pods() { exec env KUBERNETES_SERVICE_HOST=10.0.0.1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$PORT "$@"; }
pytorchjob() { local r=$1; shift; pods RANK=$r PET_NNODES=2 PET_NODE_RANK=$r PET_NPROC_PER_NODE=1 "$@" trainer.devices=1; }
indexed() { local r=$1; shift; pods JOB_COMPLETION_INDEX=$r "$@" trainer.devices=1; }
ompi() { local r=$1; shift; exec env OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$r \
  OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=$r PMIX_NAMESPACE=$((1234567 + $$)) "$@"; }
PORT=$((20000 + $$ % 12000))
)";

struct Launchers : e2e::WholeRuns {
  Outcome ranks(const std::string& lines) { return script(kPlaces + lines); }
  // Both ranks to their ends; each one's output is a file.
  Outcome both(const std::string& place, const std::string& overrides) {
    return ranks("for r in 0 1; do (" + place + " $r $L " + overrides +
                 ") >$r.txt 2>&1 & P[r]=$!; done; ends ${P[0]} 0; ends ${P[1]} 1; cat 0.txt 1.txt");
  }
};

struct EveryPlace : Launchers, testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(EveryPlace, TrainsToTheBitsOfExec) {
  const auto [place, plugin] = GetParam();
  run_by_exec(2);
  const Outcome o = both(place, "run.dir=runs");
  EXPECT_THAT(o.output, AllOf(HasSubstr("process 0 ended with 0"), HasSubstr("process 1 ended with 0")));
  EXPECT_THAT(dir.read("1.txt"), testing::IsEmpty()) << "rank 0 alone is on the terminal";
  EXPECT_TRUE(std::filesystem::exists(run_folder("runs") + "/rank_1.log"));
  EXPECT_TRUE(result("runs").at("versions").at("plugins").contains("launcher:" + std::string(plugin)));
  expect_same_weights("runs", "exec");
  expect_nothing_left();
}

// A rank's own code when another one failed first is 71, as `lhost help exit-codes` says.
TEST_P(EveryPlace, F057_ddDie_AKilledRankEndsTheOther) {
  for (int victim : {0, 1}) {
    const std::string v = std::to_string(victim), other = std::to_string(1 - victim);
    const Outcome o =
        ranks("for r in 0 1; do (" + std::string(GetParam().first) + " $r $L run.dir=killed" + v +
              " trainer.max_epochs=100000) >$r.txt 2>&1 & P[r]=$!; done\n"
              "training killed" +
              v + "\nkill -9 ${P[" + v + "]}; S=$(date +%s%N); ends ${P[" + other + "]} " + other +
              "; echo after $((($(date +%s%N) - S) / 1000000)) ms");
    EXPECT_THAT(o.output, HasSubstr("process " + other + " ended with 71"));
    const size_t after = o.output.find("after ");
    ASSERT_NE(after, o.output.npos);
    EXPECT_LT(std::stoi(o.output.substr(after + 6)), 10000);
    EXPECT_THAT(dir.read(other + ".txt"), AllOf(HasSubstr("error: "), HasSubstr("rank " + v + " is gone")));
    expect_nothing_left();
  }
}

INSTANTIATE_TEST_SUITE_P(Every, EveryPlace,
                         testing::Values(std::pair("slurm", "slurm"), std::pair("slurm_nodes", "slurm"),
                                         std::pair("pytorchjob", "kubernetes"),
                                         std::pair("indexed", "kubernetes"), std::pair("ompi", "mpi")),
                         [](const auto& x) { return std::string(x.param.first); });

TEST_F(Launchers, F167_clSlurm_CountsThatDisagreeAreRefusedAtOnce) {
  const struct {
    const char *variables, *overrides, *words;
  } cases[] = {
      // one task for two devices; four tasks of which two are here; unequal nodes; tasks that do not divide
      {"SLURM_NTASKS=1 SLURM_NNODES=1 SLURM_TASKS_PER_NODE=1", "trainer.devices=2", "SLURM_NTASKS=1"},
      {"SLURM_NTASKS=4 SLURM_NNODES=2 'SLURM_TASKS_PER_NODE=2(x2)'", "trainer.devices=4",
       "2 rank(s) on this"},
      {"SLURM_NTASKS=3 SLURM_NNODES=2 SLURM_TASKS_PER_NODE=2,1", "", "not equally many"},
      {"SLURM_NTASKS=4 SLURM_NNODES=2 'SLURM_TASKS_PER_NODE=2(x2)'", "trainer.num_nodes=3",
       "trainer.num_nodes = 3"},
  };
  for (const auto& c : cases) {
    const auto start = Clock::now();
    const Outcome o =
        ranks("slurm 0 env SLURM_STEP_NUM_NODES= SLURM_STEP_TASKS_PER_NODE= " + std::string(c.variables) +
              " $L run.dir=runs " + c.overrides);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
    EXPECT_EQ(o.exit_code, 2) << c.variables << "\n" << o.output;
    EXPECT_THAT(o.output, AllOf(HasSubstr(c.words), HasSubstr("SLURM_"))) << c.variables;
  }
}

// Inside salloc, or of sbatch without srun, there is an allocation and no step: the ranks are lhost's to make.
TEST_F(Launchers, F169_clInter_AnAllocationWithoutAStepIsNoLauncher) {
  for (const char* step : {"", "SLURM_STEP_ID=4294967290"}) {
    const std::string runs = *step ? "shell" : "batch";
    const Outcome o = ranks("slurm 0 env -u SLURM_STEP_ID " + std::string(step) + " $L run.dir=" + runs);
    EXPECT_EQ(o.exit_code, 0) << o.output;
    EXPECT_TRUE(std::filesystem::exists(run_folder(runs) + "/rank_1.log")) << "it has made both ranks";
  }
  // The key beats what is seen, in both directions.
  EXPECT_EQ(ranks("slurm 0 $L run.dir=key launcher.use=exec").exit_code, 0);
  const Outcome named = ranks("slurm 0 env -u SLURM_STEP_ID $L run.dir=key launcher.use=slurm");
  EXPECT_NE(named.exit_code, 0);
  EXPECT_THAT(named.output, HasSubstr("this is an allocation, not a step"));
}

TEST_F(Launchers, F171_clK8s_VariablesThatCountPodsAreRefused) {
  const Outcome o =
      ranks("pods RANK=0 PET_NNODES=2 PET_NODE_RANK=0 PET_NPROC_PER_NODE=4 $L trainer.devices=4");
  EXPECT_EQ(o.exit_code, 2) << o.output;
  EXPECT_THAT(o.output, AllOf(HasSubstr("PET_NPROC_PER_NODE=4"), HasSubstr("the variables count pods")));
}

TEST_F(Launchers, F171_clK8s_ANumberGivenTwiceIsNamed) {
  const auto start = Clock::now();
  const Outcome o = ranks(
      "for p in 0 1 2; do (pods WORLD_SIZE=3 RANK=$((p > 0)) $L run.dir=runs trainer.devices=1) >$p.txt "
      "2>&1 & P[p]=$!; done; for p in 0 1 2; do ends ${P[p]} $p; done; cat 0.txt 1.txt 2.txt");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "not by a time limit";
  EXPECT_THAT(o.output, AllOf(HasSubstr("two processes have rank 1"), Not(HasSubstr("ended with 0"))));
  expect_nothing_left();
}

TEST_F(Launchers, F173_clStale_LeftOverVariablesNameTheMissingRanks) {
  const auto start = Clock::now();
  const Outcome o = ranks(
      "export RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=$PORT\n"
      "$L run.dir=runs trainer.devices=1 collective.connect_timeout=2s");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(8));
  EXPECT_EQ(o.exit_code, 1) << o.output;
  EXPECT_THAT(o.output, AllOf(HasSubstr("waited in vain for ranks"), HasSubstr("1, 2, 3")));
  // One of them alone starts nothing, and lhost's own ranks do not see them.
  const Outcome alone = ranks("export WORLD_SIZE=4; $L run.dir=alone -q");
  EXPECT_EQ(alone.exit_code, 0) << alone.output;
}

struct RealMpirun : Launchers {
  void SetUp() override {
    if (lhost_test::shell("mpirun --version | grep 'Open MPI'").exit_code != 0)
      GTEST_SKIP() << "no mpirun of Open MPI here (Debian: openmpi-bin)";
  }
  // Two ranks on one core are fine here, and a test may be root's.
  const std::string mpirun = "exec mpirun --allow-run-as-root --oversubscribe -np 2 ";
};

TEST_F(RealMpirun, TrainsToTheBitsOfExec) {
  run_by_exec(2);
  const Outcome o = script(mpirun + "$L run.dir=runs");
  ASSERT_EQ(o.exit_code, 0) << o.output;
  EXPECT_TRUE(result("runs").at("versions").at("plugins").contains("launcher:mpi"));
  expect_same_weights("runs", "exec");
  expect_nothing_left();
}

// mpirun ends the others itself; its code is that of the signal.
TEST_F(RealMpirun, F057_ddDie_AKilledRankEndsAll) {
  const Outcome o = script("(" + mpirun +
                           "sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec \"$0\" \"$@\"' $L run.dir=runs "
                           "trainer.max_epochs=100000) >m.txt 2>&1 & M=$!\n"
                           "training runs; kill -9 $(cat pid.1); S=$(date +%s); ends $M mpirun; [ $(($(date "
                           "+%s) - S)) -le 10 ] && echo "
                           "in time");
  EXPECT_THAT(o.output, AllOf(HasSubstr("in time"), Not(HasSubstr("ended with 0"))));
  expect_nothing_left();
}

TEST_F(RealMpirun, OneRankThatIsRefusedEndsAllInTime) {
  const auto start = Clock::now();
  const Outcome o = script(mpirun + "$L run.dir=runs trainer.devices=3");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(o.exit_code, 2) << o.output;
  EXPECT_THAT(o.output, HasSubstr("OMPI_COMM_WORLD_LOCAL_SIZE=2"));
  expect_nothing_left();
}

}  // namespace
