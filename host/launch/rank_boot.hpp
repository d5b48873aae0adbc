// host/launch/rank_boot.hpp - what a rank finds when it starts: who it is, its page, the socket on which rank 0 meets
// the others, and the request. The same whether the process was executed (variables and descriptors) or forked.
#pragma once
#include "launch/rank_env.hpp"
#include "launch/rank_page.hpp"

#include <optional>
#include <string>

namespace lhost {

struct RankBoot {
  RankEnv env;
  RankPages pages = RankPages::alone();  // at(0) is this rank's
  int listen_fd = -1;   // rank 0 of the run: bound and listening at env.master_port; whoever takes
                        // it closes it
  std::string request;  // as it was given to the supervisor
};

// Called by a program at its very start; nothing if no supervisor started it. If the supervisor is already gone the
// process ends. Programs that the rank starts are no ranks: the mark is removed from the environment. [main]
std::optional<RankBoot> boot_rank();

// The mark, for the supervisor: "LHOST_SUPERVISOR=..."
std::string rank_mark(int64_t supervisor, int pages_fd, int request_fd, int listen_fd);

}  // namespace lhost
