// host/engine/units.cpp - unit boundaries as identity autograd nodes, gradient-ready hooks, backward.
//
//   forward:   enter(u): pre_forward(u), inputs pass an ENTRY node     exit(u): outputs pass an EXIT node, post_forward(u)
//   backward:  EXIT comes first -> pre_backward(u); then the gradients of u; ENTRY last -> post_backward(u)
//
// post_backward(u) waits for u's entry nodes, its trainable parameters and the units inside it. What never comes (a
// parameter not used in this step, an output without influence on the loss) is closed when backward ends; root last.
#include "engine/run.hpp"

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace lhost::engine {
namespace {
namespace ag = torch::autograd;

// A slot of the strategy; NULL is skipped. It runs inside LibTorch, which must see std::exception only.
template <class F, class... Args>
void tell(Run& r, const char* where, F slot, Args... args) {
  if (!slot) return;
  const char* found = "not a std::exception";
  std::string kept;
  try {
    return must(slot(r.strategy, args...));
  } catch (const Failed&) {
    throw;
  } catch (const std::exception& e) {
    kept = e.what();
    found = kept.c_str();
  } catch (...) {
  }
  must(make_status(LH_PLUGIN_FAULT, "strategy", where,
                   std::string("an exception left the function: ") + found + "; expected a status"));
}

void close_backward(Run& r, uint32_t u);

void close_if_complete(Run& r, uint32_t u) {
  const Unit& unit = r.units[u];
  if (u != LH_ROOT_UNIT && unit.opened && !unit.closed && unit.waiting <= 0) close_backward(r, u);
}
void close_backward(Run& r, uint32_t u) {
  r.units[u].closed = true;
  tell(r, "post_backward", r.unit_events.post_backward, u);
  if (u == LH_ROOT_UNIT) return;
  const uint32_t around = r.units[u].parent;
  --r.units[around].waiting;
  close_if_complete(r, around);
}
void open_backward(Run& r, uint32_t u) {
  if (r.units[u].opened) return;  // several outputs, or used several times
  r.units[u].opened = true;
  tell(r, "pre_backward", r.unit_events.pre_backward, u);
}
void came(Run& r, uint32_t u) {
  --r.units[u].waiting;
  close_if_complete(r, u);
}

struct Boundary : ag::Node {
  Run& run;
  uint32_t unit;
  bool entry;
  Boundary(Run& r, uint32_t u, bool e) : run(r), unit(u), entry(e) {}

  ag::variable_list apply(ag::variable_list&& grads) override {
    entry ? came(run, unit) : open_backward(run, unit);
    return std::move(grads);
  }
};

// Put the tensors behind one Boundary node; false: none of them is part of a graph. detach() shares storage AND
// version counter, so that misuse in place is still noticed.
bool pass_through(Run& r, uint32_t u, bool entry, lh_tensor* const* io, uint64_t n) {
  std::shared_ptr<Boundary> node;
  ag::edge_list next;
  for (uint64_t i = 0; i < n; ++i) {
    at::Tensor& t = tensor(io[i]);
    if (!t.defined() || !t.requires_grad()) continue;
    if (!node) node = std::shared_ptr<Boundary>(new Boundary(r, u, entry), ag::deleteNode);
    next.push_back(ag::impl::gradient_edge(t));
    at::Tensor behind = t.detach();
    ag::impl::set_gradient_edge(behind, {node, node->add_input_metadata(behind)});
    t = std::move(behind);
  }
  if (!node) return false;
  node->set_next_edges(std::move(next));
  return true;
}

int32_t phase(const Run& r) { return r.in_backward ? LH_PHASE_RECOMPUTE : LH_PHASE_FORWARD; }
bool wants_nodes(const Run& r) { return r.unit_nodes && c10::GradMode::is_enabled(); }

lh_status enter(void* ctx, uint32_t u, lh_tensor* const* io, uint64_t n) {
  Run& r = *static_cast<Run*>(ctx);
  return guard("unit enter", [&] {
    tell(r, "pre_forward", r.unit_events.pre_forward, u, phase(r));
    if (wants_nodes(r) && pass_through(r, u, true, io, n)) ++r.units[u].waiting;
  });
}

lh_status exit(void* ctx, uint32_t u, lh_tensor* const* io, uint64_t n) {
  Run& r = *static_cast<Run*>(ctx);
  return guard("unit exit", [&] {
    // A unit whose outputs carry no gradient (a frozen one) has no backward: nobody waits for it.
    if (wants_nodes(r) && pass_through(r, u, false, io, n) && !r.units[u].used) {
      r.units[u].used = true;
      ++r.units[r.units[u].parent].waiting;
    }
    tell(r, "post_forward", r.unit_events.post_forward, u, phase(r));
  });
}

struct GradReady : ag::FunctionPostHook {
  Run& run;
  uint32_t param;
  GradReady(Run& r, uint32_t p) : run(r), param(p) {}
  ag::variable_list operator()(const ag::variable_list& outputs, const ag::variable_list&) override {
    if (run.params[param].flat != kNone) collect(run, param);
    tell(run, "grad_ready", run.grad_ready, param);
    if (run.unit_nodes) came(run, run.params[param].unit);
    return outputs;
  }
};

// Only where somebody listens, or a gradient has a place in a flat group.
void hook_gradients(Run& r) {
  const bool all = r.unit_nodes || r.grad_ready;
  for (uint32_t p = 0; p < r.params.size(); ++p) {
    Param& param = r.params[p];
    if (!param.trainable() || param.accumulator || !(all || param.flat != kNone)) continue;
    param.accumulator = ag::impl::grad_accumulator(param.tensor);
    param.accumulator->add_post_hook(std::make_unique<GradReady>(r, p));
  }
}

void forget_backward(Run& r) {
  for (Unit& unit : r.units) {
    unit.used = unit.opened = unit.closed = false;
    unit.waiting = unit.trainable;
  }
}

// Kept from step to step: the same seed costs no operation. Written in place only while nobody else has its bytes.
void set_seed(Run& r, const at::Tensor& loss, double value) {
  at::Tensor& seed = r.seed[0];
  if (!seed.defined() || seed.dtype() != loss.dtype() || seed.dim() != loss.dim())
    seed = at::full(loss.sizes(), value, loss.options().requires_grad(false));
  else if (r.seed_value != value) seed.fill_(value);
  r.seed_value = value;
}

// Whatever happens: no graph is held, units start afresh, and a seed that became part of a gradient (a parameter of
// one element may take it as its .grad) is given up.
struct Finish {
  Run& r;
  ~Finish() {
    r.in_backward = false;
    r.roots[0] = {};
    const at::Tensor& seed = r.seed[0];
    if (seed.use_count() != 1 || seed.storage().use_count() != 1) r.seed[0].reset();
    if (r.unit_nodes) forget_backward(r);
  }
};

void check_loss(const at::Tensor& loss) {
  if (loss.numel() != 1)
    refuse(LH_INVALID_ARGUMENT, "training_step returned a loss of shape " + c10::str(loss.sizes()) +
                                    "; expected one element (take the mean)");
  if (!loss.requires_grad())
    refuse(
        LH_INVALID_ARGUMENT,
        "training_step returned a loss that does not depend on any trainable parameter; compute it from the "
        "model's output without detach(), item() or NoGradGuard, and leave a parameter that requires a "
        "gradient");
}

}  // namespace

const lh_unit_calls* set_events(Run& r, const lh_unit_events& e) {
  using Units = lh_strategy_units_v0;
  r.strategy = e.self;
  r.grad_ready = e.grad_ready;
  Units& u = r.unit_events;
  u.pre_forward = LH_HAS(e.units, Units, pre_forward) ? e.units->pre_forward : nullptr;
  u.post_forward = LH_HAS(e.units, Units, post_forward) ? e.units->post_forward : nullptr;
  u.pre_backward = LH_HAS(e.units, Units, pre_backward) ? e.units->pre_backward : nullptr;
  u.post_backward = LH_HAS(e.units, Units, post_backward) ? e.units->post_backward : nullptr;
  r.unit_nodes = u.pre_backward || u.post_backward;
  hook_gradients(r);
  forget_backward(r);
  const bool listen = r.unit_nodes || u.pre_forward || u.post_forward;
  r.calls = {sizeof r.calls, 0, &r, listen ? enter : nullptr, listen ? exit : nullptr};
  return &r.calls;
}

void backward(Run& r, const at::Tensor* loss, double seed) {
  if (!loss) return settle(r);
  check_loss(*loss);
  set_seed(r, *loss, seed);
  Finish finish{r};
  r.roots[0] = ag::impl::gradient_edge(*loss);
  r.in_backward = true;
  if (r.unit_nodes) open_backward(r, LH_ROOT_UNIT);
  ag::Engine::get_default_engine().execute(r.roots, r.seed, /*keep_graph=*/false, /*create_graph=*/false,
                                           /*accumulate_grad=*/true);
  if (!r.flats.empty()) settle(r);
  if (!r.unit_nodes) return;
  for (auto u = static_cast<uint32_t>(r.units.size()); u-- > 0;)
    if (r.units[u].opened && !r.units[u].closed) close_backward(r, u);
}

}  // namespace lhost::engine
