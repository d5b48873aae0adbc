// ddp_spawn - ddp whose ranks are forks of the process that was started, after it has loaded everything once.
#include "../common/data_parallel.hpp"

struct DdpSpawn : ddp::DataParallel {
  static constexpr const char* summary = "ddp on ranks that are forks of one process";
  static constexpr const char* defaults[] = {"launcher.use = \"spawn\""};
  using DataParallel::DataParallel;
};
LHOST_STRATEGY(DdpSpawn, ddp::Options, "ddp_spawn", "1.0.0")
