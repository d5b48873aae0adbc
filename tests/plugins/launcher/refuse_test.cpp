// Environments that contradict themselves or the manifest: an error that names variables, numbers and a way out.
#include "captured.hpp"
#include "support/component.hpp"

#include <gmock/gmock.h>

using namespace lhost_test;

namespace {

using testing::HasSubstr;
using Launcher = Component<lh_launcher, lh_launcher_v0>;

struct Refusal {
  const char* name;
  const char* launcher;
  Environment environment;
  lh_launch_spec spec;
  std::vector<std::string> texts;
};
void PrintTo(const Refusal& r, std::ostream* out) { *out << r.name; }
class Refusals : public testing::TestWithParam<Refusal> {};
TEST_P(Refusals, F167_clSlurm_NameTheVariablesAndAWayOut) {
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
