// placed.hpp - what the launchers share whose ranks somebody else has made: a place in the world, read from variables
// and checked against itself and against the manifest. Nothing here starts or asks anything.
#pragma once
#include "variables.hpp"

#include <algorithm>

namespace lhost_launcher {

struct Placed {
  int64_t world_size = 1, rank = 0, local_world_size = 1, local_rank = 0, num_nodes = 1, node_rank = 0;
  std::string master_addr;
  int64_t master_port = 0;
  std::string job;
  int64_t restart = 0;
  bool store_served = false;
};

// seen: the variables with their values, for messages.
inline void check_range(int64_t v, int64_t count, const char* what, const std::string& seen) {
  if (v < 0 || v >= count)
    refuse("found " + seen + ": " + what + " " + std::to_string(v) + " is not one of 0 to " +
           std::to_string(count - 1) + "; start the program with variables of one launcher only");
}

// The same number under two names. `way_out` completes the sentence.
inline void check_same(int64_t a, int64_t b, const std::string& seen, const std::string& way_out) {
  if (a != b)
    refuse("found " + seen + ", which contradict each other (" + std::to_string(a) + " against " +
           std::to_string(b) + "); " + way_out);
}

// The whole place, and what the manifest wants. num_nodes = 1 is the manifest's default: it says nothing.
inline void check_place(const Placed& p, const lh_launch_spec& spec, const std::string& seen) {
  if (p.world_size < 1) refuse("found " + seen + ": a world needs at least one rank");
  check_range(p.rank, p.world_size, "rank", seen);
  check_range(p.local_rank, p.local_world_size, "local rank", seen);
  check_range(p.node_rank, p.num_nodes, "node", seen);
  if (p.num_nodes * p.local_world_size != p.world_size)
    refuse("found " + seen + ": " + std::to_string(p.num_nodes) + " node(s) with " +
           std::to_string(p.local_world_size) + " rank(s) each are not " + std::to_string(p.world_size) +
           " ranks; start equally many on every node");
  if (spec.ranks_per_node != 0 && spec.ranks_per_node != p.local_world_size)
    refuse("found trainer.devices = " + std::to_string(spec.ranks_per_node) + ", but " +
           std::to_string(p.local_world_size) + " rank(s) on this node (" + seen +
           "); leave trainer.devices out, or start as many ranks as devices");
  if (spec.num_nodes > 1 && spec.num_nodes != p.num_nodes)
    refuse("found trainer.num_nodes = " + std::to_string(spec.num_nodes) + ", but " +
           std::to_string(p.num_nodes) + " node(s) (" + seen +
           "); leave trainer.num_nodes out, or start the ranks on as many nodes");
  if (p.world_size > 1) check_port(p.master_port, "MASTER_PORT");
}

// Ranks counted node by node (0 1 | 2 3) or in turns (0 2 | 1 3); anything else is not a place that can be named.
inline int64_t node_of(int64_t rank, int64_t local_rank, int64_t local_world_size, int64_t num_nodes,
                       const std::string& seen) {
  if (rank % local_world_size == local_rank) return rank / local_world_size;
  if (rank / num_nodes == local_rank) return rank % num_nodes;
  refuse("found " + seen +
         ", from which the node does not follow; place ranks node by node (mpirun --map-by slot)");
}

// 15000..34999: below the ports that the system gives away by itself.
inline int64_t port_from_text(const std::string& shared) {
  uint64_t h = 14695981039346656037ULL;  // FNV-1a: the same on every machine
  for (unsigned char c : shared) h = (h ^ c) * 1099511628211ULL;
  return 15000 + static_cast<int64_t>(h % 20000);
}

// A launcher of this sort: a subclass says what it sees (detect) and where it is (place).
class PlacedLauncher : public lhost::Launcher {
 public:
  explicit PlacedLauncher(Variables v = Variables()) : v_(std::move(v)) {}

  void env(const lh_launch_spec& spec, lh_env& out) override {
    place_ = place(spec);
    const uint32_t size = out.size;
    out = {};
    out.size = size;
    out.world_size = place_.world_size;
    out.rank = place_.rank;
    out.local_world_size = place_.local_world_size;
    out.local_rank = place_.local_rank;
    out.num_nodes = place_.num_nodes;
    out.node_rank = place_.node_rank;
    out.master_addr = lhost::str(place_.master_addr);
    out.master_port = place_.master_port;
    out.job = lhost::str(place_.job);
    out.restart = place_.restart;
    out.store_served = place_.store_served ? 1 : 0;
  }

 protected:
  virtual Placed place(const lh_launch_spec&) const = 0;
  const Variables v_;

 private:
  Placed place_;
};

}  // namespace lhost_launcher
