// adam - torch.optim.Adam (Kingma and Ba 2015); weight_decay is an L2 penalty.
#include "../common/adam.hpp"

using Options = lhost::AdamOptions<false>;
using Adam = lhost::AdamRule<false>;
LHOST_OPTIMIZER(Adam, Options, "adam", "1.0.0", LH_OPT_ELEMENT_WISE)
