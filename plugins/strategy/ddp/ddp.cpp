// ddp - see data_parallel.hpp. The launcher is the usual one: `exec` on one machine.
#include "../common/data_parallel.hpp"

LHOST_STRATEGY(ddp::DataParallel, ddp::Options, "ddp", "1.0.0")
