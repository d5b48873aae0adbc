// tests/mock_engine/units.cpp - unit boundaries, gradient-ready events, backward.
//
// As in the LibTorch engine: a unit's inputs pass an entry, its results an exit. Backward meets the exits
// first (pre_backward), then gradients become ready, then the entries; post_backward when all are in.
#include "run.hpp"

namespace mock {
namespace {

template <class F>
bool wanted(const lh_engine_run& r, F lh_strategy_units_v0::*slot) {
  const lh_strategy_units_v0* u = r.events.units;
  if (!u) return false;
  const auto end = reinterpret_cast<const char*>(&(u->*slot) + 1) - reinterpret_cast<const char*>(u);
  return u->size >= static_cast<uint64_t>(end) && u->*slot;
}
bool backward_events(const lh_engine_run& r) {
  return wanted(r, &lh_strategy_units_v0::pre_backward) || wanted(r, &lh_strategy_units_v0::post_backward);
}

void open_backward(lh_engine_run& r, uint32_t u) {
  if (std::exchange(r.units[u].opened, true)) return;  // several results, or used several times
  if (wanted(r, &lh_strategy_units_v0::pre_backward)) must(r.events.units->pre_backward(r.events.self, u));
}
void close_backward(lh_engine_run& r, uint32_t u) {
  if (std::exchange(r.units[u].closed, true)) return;
  if (wanted(r, &lh_strategy_units_v0::post_backward)) must(r.events.units->post_backward(r.events.self, u));
}
void close_if_complete(lh_engine_run& r, uint32_t u) {
  const Unit& unit = r.units[u];
  if (u != LH_ROOT_UNIT && unit.opened && unit.entries == 0 && unit.ready == unit.trainable)
    close_backward(r, u);
}

// One input of a unit in one forward; a graph that is dropped without backward takes it out of the count.
class Entry {
 public:
  explicit Entry(Unit& u) : unit_(u) { ++unit_.entries; }
  ~Entry() { done(); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  void done() {
    if (!std::exchange(done_, true)) --unit_.entries;
  }

 private:
  Unit& unit_;
  bool done_ = false;
};

// Replaces the tensors in place by ones on the same bytes that tell when backward reaches them.
void pass_through(lh_engine_run& r, lh_tensor* const* io, uint64_t n,
                  const std::function<std::function<void()>()>& make) {
  for (uint64_t i = 0; i < n; ++i) {
    Tensor& t = tensor(io[i]);
    if (!t.defined() || !t.requires_grad() || r.inference) continue;
    Tensor behind = t.view(0, t.shape());
    behind.set_requires_grad(true);
    behind.on_reached() = [here = make(), before = t] {
      here();
      before.reached();
    };
    t = behind;
  }
}

lh_status enter(void* ctx, uint32_t u, lh_tensor* const* io, uint64_t n) {
  auto& r = *static_cast<lh_engine_run*>(ctx);
  return guard("unit.enter", [&] {
    if (u >= r.units.size()) throw std::out_of_range("there is no unit " + std::to_string(u));
    if (wanted(r, &lh_strategy_units_v0::pre_forward))
      must(r.events.units->pre_forward(r.events.self, u, LH_PHASE_FORWARD));
    if (!backward_events(r)) return;
    pass_through(r, io, n, [&r, u]() -> std::function<void()> {
      return [&r, u, entry = std::make_shared<Entry>(r.units[u])] {
        entry->done();
        close_if_complete(r, u);
      };
    });
  });
}
lh_status exit(void* ctx, uint32_t u, lh_tensor* const* io, uint64_t n) {
  auto& r = *static_cast<lh_engine_run*>(ctx);
  return guard("unit.exit", [&] {
    if (u >= r.units.size()) throw std::out_of_range("there is no unit " + std::to_string(u));
    if (backward_events(r))
      pass_through(r, io, n, [&r, u]() -> std::function<void()> { return [&r, u] { open_backward(r, u); }; });
    if (wanted(r, &lh_strategy_units_v0::post_forward))
      must(r.events.units->post_forward(r.events.self, u, LH_PHASE_FORWARD));
  });
}

void gradient_is_in(lh_engine_run& r, uint32_t p) {
  if (r.events.grad_ready) must(r.events.grad_ready(r.events.self, p));
  const uint32_t u = r.params[p].unit;
  ++r.units[u].ready;
  close_if_complete(r, u);
}

}  // namespace

void set_events(lh_engine_run& r, const lh_unit_events& e) {
  r.events = e;
  const bool backward_wanted = backward_events(r);
  if (e.grad_ready || backward_wanted)
    for (uint32_t p = 0; p < r.params.size(); ++p)
      if (trainable(r.params[p])) r.params[p].tensor.on_grad() = [&r, p] { gradient_is_in(r, p); };
  const bool listen = backward_wanted || wanted(r, &lh_strategy_units_v0::pre_forward) ||
                      wanted(r, &lh_strategy_units_v0::post_forward);
  r.calls = {sizeof r.calls, 0, &r, listen ? enter : nullptr, listen ? exit : nullptr};
}

void backward(lh_engine_run& r, const Tensor* given, double seed) {
  if (!given) return;  // flat gradients are zeros until something is added
  const Tensor& loss = *given;
  if (loss.numel() != 1)
    throw std::invalid_argument("the loss has " + std::to_string(loss.numel()) +
                                " elements, expected one; return its mean");
  if (!loss.backward())
    throw std::invalid_argument("the loss depends on no parameter, or backward has been through it already");
  const auto graph = std::exchange(loss.backward(), nullptr);
  struct Reset {
    std::vector<Unit>& units;
    ~Reset() {
      for (Unit& u : units) {
        u.opened = u.closed = false;
        u.ready = 0;
      }
    }
  } reset{r.units};
  open_backward(r, LH_ROOT_UNIT);
  graph(seed);
  for (auto u = static_cast<uint32_t>(r.units.size()); u-- > 0;)
    if (r.units[u].opened) close_backward(r, u);
}

}  // namespace mock
