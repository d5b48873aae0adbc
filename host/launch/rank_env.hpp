// host/launch/rank_env.hpp - who a rank is (lh_env), as a value that owns its texts, and as environment variables.
#pragma once
#include <lhost/step.h>

#include <string>
#include <vector>

namespace lhost {

struct RankEnv {
  int64_t world_size = 1, rank = 0, local_world_size = 1, local_rank = 0, num_nodes = 1, node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int64_t master_port = 0;
  std::string job;
  int64_t restart = 0;

  RankEnv() = default;
  explicit RankEnv(const lh_env&);
  lh_env table() const;  // borrows the texts

  // RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT as other trainers have them;
  // LHOST_NUM_NODES, LHOST_JOB and LHOST_RESTART for the rest.
  std::vector<std::string> variables() const;
  static RankEnv from_variables();  // what variables() gave; a Failure names what is missing or no number
};

}  // namespace lhost
