// host/engine/fused.cpp - "lhost.fused/0": a whole optimizer step of a group in one kernel call.
#include "engine/run.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <c10/core/GradMode.h>

namespace lhost::engine {
namespace {

using Tensors = std::vector<at::Tensor>;

bool skipped(const lh_opt_group& g) { return g.found_inf && element(tensor(g.found_inf)) != 0; }

[[noreturn]] void refuse_slots(const lh_opt_group& g, const char* what) {
  refuse(LH_FAILED_PRECONDITION, std::string(what) + " (step: SCALAR, float32); the optimizer declared " +
                                     std::to_string(g.n_slots) + " slots");
}
// The step counts: numbers in memory, read and written without an operation.
const std::vector<float*>& steps_in(const lh_opt_group& g, uint32_t slot, uint32_t n_slots,
                                    const char* what) {
  if (g.n_slots < n_slots || g.slots[slot]->numbers.size() != g.params->tensors.size()) refuse_slots(g, what);
  return g.slots[slot]->numbers;
}

void sgd_call(const lh_sgd_args& a, const Tensors& params, const Tensors& grads, const Tensors& buffers,
              bool first) {
  at::_fused_sgd_(params, grads, buffers, a.weight_decay, a.momentum, a.lr, a.dampening,
                  a.flags & LH_FUSED_NESTEROV, a.flags & LH_FUSED_MAXIMIZE, first);
}

// The kernel's "first step" holds for a whole list, so that parameters which had no gradient before go separately.
void sgd_mixed(const lh_opt_group& g, const lh_sgd_args& a, const Tensors& buffers,
               const std::vector<float*>& steps) {
  for (const bool first : {true, false}) {
    Tensors p, d, b;
    for (size_t i = 0; i < steps.size(); ++i) {
      if ((*steps[i] == 0) != first) continue;
      p.push_back(g.params->tensors[i]);
      d.push_back(g.grads->tensors[i]);
      b.push_back(buffers[i]);
    }
    sgd_call(a, p, d, b, first);
  }
}

void sgd(const lh_opt_group& g, const lh_sgd_args& a) {
  const Tensors& params = g.params->tensors;
  if (params.empty() || skipped(g)) return;
  c10::AutoGradMode off(false);
  if (a.momentum == 0) return sgd_call(a, params, g.grads->tensors, {}, false);

  const auto& steps = steps_in(g, 1, 2, "momentum needs the slots momentum_buffer and step");
  const Tensors& buffers = g.slots[0]->tensors;
  size_t fresh = 0;
  for (const float* s : steps) fresh += *s == 0;
  if (fresh == 0 || fresh == steps.size()) sgd_call(a, params, g.grads->tensors, buffers, fresh != 0);
  else sgd_mixed(g, a, buffers, steps);
  for (float* s : steps) *s += 1;
}

void adam(const lh_opt_group& g, const lh_adam_args& a) {
  const Tensors& params = g.params->tensors;
  if (params.empty() || skipped(g)) return;
  const bool amsgrad = a.flags & LH_FUSED_AMSGRAD, maximize = a.flags & LH_FUSED_MAXIMIZE;
  const auto& steps =
      amsgrad ? steps_in(g, 2, 4, "amsgrad needs the slots exp_avg, exp_avg_sq, step, max_exp_avg_sq")
              : steps_in(g, 2, 3, "adam needs the slots exp_avg, exp_avg_sq, step");
  c10::AutoGradMode off(false);
  const Tensors none;
  for (float* s : steps) *s += 1;
  auto* call = a.flags & LH_FUSED_DECOUPLED ? &at::_ops::_fused_adamw_::call : &at::_ops::_fused_adam_::call;
  call(params, g.grads->tensors, g.slots[0]->tensors, g.slots[1]->tensors,
       amsgrad ? g.slots[3]->tensors : none, g.slots[2]->tensors, a.lr, a.beta1, a.beta2, a.weight_decay,
       a.eps, amsgrad, maximize, {}, {});
}

}  // namespace

const lh_fused_v0 fused_table = {
    sizeof(lh_fused_v0),
    0,
    [](const lh_opt_group* g, const lh_sgd_args* a) { return guard("fused.sgd", [&] { sgd(*g, *a); }); },
    [](const lh_opt_group* g, const lh_adam_args* a) { return guard("fused.adam", [&] { adam(*g, *a); }); },
};

}  // namespace lhost::engine
