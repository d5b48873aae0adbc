// mpi - mpirun or mpiexec has made this rank: Open MPI (OMPI_COMM_WORLD_*), MPICH and Intel MPI (PMI_*, MPI_LOCAL*), or
// another that speaks PMIx. MPI itself is not used.
#include "../common/placed.hpp"

using namespace lhost_launcher;

namespace {

// The variables of one family.
struct Family {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Family kFamilies[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                                {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"}};

}  // namespace

struct Mpi : PlacedLauncher {
  static constexpr const char* summary = "mpirun has made this rank";
  using PlacedLauncher::PlacedLauncher;

  int32_t detect(const lh_launch_spec&, std::string& why) override {
    for (const Family& f : kFamilies) {
      if (!v_.has(f.rank)) continue;
      why = std::string(f.rank) + " is set";
      return 70;
    }
    return 0;
  }

 private:
  std::string seen() const {
    return v_.shown({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                     "MPI_LOCALNRANKS", "PMIX_RANK", "WORLD_SIZE"});
  }
  // A number under whichever names there are; they must agree.
  std::optional<int64_t> agreed(const char* Family::*which) const {
    std::optional<int64_t> found;
    for (const Family& f : kFamilies) {
      const auto n = v_.number(f.*which);
      if (!n) continue;
      if (found)
        check_same(*found, *n, seen(), "start the program with one mpirun, not with one inside another");
      found = n;
    }
    return found;
  }
  int64_t size(const lh_launch_spec& spec) const {
    if (const auto n = agreed(&Family::size)) return *n;
    if (spec.ranks_per_node > 0) return spec.num_nodes * spec.ranks_per_node;
    if (const auto n = v_.number("WORLD_SIZE")) return *n;
    refuse("found " + seen() +
           ", but nothing that says how many ranks there are; set trainer.devices (and "
           "trainer.num_nodes), or the variable WORLD_SIZE");
  }

  Placed place(const lh_launch_spec& spec) const override {
    Placed p;
    const auto rank = agreed(&Family::rank);
    if (!rank)
      refuse(
          "none of OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK is set, though mpirun sets one; start the "
          "program "
          "with it, or leave launcher.use out");
    p.rank = *rank;
    p.world_size = size(spec);
    if (p.world_size < 1) refuse("found " + seen() + ": a world needs at least one rank");
    check_range(p.rank, p.world_size, "rank", seen());
    const int64_t by_manifest = spec.ranks_per_node > 0 ? spec.ranks_per_node : p.world_size / spec.num_nodes;
    p.local_world_size = std::max<int64_t>(1, agreed(&Family::local_size).value_or(by_manifest));
    p.num_nodes = std::max<int64_t>(1, p.world_size / p.local_world_size);
    p.local_rank = agreed(&Family::local_rank).value_or(p.rank % p.local_world_size);
    if (p.num_nodes * p.local_world_size == p.world_size)  // else check_place says so
      p.node_rank = node_of(p.rank, p.local_rank, p.local_world_size, p.num_nodes, seen());
    set_meeting(p);
    check_place(p, spec, seen());
    return p;
  }

  void set_meeting(Placed& p) const {
    std::string shared;  // the same on all ranks of one mpirun, and of no other
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri", "PMI_ID",
                             "PMI_KVSNAME", "SLURM_JOB_ID"})
      if (shared.empty()) shared = v_.text(name);
    const auto port = v_.number("MASTER_PORT");
    const bool one_node = p.num_nodes == 1;
    if (shared.empty() && !port && p.world_size > 1)
      refuse("found " + seen() +
             ", but no job id (PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid) to choose a port by; set "
             "MASTER_PORT, the same for all ranks");
    p.master_port = port ? *port : port_from_text(shared);
    p.master_addr = v_.text("MASTER_ADDR");
    if (p.master_addr.empty() && !one_node)
      refuse("found " + seen() +
             ": several nodes, but MASTER_ADDR is not set; set it to the node of rank 0 (mpirun -x "
             "MASTER_ADDR=...)");
    if (one_node) p.master_addr = "127.0.0.1";
    p.job = "mpi-" + (shared.empty() ? p.master_addr + ":" + std::to_string(p.master_port) : shared);
  }
};
LHOST_LAUNCHER(Mpi, lhost::NoOptions, "mpi", "1.0.0")
