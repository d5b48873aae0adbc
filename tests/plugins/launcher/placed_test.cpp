// The launchers that read who this process is: captured environments, what is seen in them, and what is refused.
#include "environment.hpp"
#include "support/component.hpp"

#include <gmock/gmock.h>
#include <lhost/launcher.h>

using namespace lhost_test;

namespace {

using testing::HasSubstr;
using Launcher = Component<lh_launcher, lh_launcher_v0>;

const std::vector<std::string> kLaunchers = {"torchrun", "slurm", "kubernetes", "mpi", "exec", "single"};

// ---- captured

// torchrun --nnodes 2 --nproc-per-node 2, node 1, second rank
const Environment kTorchrun = {{"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_RESTART_COUNT", "1"},
                               {"TORCHELASTIC_MAX_RESTARTS", "3"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                               {"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"GROUP_RANK", "1"},
                               {"GROUP_WORLD_SIZE", "2"},
                               {"ROLE_RANK", "3"},
                               {"ROLE_WORLD_SIZE", "4"},
                               {"ROLE_NAME", "default"},
                               {"MASTER_ADDR", "node-a"},
                               {"MASTER_PORT", "29400"},
                               {"OMP_NUM_THREADS", "1"}};
const Environment kBare = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
// srun --nodes 3 --ntasks-per-node 2, node 1, its first task
const Environment kSlurm = {{"SLURM_JOB_ID", "123456"},
                            {"SLURM_JOBID", "123456"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_STEPID", "0"},
                            {"SLURM_PROCID", "2"},
                            {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "1"},
                            {"SLURM_NTASKS", "6"},
                            {"SLURM_NPROCS", "6"},
                            {"SLURM_NNODES", "3"},
                            {"SLURM_JOB_NUM_NODES", "3"},
                            {"SLURM_NTASKS_PER_NODE", "2"},
                            {"SLURM_TASKS_PER_NODE", "2(x3)"},
                            {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                            {"SLURM_STEP_NUM_NODES", "3"},
                            {"SLURM_JOB_NODELIST", "gpu[07-08,12]"},
                            {"SLURM_NODELIST", "gpu[07-08,12]"},
                            {"SLURM_JOB_NAME", "train"}};
// sbatch script, before any srun
const Environment kAllocation =
    without(kSlurm, {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_NODES"}) +
    Environment{{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}};
// mpirun -n 4 of Open MPI on one machine
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                              {"OMPI_COMM_WORLD_NODE_RANK", "2"},
                              {"OMPI_UNIVERSE_SIZE", "4"},
                              {"PMIX_NAMESPACE", "3174236161"},
                              {"PMIX_RANK", "2"},
                              {"OMPI_MCA_ess_base_jobid", "3174236161"}};
// mpiexec of Intel MPI, two nodes
const Environment kIntelMpi = {{"PMI_RANK", "3"},        {"PMI_SIZE", "4"},         {"MPI_LOCALRANKID", "1"},
                               {"MPI_LOCALNRANKS", "2"}, {"MASTER_ADDR", "node-a"}, {"MASTER_PORT", "23456"}};
const Environment kPod = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
// PyTorchJob: a master and two workers, second worker
const Environment kPyTorchJob = kPod + Environment{{"RANK", "2"},
                                                   {"WORLD_SIZE", "3"},
                                                   {"MASTER_ADDR", "job-master-0"},
                                                   {"MASTER_PORT", "23456"},
                                                   {"PYTHONUNBUFFERED", "1"}};
const Environment kIndexedJob =
    kPod + Environment{{"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "job-0.job"}};
const Environment kStale = {{"RANK", "3"}, {"WORLD_SIZE", "4"}};

// ---- what is seen

struct Seen {
  std::map<std::string, int32_t> scores;
  std::string best;
};
Seen look(const Environment& e, const lh_launch_spec& spec) {
  const EnvironmentIs scope(e);
  Seen seen;
  for (const std::string& name : kLaunchers) {
    const Launcher l("launcher", name);
    lh_str why{};
    const int32_t score = l->detect(l.self, &spec, &why);
    EXPECT_EQ(score > 0, why.len > 0) << name;
    seen.scores[name] = score;
    if (seen.best.empty() || score > seen.scores[seen.best]) seen.best = name;
  }
  return seen;
}

struct Sight {
  const char* name;
  Environment environment;
  lh_launch_spec spec;
  const char* best;
  int32_t score;
};
void PrintTo(const Sight& s, std::ostream* out) { *out << s.name; }
class Detection : public testing::TestWithParam<Sight> {};
TEST_P(Detection, SeesWhoMadeTheRanks) {
  const Seen seen = look(GetParam().environment, GetParam().spec);
  EXPECT_EQ(seen.best, GetParam().best);
  EXPECT_EQ(seen.scores.at(seen.best), GetParam().score);
}
const Sight kSights[] = {
    {"Nothing", {}, wanted(1, 0), "single", 20},
    {"NothingOneDevice", {}, wanted(1, 1), "single", 20},
    {"NothingManyDevices", {}, wanted(1, 4), "exec", 10},
    {"NothingManyNodes", {}, wanted(2, 0), "exec", 10},
    {"Torchrun", kTorchrun, wanted(1, 0), "torchrun", 100},
    {"TorchrunManyDevices", kTorchrun, wanted(2, 2), "torchrun", 100},
    {"Bare", kBare, wanted(1, 0), "torchrun", 60},
    {"Slurm", kSlurm, wanted(1, 0), "slurm", 80},
    {"SlurmAllocationAlone", kAllocation, wanted(1, 0), "single", 20},
    {"SlurmAllocationManyDevices", kAllocation, wanted(1, 2), "exec", 10},
    {"SlurmInteractive", kSlurm + Environment{{"SLURM_JOB_NAME", "bash"}}, wanted(1, 0), "single", 20},
    {"SlurmSalloc", kSlurm + Environment{{"SLURM_JOB_NAME", "interactive"}}, wanted(1, 0), "single", 20},
    {"SlurmShellOfSalloc", kSlurm + Environment{{"SLURM_STEP_ID", "4294967290"}}, wanted(1, 0), "single", 20},
    {"OpenMpi", kOpenMpi, wanted(1, 0), "mpi", 70},
    {"IntelMpi", kIntelMpi, wanted(1, 0), "mpi", 70},
    {"Pmix", {{"PMIX_RANK", "0"}}, wanted(1, 2), "mpi", 70},
    {"PyTorchJob", kPyTorchJob, wanted(1, 0), "kubernetes", 75},
    {"IndexedJob", kIndexedJob, wanted(1, 0), "kubernetes", 75},
    {"IndexedJobWithoutSize", without(kIndexedJob, {"WORLD_SIZE"}), wanted(1, 0), "single", 20},
    {"APodAlone", kPod, wanted(1, 0), "single", 20},
    {"APodWithManyDevices", kPod, wanted(1, 4), "exec", 10},
    // left over in a shell
    {"StaleRank", kStale, wanted(1, 0), "single", 20},
    {"StaleRankManyDevices", kStale, wanted(1, 4), "exec", 10},
    {"StaleWorldSize", {{"WORLD_SIZE", "4"}}, wanted(1, 1), "single", 20},
    {"StaleMaster", {{"MASTER_ADDR", "node"}, {"MASTER_PORT", "29500"}}, wanted(1, 0), "single", 20},
    {"StaleUnderSlurm", kSlurm + kStale, wanted(1, 0), "slurm", 80},
    {"EmptyIsNotSet", kBare + Environment{{"RANK", ""}}, wanted(1, 0), "single", 20},
    // pairs
    {"TorchrunInSlurm", kSlurm + kTorchrun, wanted(1, 0), "torchrun", 100},
    {"TorchrunInAllocation", kAllocation + kTorchrun, wanted(1, 0), "torchrun", 100},
    {"TorchrunInMpi", kOpenMpi + kTorchrun, wanted(1, 0), "torchrun", 100},
    {"TorchrunInPod", kPyTorchJob + kTorchrun, wanted(1, 0), "torchrun", 100},
    {"BareInSlurm", kSlurm + kBare, wanted(1, 0), "slurm", 80},
    {"BareInMpi", kOpenMpi + kBare, wanted(1, 0), "mpi", 70},
    {"BareInPod", kPod + kBare, wanted(1, 0), "kubernetes", 75},
    {"SlurmWithPmix", kSlurm + Environment{{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "slurm.pmix.123456.0"}},
     wanted(1, 0), "slurm", 80},
    {"SlurmWithPmi2", kSlurm + Environment{{"PMI_RANK", "2"}, {"PMI_SIZE", "6"}}, wanted(1, 0), "slurm", 80},
    {"MpirunInSlurm", kSlurm + kOpenMpi, wanted(1, 0), "mpi", 70},
    {"MpirunInAllocation", kAllocation + kOpenMpi, wanted(1, 0), "mpi", 70},
    {"SlurmInPod", kPod + kSlurm, wanted(1, 0), "slurm", 80},
    {"MpiInPod", kPod + kOpenMpi, wanted(1, 0), "mpi", 70},
    {"MpiInPyTorchJob", kPyTorchJob + kOpenMpi, wanted(1, 0), "kubernetes", 75},
};
INSTANTIATE_TEST_SUITE_P(All, Detection, testing::ValuesIn(kSights),
                         [](const auto& i) { return std::string(i.param.name); });

// ---- where it is

struct Place {
  const char* name;
  const char* launcher;
  Environment environment;
  lh_launch_spec spec;
  std::vector<int64_t> numbers;  // world size, rank, local world size, local rank, nodes, node, port, restart
  const char *master, *job;
};
void PrintTo(const Place& p, std::ostream* out) { *out << p.name; }
class Places : public testing::TestWithParam<Place> {};
TEST_P(Places, AreRead) {
  const Place& p = GetParam();
  const EnvironmentIs scope(p.environment);
  const Launcher l("launcher", p.launcher);
  lh_env e;
  std::memset(&e, 0x55, sizeof e);
  e.size = sizeof e;
  call(l->env(l.self, &p.spec, &e));
  EXPECT_EQ(e.size, sizeof e);
  EXPECT_EQ((std::vector<int64_t>{e.world_size, e.rank, e.local_world_size, e.local_rank, e.num_nodes,
                                  e.node_rank, e.master_port, e.restart}),
            p.numbers);
  EXPECT_EQ(text(e.master_addr), p.master);
  EXPECT_EQ(text(e.job), p.job);
}
const Environment kSlurmOneNode = {{"SLURM_JOB_ID", "20001"}, {"SLURM_STEPID", "3"}, {"SLURM_PROCID", "1"},
                                   {"SLURM_LOCALID", "1"},    {"SLURM_NODEID", "0"}, {"SLURM_NTASKS", "2"},
                                   {"SLURM_NNODES", "1"}};
const Place kPlaces[] = {
    {"Torchrun", "torchrun", kTorchrun, wanted(2, 2), {4, 3, 2, 1, 2, 1, 29400, 1}, "node-a", "node-a:29400"},
    {"TorchrunManifestSaysNothing",
     "torchrun",
     kTorchrun,
     wanted(1, 0),
     {4, 3, 2, 1, 2, 1, 29400, 1},
     "node-a",
     "node-a:29400"},
    {"TorchrunWithAName",
     "torchrun",
     kTorchrun + Environment{{"TORCHELASTIC_RUN_ID", "abc"}},
     wanted(1, 0),
     {4, 3, 2, 1, 2, 1, 29400, 1},
     "node-a",
     "torchrun-abc-node-a:29400"},
    {"Bare", "torchrun", kBare, wanted(1, 0), {2, 1, 2, 1, 1, 0, 29500, 0}, "10.0.0.1", "10.0.0.1:29500"},
    {"BareTwoNodes",
     "torchrun",
     kBare,
     wanted(2, 0),
     {2, 1, 1, 0, 2, 1, 29500, 0},
     "10.0.0.1",
     "10.0.0.1:29500"},
    {"BareWithDevices",
     "torchrun",
     kBare + Environment{{"WORLD_SIZE", "8"}, {"RANK", "5"}},
     wanted(2, 4),
     {8, 5, 4, 1, 2, 1, 29500, 0},
     "10.0.0.1",
     "10.0.0.1:29500"},
    {"Slurm", "slurm", kSlurm, wanted(1, 0), {6, 2, 2, 0, 3, 1, 18456, 0}, "gpu07", "slurm-123456-0"},
    {"SlurmManifestAgrees",
     "slurm",
     kSlurm,
     wanted(3, 2),
     {6, 2, 2, 0, 3, 1, 18456, 0},
     "gpu07",
     "slurm-123456-0"},
    {"SlurmWithMaster",
     "slurm",
     kSlurm + Environment{{"MASTER_ADDR", "gpu12"}, {"MASTER_PORT", "5000"}},
     wanted(1, 0),
     {6, 2, 2, 0, 3, 1, 5000, 0},
     "gpu12",
     "slurm-123456-0"},
    {"SlurmOneNode",
     "slurm",
     kSlurmOneNode,
     wanted(1, 2),
     {2, 1, 2, 1, 1, 0, 15001, 0},
     "127.0.0.1",
     "slurm-20001-3"},
    {"SlurmTwoByTwo",
     "slurm",
     kSlurm + Environment{{"SLURM_NTASKS", "4"},
                          {"SLURM_NNODES", "2"},
                          {"SLURM_STEP_NUM_NODES", "2"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                          {"SLURM_TASKS_PER_NODE", "2(x2)"}},
     wanted(2, 2),
     {4, 2, 2, 0, 2, 1, 18456, 0},
     "gpu07",
     "slurm-123456-0"},
    {"SlurmRequeued",
     "slurm",
     kSlurmOneNode + Environment{{"SLURM_RESTART_COUNT", "2"}},
     wanted(1, 0),
     {2, 1, 2, 1, 1, 0, 15001, 2},
     "127.0.0.1",
     "slurm-20001-3"},
    {"SlurmInteractiveByName",
     "slurm",
     kSlurmOneNode + Environment{{"SLURM_JOB_NAME", "bash"}},
     wanted(1, 0),
     {2, 1, 2, 1, 1, 0, 15001, 0},
     "127.0.0.1",
     "slurm-20001-3"},
    {"SlurmStaleRankIsNotRead",
     "slurm",
     kSlurm + kStale,
     wanted(1, 0),
     {6, 2, 2, 0, 3, 1, 18456, 0},
     "gpu07",
     "slurm-123456-0"},
    {"SlurmNodesApart",
     "slurm",
     kSlurm + Environment{{"SLURM_JOB_NODELIST", "login1,gpu[1-2]"}},
     wanted(1, 0),
     {6, 2, 2, 0, 3, 1, 18456, 0},
     "login1",
     "slurm-123456-0"},
    {"SlurmBracketsTwice",
     "slurm",
     kSlurm + Environment{{"SLURM_JOB_NODELIST", "r[1-2]n[03-05]-ib,x"}},
     wanted(1, 0),
     {6, 2, 2, 0, 3, 1, 18456, 0},
     "r1n03-ib",
     "slurm-123456-0"},
    {"SlurmStepOfAPart",
     "slurm",
     kSlurmOneNode +
         Environment{{"SLURM_NNODES", "4"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_TASKS_PER_NODE", "8(x4)"}},
     wanted(1, 0),
     {2, 1, 2, 1, 1, 0, 15001, 0},
     "127.0.0.1",
     "slurm-20001-3"},
    {"OpenMpiWithAPort",
     "mpi",
     kOpenMpi + Environment{{"MASTER_PORT", "16000"}},
     wanted(1, 4),
     {4, 2, 4, 2, 1, 0, 16000, 0},
     "127.0.0.1",
     "mpi-3174236161"},
    {"IntelMpiTwoNodes",
     "mpi",
     kIntelMpi,
     wanted(2, 2),
     {4, 3, 2, 1, 2, 1, 23456, 0},
     "node-a",
     "mpi-node-a:23456"},
    {"MpiInTurns",
     "mpi",
     kIntelMpi + Environment{{"PMI_RANK", "1"}, {"MPI_LOCALRANKID", "0"}},
     wanted(1, 0),
     {4, 1, 2, 0, 2, 1, 23456, 0},
     "node-a",
     "mpi-node-a:23456"},
    {"MpiOneRank",
     "mpi",
     {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"PMIX_NAMESPACE", "n"}, {"MASTER_PORT", "20000"}},
     wanted(1, 0),
     {1, 0, 1, 0, 1, 0, 20000, 0},
     "127.0.0.1",
     "mpi-n"},
    {"PmixWithDevices",
     "mpi",
     {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "ns"}, {"MASTER_PORT", "20000"}},
     wanted(1, 2),
     {2, 1, 2, 1, 1, 0, 20000, 0},
     "127.0.0.1",
     "mpi-ns"},
    {"PyTorchJob",
     "kubernetes",
     kPyTorchJob,
     wanted(1, 0),
     {3, 2, 1, 0, 3, 2, 23456, 0},
     "job-master-0",
     "kubernetes-job-master-0:23456"},
    {"PyTorchJobPerPod",
     "kubernetes",
     kPyTorchJob + Environment{{"PET_NNODES", "3"}, {"PET_NPROC_PER_NODE", "1"}, {"PET_NODE_RANK", "2"}},
     wanted(3, 1),
     {3, 2, 1, 0, 3, 2, 23456, 0},
     "job-master-0",
     "kubernetes-job-master-0:23456"},
    {"PodWithLocalRanks",
     "kubernetes",
     kPyTorchJob + Environment{{"WORLD_SIZE", "8"},
                               {"RANK", "5"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"PET_NNODES", "2"},
                               {"PET_NPROC_PER_NODE", "4"}},
     wanted(2, 4),
     {8, 5, 4, 1, 2, 1, 23456, 0},
     "job-master-0",
     "kubernetes-job-master-0:23456"},
    {"IndexedJob",
     "kubernetes",
     kIndexedJob,
     wanted(1, 0),
     {4, 1, 1, 0, 4, 1, 29500, 0},
     "job-0.job",
     "kubernetes-job-0.job:29500"},
};
INSTANTIATE_TEST_SUITE_P(All, Places, testing::ValuesIn(kPlaces),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(MpiPort, FollowsFromTheJobAlone) {
  const auto port = [](const Environment& e) {
    const EnvironmentIs scope(e);
    const Launcher l("launcher", "mpi");
    const auto spec = wanted(1, 0);
    lh_env out{};
    out.size = sizeof out;
    call(l->env(l.self, &spec, &out));
    return out.master_port;
  };
  const int64_t one = port(kOpenMpi),
                same = port(kOpenMpi + Environment{{"OMPI_COMM_WORLD_RANK", "0"},
                                                   {"PMIX_RANK", "0"},
                                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}}),
                other = port(kOpenMpi + Environment{{"PMIX_NAMESPACE", "3174236162"}});
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other);
  for (int64_t p : {one, other}) {
    EXPECT_GE(p, 15000);
    EXPECT_LE(p, 34999);
  }
}

// ---- what is refused

struct Refusal {
  const char* name;
  const char* launcher;
  Environment environment;
  lh_launch_spec spec;
  std::vector<std::string> texts;
};
void PrintTo(const Refusal& r, std::ostream* out) { *out << r.name; }
class Refusals : public testing::TestWithParam<Refusal> {};
TEST_P(Refusals, NameTheVariablesAndAWayOut) {
  const Refusal& r = GetParam();
  const EnvironmentIs scope(r.environment);
  const Launcher l("launcher", r.launcher);
  lh_env e{};
  e.size = sizeof e;
  lh_status s = l->env(l.self, &r.spec, &e);
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->code, LH_INVALID_ARGUMENT);
  const std::string message = failure(s);
  for (const std::string& t : r.texts) EXPECT_THAT(message, HasSubstr(t));
}
const Refusal kRefusals[] = {
    {"TorchrunOtherDevices",
     "torchrun",
     kTorchrun,
     wanted(1, 4),
     {"trainer.devices = 4", "LOCAL_WORLD_SIZE=2", "leave trainer.devices out"}},
    {"TorchrunOtherNodes",
     "torchrun",
     kTorchrun,
     wanted(3, 0),
     {"trainer.num_nodes = 3", "GROUP_WORLD_SIZE=2"}},
    {"TorchrunRankTooHigh",
     "torchrun",
     kTorchrun + Environment{{"RANK", "4"}},
     wanted(1, 0),
     {"RANK=4", "WORLD_SIZE=4", "rank 4 is not one of 0 to 3"}},
    {"TorchrunLocalRankTooHigh",
     "torchrun",
     kTorchrun + Environment{{"LOCAL_RANK", "2"}},
     wanted(1, 0),
     {"LOCAL_RANK=2", "local rank 2 is not one of 0 to 1"}},
    {"TorchrunNegative", "torchrun", kTorchrun + Environment{{"RANK", "-1"}}, wanted(1, 0), {"rank -1"}},
    {"TorchrunNoNumber",
     "torchrun",
     kTorchrun + Environment{{"WORLD_SIZE", "4x"}},
     wanted(1, 0),
     {"WORLD_SIZE=4x", "whole number"}},
    {"TorchrunHuge",
     "torchrun",
     kTorchrun + Environment{{"WORLD_SIZE", "99999999999999999999"}},
     wanted(1, 0),
     {"WORLD_SIZE=9999", "whole number"}},
    {"TorchrunUnequalNodes",
     "torchrun",
     kTorchrun + Environment{{"WORLD_SIZE", "5"}},
     wanted(1, 0),
     {"2 node(s) with 2 rank(s) each are not 5 ranks"}},
    {"TorchrunRankElsewhere",
     "torchrun",
     kTorchrun + Environment{{"RANK", "1"}},
     wanted(1, 0),
     {"RANK=1", "contradict each other (1 against 3)", "left over"}},
    {"TorchrunNobodyToMeet",
     "torchrun",
     without(kTorchrun, {"MASTER_ADDR"}),
     wanted(1, 0),
     {"MASTER_ADDR is not set"}},
    {"TorchrunNoPort",
     "torchrun",
     without(kTorchrun, {"MASTER_PORT"}),
     wanted(1, 0),
     {"MASTER_PORT is not set", "launcher.use"}},
    {"TorchrunBadPort",
     "torchrun",
     kTorchrun + Environment{{"MASTER_PORT", "99999"}},
     wanted(1, 0),
     {"MASTER_PORT = 99999", "1 to 65535"}},
    {"TorchrunByNameWithoutIt",
     "torchrun",
     {},
     wanted(1, 2),
     {"WORLD_SIZE is not set, though torchrun sets it"}},
    {"TorchrunEmptyWorld",
     "torchrun",
     kTorchrun + Environment{{"WORLD_SIZE", "0"}},
     wanted(1, 0),
     {"WORLD_SIZE=0"}},
    {"TorchrunNoRanksHere",
     "torchrun",
     kTorchrun + Environment{{"LOCAL_WORLD_SIZE", "0"}},
     wanted(1, 0),
     {"LOCAL_WORLD_SIZE=0"}},
    {"SlurmOneTaskTwoPerNode",
     "slurm",
     kSlurmOneNode + Environment{{"SLURM_NTASKS", "1"},
                                 {"SLURM_PROCID", "0"},
                                 {"SLURM_LOCALID", "0"},
                                 {"SLURM_NTASKS_PER_NODE", "2"}},
     wanted(1, 2),
     {"SLURM_NTASKS=1", "SLURM_NTASKS_PER_NODE=2", "(2 against 1)", "--ntasks-per-node"}},
    {"SlurmOtherDevices", "slurm", kSlurm, wanted(3, 4), {"trainer.devices = 4", "SLURM_NTASKS=6"}},
    {"SlurmOtherNodes",
     "slurm",
     kSlurm,
     wanted(2, 2),
     {"trainer.num_nodes = 2", "3 node(s)", "SLURM_NNODES=3"}},
    {"SlurmAllocationAlone",
     "slurm",
     kAllocation,
     wanted(1, 0),
     {"SLURM_STEP_ID", "an allocation, not a step", "start with srun"}},
    {"SlurmUnequalNodes",
     "slurm",
     kSlurm + Environment{{"SLURM_STEP_TASKS_PER_NODE", "3,2,1"}, {"SLURM_NTASKS_PER_NODE", ""}},
     wanted(1, 0),
     {"not equally many tasks on every node", "3,2,1"}},
    {"SlurmStepContradictsItself",
     "slurm",
     kSlurm + Environment{{"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}},
     wanted(1, 0),
     {"4 tasks on 2 node(s) are not SLURM_NTASKS on SLURM_NNODES"}},
    {"SlurmDoesNotDivide",
     "slurm",
     kSlurmOneNode + Environment{{"SLURM_NTASKS", "3"}, {"SLURM_NNODES", "2"}},
     wanted(1, 0),
     {"3 tasks do not divide by 2 nodes"}},
    {"SlurmNoTaskCounts",
     "slurm",
     kSlurm + Environment{{"SLURM_STEP_TASKS_PER_NODE", "2(y3)"}},
     wanted(1, 0),
     {"SLURM_STEP_TASKS_PER_NODE=2(y3)", "2(x3),1"}},
    {"SlurmNoNodeList",
     "slurm",
     kSlurm + Environment{{"SLURM_JOB_NODELIST", "gpu["}},
     wanted(1, 0),
     {"SLURM_JOB_NODELIST=gpu["}},
    {"SlurmNowhereToMeet",
     "slurm",
     without(kSlurm, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}),
     wanted(1, 0),
     {"SLURM_JOB_NODELIST is not set", "MASTER_ADDR"}},
    {"SlurmNoNumber",
     "slurm",
     kSlurm + Environment{{"SLURM_PROCID", "two"}},
     wanted(1, 0),
     {"SLURM_PROCID=two"}},
    {"MpiTwoSourcesDisagree",
     "mpi",
     kOpenMpi + Environment{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
     wanted(1, 0),
     {"OMPI_COMM_WORLD_RANK=2", "PMI_RANK=1", "(2 against 1)", "one mpirun"}},
    {"MpiSeveralNodesNoMaster",
     "mpi",
     without(kIntelMpi, {"MASTER_ADDR"}),
     wanted(1, 0),
     {"several nodes, but MASTER_ADDR is not set", "PMI_RANK=3"}},
    {"MpiNoPortToBeHad",
     "mpi",
     {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
     wanted(1, 0),
     {"no job id", "set MASTER_PORT"}},
    {"MpiNoSize",
     "mpi",
     {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "n"}},
     wanted(1, 0),
     {"PMIX_RANK=0", "how many ranks", "trainer.devices", "WORLD_SIZE"}},
    {"MpiRankTooHigh",
     "mpi",
     kOpenMpi + Environment{{"OMPI_COMM_WORLD_RANK", "4"}, {"PMIX_RANK", "4"}},
     wanted(1, 0),
     {"rank 4 is not one of 0 to 3"}},
    {"MpiOtherDevices",
     "mpi",
     kOpenMpi,
     wanted(1, 2),
     {"trainer.devices = 2", "OMPI_COMM_WORLD_LOCAL_SIZE=4"}},
    {"MpiScattered",
     "mpi",
     kIntelMpi + Environment{{"PMI_SIZE", "6"}, {"PMI_RANK", "5"}, {"MPI_LOCALRANKID", "0"}},
     wanted(1, 0),
     {"node does not follow", "--map-by slot"}},
    {"MpiByNameWithoutIt",
     "mpi",
     {},
     wanted(1, 0),
     {"none of OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK is set"}},
    {"PodsWithManyProcesses",
     "kubernetes",
     kPyTorchJob + Environment{{"PET_NNODES", "3"}, {"PET_NPROC_PER_NODE", "4"}},
     wanted(1, 0),
     {"PET_NPROC_PER_NODE=4", "WORLD_SIZE=3", "count pods", "the same number", "torchrun"}},
    {"PodsWithManyProcessesCountedOnce",
     "kubernetes",
     kPyTorchJob + Environment{{"WORLD_SIZE", "12"}, {"PET_NNODES", "3"}, {"PET_NPROC_PER_NODE", "4"}},
     wanted(1, 0),
     {"PET_NNODES=3", "count pods"}},
    {"PodsWithManyDevices",
     "kubernetes",
     kPyTorchJob,
     wanted(1, 4),
     {"trainer.devices = 4", "1 rank(s) on this node"}},
    {"PodsThatAreNotTheWorld",
     "kubernetes",
     kPyTorchJob + Environment{{"PET_NNODES", "2"}},
     wanted(1, 0),
     {"2 pods with 1 rank(s) each are not 3 ranks"}},
    {"PodOfAnotherNumber",
     "kubernetes",
     kPyTorchJob + Environment{{"PET_NODE_RANK", "1"}},
     wanted(1, 0),
     {"PET_NODE_RANK=1", "RANK=2", "(1 against 2)"}},
    {"IndexTooHigh",
     "kubernetes",
     kIndexedJob + Environment{{"JOB_COMPLETION_INDEX", "4"}},
     wanted(1, 0),
     {"JOB_COMPLETION_INDEX=4", "rank 4 is not one of 0 to 3"}},
    {"IndexWithoutSize",
     "kubernetes",
     without(kIndexedJob, {"WORLD_SIZE"}),
     wanted(1, 0),
     {"how many pods", "launcher.world_size"}},
    {"IndexWithoutMaster",
     "kubernetes",
     without(kIndexedJob, {"MASTER_ADDR"}),
     wanted(1, 0),
     {"MASTER_ADDR is not set", "launcher.master_addr"}},
    {"IndexAndRankDisagree",
     "kubernetes",
     kPyTorchJob + Environment{{"JOB_COMPLETION_INDEX", "0"}},
     wanted(1, 0),
     {"JOB_COMPLETION_INDEX=0", "(0 against 2)"}},
};
INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::ValuesIn(kRefusals),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(KubernetesOptions, SayWhatAnIndexedJobDoesNot) {
  const EnvironmentIs scope(kPod + Environment{{"JOB_COMPLETION_INDEX", "2"}});
  const Launcher l(
      "launcher", "kubernetes",
      {{"world_size", int64_t{3}}, {"master_addr", std::string("job-0")}, {"master_port", int64_t{7000}}});
  const auto spec = wanted(1, 0);
  lh_str why{};
  EXPECT_EQ(l->detect(l.self, &spec, &why), 75);
  lh_env e{};
  e.size = sizeof e;
  call(l->env(l.self, &spec, &e));
  EXPECT_EQ(e.world_size, 3);
  EXPECT_EQ(e.rank, 2);
  EXPECT_EQ(e.master_port, 7000);
  EXPECT_EQ(text(e.master_addr), "job-0");
}

TEST(KubernetesOptions, ThatContradictAVariableAreRefused) {
  const EnvironmentIs scope(kIndexedJob);
  const Launcher l("launcher", "kubernetes", {{"world_size", int64_t{3}}});
  const auto spec = wanted(1, 0);
  lh_env e{};
  e.size = sizeof e;
  EXPECT_THAT(failure(l->env(l.self, &spec, &e)), HasSubstr("WORLD_SIZE=4"));
}

TEST(Placed, MakesNoProcess) {
  for (const char* name : {"torchrun", "slurm", "mpi", "kubernetes"})
    EXPECT_EQ(Launcher("launcher", name)->start, nullptr);
}

}  // namespace
