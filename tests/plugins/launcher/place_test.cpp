// Where a rank is, from its environment.
#include "captured.hpp"
#include "support/component.hpp"

#include <gmock/gmock.h>

using namespace lhost_test;

namespace {

using Launcher = Component<lh_launcher, lh_launcher_v0>;

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

}  // namespace
