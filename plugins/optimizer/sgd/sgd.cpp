// sgd - torch.optim.SGD: momentum, Nesterov, L2 penalty; one fused kernel call a step.
#include <lhost/sdk/optimizer.hpp>

namespace {

struct Options {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::lr, "lr", "learning rate").min(0.0).hyper();
    d(&Options::momentum, "momentum", "share of the last step that goes into the next").min(0.0).hyper();
    d(&Options::dampening, "dampening", "share of the gradient kept out of the momentum").hyper();
    d(&Options::weight_decay, "weight_decay", "L2 penalty").min(0.0).hyper();
    d(&Options::nesterov, "nesterov", "look ahead along the momentum");
    d(&Options::maximize, "maximize", "climb instead of descend");
  }
};

struct Sgd : lhost::Optimizer {
  static constexpr const char* summary = "torch.optim.SGD: momentum, Nesterov, L2 penalty";
  explicit Sgd(const Options& o) : momentum(o.momentum) {
    if (o.nesterov) flags |= LH_FUSED_NESTEROV;
    if (o.maximize) flags |= LH_FUSED_MAXIMIZE;
    if (o.nesterov && (o.momentum <= 0 || o.dampening != 0))
      throw lhost::Error(LH_INVALID_ARGUMENT,
                         "found nesterov = true with momentum = " + lhost::detail::literal(o.momentum) +
                             " and dampening = " + lhost::detail::literal(o.dampening) +
                             "; it needs momentum > 0 and dampening = 0");
  }
  std::vector<lh_slot> slots() override {
    if (momentum == 0) return {};
    return {like_param("momentum_buffer"), scalar("step")};
  }
  void step(const lh_opt_group& group) override {
    const double* h = group.hyper;
    const lh_sgd_args args = {sizeof args, flags, h[0], h[1], h[2], h[3]};
    if (args.momentum != 0 && group.n_slots == 0)
      throw lhost::Error(LH_INVALID_ARGUMENT,
                         "group \"" + std::string(lhost::view(group.name)) +
                             "\" has momentum, but optimizer.momentum is 0 and so no memory "
                             "for it exists; set optimizer.momentum, and 0 in the other groups");
    lhost::check(fused().sgd(&group, &args));
  }
  const double momentum;
  uint32_t flags = 0;
};

}  // namespace
LHOST_OPTIMIZER(Sgd, Options, "sgd", "1.0.0", LH_OPT_ELEMENT_WISE)
