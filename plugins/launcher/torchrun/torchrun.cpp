// torchrun - torchrun (torch.distributed.run) or whoever sets the same variables has made this rank.
// Two forms: all of torchrun's, known by TORCHELASTIC_RUN_ID; and the bare four of env://, which may also be left over
// in a shell, hence the lower score and, where they are incomplete, none.
#include "../common/placed.hpp"

using namespace lhost_launcher;

namespace {

// torchrun's ranks per node; without it the manifest's, else all are on one node.
int64_t ranks_here(const Variables& v, const lh_launch_spec& spec, int64_t world) {
  if (const auto n = v.number("LOCAL_WORLD_SIZE")) return std::max<int64_t>(1, *n);
  if (spec.ranks_per_node > 0) return spec.ranks_per_node;
  return spec.num_nodes > 1 && world % spec.num_nodes == 0 ? world / spec.num_nodes : world;
}

}  // namespace

struct Torchrun : PlacedLauncher {
  static constexpr const char* summary = "torchrun, or another with its variables, has made this rank";
  using PlacedLauncher::PlacedLauncher;

  int32_t detect(const lh_launch_spec&, std::string& why) override {
    if (v_.has("TORCHELASTIC_RUN_ID") && v_.all({"RANK", "WORLD_SIZE", "LOCAL_RANK"})) {
      why = "TORCHELASTIC_RUN_ID is set";
      return 100;
    }
    if (!v_.all({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})) return 0;
    why = "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set";
    return 60;
  }

 private:
  Placed place(const lh_launch_spec& spec) const override {
    const std::string seen = v_.shown({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                                       "GROUP_WORLD_SIZE", "NODE_RANK"});
    Placed p;
    p.world_size = v_.required("WORLD_SIZE", "torchrun");
    p.rank = v_.required("RANK", "torchrun");
    if (p.world_size < 1) refuse("found " + seen + ": a world needs at least one rank");
    check_range(p.rank, p.world_size, "rank", seen);
    p.local_world_size = ranks_here(v_, spec, p.world_size);
    p.num_nodes =
        v_.number("GROUP_WORLD_SIZE").value_or(std::max<int64_t>(1, p.world_size / p.local_world_size));
    p.local_rank = v_.number("LOCAL_RANK").value_or(p.rank % p.local_world_size);
    p.node_rank =
        v_.number("GROUP_RANK").value_or(v_.number("NODE_RANK").value_or(p.rank / p.local_world_size));
    p.master_addr = v_.text("MASTER_ADDR");
    p.master_port = v_.required("MASTER_PORT", "torchrun");
    p.restart = v_.number("TORCHELASTIC_RESTART_COUNT").value_or(0);
    p.store_served = v_.text("TORCHELASTIC_USE_AGENT_STORE") == "True";  // Python's str(bool)
    if (p.master_addr.empty())
      refuse("MASTER_ADDR is not set, though RANK and WORLD_SIZE are; set it, or unset those");
    check_place(p, spec, seen);
    check_same(p.rank, p.node_rank * p.local_world_size + p.local_rank, seen,
               "RANK is not node times ranks per node plus local rank; unset what is left over from another "
               "launcher");
    // "none" is torchrun's default: no name, so where the ranks meet is the name
    const std::string id = v_.text("TORCHELASTIC_RUN_ID");
    const std::string where = p.master_addr + ":" + std::to_string(p.master_port);
    p.job = id.empty() || id == "none" ? where : "torchrun-" + id + "-" + where;
    return p;
  }
};
LHOST_LAUNCHER(Torchrun, lhost::NoOptions, "torchrun", "1.0.0")
