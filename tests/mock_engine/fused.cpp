// tests/mock_engine/fused.cpp - "lhost.fused/0": the formulas of torch.optim.SGD, Adam and AdamW in plain
// loops.
#include "run.hpp"

#include <cmath>

namespace mock {
namespace {

bool skipped(const lh_opt_group& g) { return g.found_inf && tensor(g.found_inf).get(0) != 0; }

void need_slots(const lh_opt_group& g, uint32_t n, const char* names) {
  if (g.n_slots < n)
    throw std::invalid_argument("found " + std::to_string(g.n_slots) + " slots, expected " +
                                std::to_string(n) + ": " + names);
}

void sgd(const lh_opt_group& g, const lh_sgd_args& a) {
  if (skipped(g)) return;
  if (a.momentum != 0) need_slots(g, 2, "momentum_buffer, step");
  for (size_t k = 0; k < g.params->tensors.size(); ++k) {
    const Tensor &p = g.params->tensors[k], &grad = g.grads->tensors[k];
    bool first = false;
    if (a.momentum != 0) {
      const Tensor& step = g.slots[1]->tensors[k];
      first = step.get(0) == 0;
      step.set(0, step.get(0) + 1);
    }
    for (int64_t i = 0; i < p.numel(); ++i) {
      double d = a.flags & LH_FUSED_MAXIMIZE ? -grad.get(i) : grad.get(i);
      d += a.weight_decay * p.get(i);
      if (a.momentum != 0) {
        const Tensor& buffer = g.slots[0]->tensors[k];
        const double b = first ? d : a.momentum * buffer.get(i) + (1 - a.dampening) * d;
        buffer.set(i, b);
        d = a.flags & LH_FUSED_NESTEROV ? d + a.momentum * b : b;
      }
      p.set(i, p.get(i) - a.lr * d);
    }
  }
}

void adam(const lh_opt_group& g, const lh_adam_args& a) {
  if (skipped(g)) return;
  const bool amsgrad = a.flags & LH_FUSED_AMSGRAD;
  need_slots(g, amsgrad ? 4 : 3, "exp_avg, exp_avg_sq, step, with amsgrad max_exp_avg_sq");
  for (size_t k = 0; k < g.params->tensors.size(); ++k) {
    const Tensor &p = g.params->tensors[k], &grad = g.grads->tensors[k];
    const Tensor &m = g.slots[0]->tensors[k], &v = g.slots[1]->tensors[k], &step = g.slots[2]->tensors[k];
    step.set(0, step.get(0) + 1);
    const double correction1 = 1 - std::pow(a.beta1, step.get(0)),
                 correction2 = 1 - std::pow(a.beta2, step.get(0));
    for (int64_t i = 0; i < p.numel(); ++i) {
      double d = a.flags & LH_FUSED_MAXIMIZE ? -grad.get(i) : grad.get(i);
      double x = p.get(i);
      if (a.flags & LH_FUSED_DECOUPLED) x -= a.lr * a.weight_decay * x;
      else d += a.weight_decay * x;
      m.set(i, m.get(i) + (1 - a.beta1) * (d - m.get(i)));
      v.set(i, a.beta2 * v.get(i) + (1 - a.beta2) * d * d);
      double second = v.get(i);
      if (amsgrad) {
        const Tensor& greatest = g.slots[3]->tensors[k];
        greatest.set(i, std::fmax(greatest.get(i), second));
        second = greatest.get(i);
      }
      p.set(i, x - a.lr / correction1 * m.get(i) / (std::sqrt(second) / std::sqrt(correction2) + a.eps));
    }
  }
}

}  // namespace

const lh_fused_v0 fused_table = {
    sizeof(lh_fused_v0),
    0,
    [](const lh_opt_group* g, const lh_sgd_args* a) { return guard("fused.sgd", [&] { sgd(*g, *a); }); },
    [](const lh_opt_group* g, const lh_adam_args* a) { return guard("fused.adam", [&] { adam(*g, *a); }); },
};

}  // namespace mock
