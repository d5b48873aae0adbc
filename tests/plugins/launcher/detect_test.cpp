// Who has made the ranks: what launchers see in an environment, alone and in pairs.
#include "captured.hpp"
#include "support/component.hpp"

#include <gmock/gmock.h>

using namespace lhost_test;

namespace {

using Launcher = Component<lh_launcher, lh_launcher_v0>;

const std::vector<std::string> kLaunchers = {"torchrun", "slurm", "kubernetes", "mpi", "exec", "single"};

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
TEST_P(Detection, F170_clTorchrun_SeesWhoMadeTheRanks) {
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

}  // namespace
