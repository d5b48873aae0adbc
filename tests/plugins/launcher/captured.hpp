// captured.hpp - environments as launchers make them, and as they are left over.
#pragma once
#include "environment.hpp"

namespace lhost_test {

// torchrun --nnodes 2 --nproc-per-node 2, node 1, second rank
inline const Environment kTorchrun = {{"TORCHELASTIC_RUN_ID", "none"},
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
inline const Environment kBare = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
// srun --nodes 3 --ntasks-per-node 2, node 1, its first task
inline const Environment kSlurm = {{"SLURM_JOB_ID", "123456"},
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
inline const Environment kSlurmOneNode = {
    {"SLURM_JOB_ID", "20001"}, {"SLURM_STEPID", "3"}, {"SLURM_PROCID", "1"}, {"SLURM_LOCALID", "1"},
    {"SLURM_NODEID", "0"},     {"SLURM_NTASKS", "2"}, {"SLURM_NNODES", "1"}};
// sbatch script, before any srun
inline const Environment kAllocation =
    without(kSlurm, {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_NODES"}) +
    Environment{{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}};
// mpirun -n 4 of Open MPI on one machine
inline const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                                     {"OMPI_COMM_WORLD_SIZE", "4"},
                                     {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                     {"OMPI_COMM_WORLD_NODE_RANK", "2"},
                                     {"OMPI_UNIVERSE_SIZE", "4"},
                                     {"PMIX_NAMESPACE", "3174236161"},
                                     {"PMIX_RANK", "2"},
                                     {"OMPI_MCA_ess_base_jobid", "3174236161"}};
// mpiexec of Intel MPI, two nodes
inline const Environment kIntelMpi = {{"PMI_RANK", "3"},         {"PMI_SIZE", "4"},
                                      {"MPI_LOCALRANKID", "1"},  {"MPI_LOCALNRANKS", "2"},
                                      {"MASTER_ADDR", "node-a"}, {"MASTER_PORT", "23456"}};
inline const Environment kPod = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                                 {"KUBERNETES_SERVICE_PORT", "443"}};
// PyTorchJob: a master and two workers, second worker
inline const Environment kPyTorchJob = kPod + Environment{{"RANK", "2"},
                                                          {"WORLD_SIZE", "3"},
                                                          {"MASTER_ADDR", "job-master-0"},
                                                          {"MASTER_PORT", "23456"},
                                                          {"PYTHONUNBUFFERED", "1"}};
inline const Environment kIndexedJob =
    kPod + Environment{{"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "job-0.job"}};
inline const Environment kStale = {{"RANK", "3"}, {"WORLD_SIZE", "4"}};

}  // namespace lhost_test
