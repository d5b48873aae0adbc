// adamw - torch.optim.AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019).
#include "../common/adam.hpp"

using Options = lhost::AdamOptions<true>;
using AdamW = lhost::AdamRule<true>;
LHOST_OPTIMIZER(AdamW, Options, "adamw", "1.0.0", LH_OPT_ELEMENT_WISE)
