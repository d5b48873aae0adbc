// host/engine/engine.cpp - the entry table, the start of a run, and how errors leave the engine.
#include "engine/run.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <new>

LH_PLUGIN_NOTE("lhost-engine", LHOST_VERSION, "", "engine/0:libtorch", TORCH_VERSION);

namespace lhost::engine {
namespace {
const lh_host* the_host = nullptr;

// LibTorch's own allocator reports a lack of memory as a plain error.
lh_code code_of(const c10::Error& e, std::string_view message) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&e)) return LH_RESOURCE_EXHAUSTED;
  if (message.find("can't allocate memory") != std::string_view::npos) return LH_RESOURCE_EXHAUSTED;
  if (dynamic_cast<const c10::NotImplementedError*>(&e)) return LH_UNIMPLEMENTED;
  return LH_INTERNAL;
}
}  // namespace

void set_host(const lh_host* h) { the_host = h; }

lh_status make_status(lh_code code, std::string_view component, std::string_view where,
                      std::string_view message) {
  return the_host->error_new(the_host, code, text(component), text(where), text(message));
}

lh_status status_of_exception(const char* where) {
  constexpr std::string_view self = "engine";
  try {
    throw;
  } catch (const Failed& e) {
    return e.status;
  } catch (const Refusal& e) {
    return make_status(e.code, self, where, e.what());
  } catch (const c10::Error& e) {
    std::string message = e.what_without_backtrace();
    message.resize(std::min(message.size(), message.find("\nframe #")));  // an allocator's has its own
    return make_status(code_of(e, message), self, where, message);
  } catch (const std::bad_alloc&) {
    return make_status(LH_RESOURCE_EXHAUSTED, self, where, "out of memory");
  } catch (const std::exception& e) {
    return make_status(LH_INTERNAL, self, where, e.what());
  } catch (...) {
    return make_status(LH_UNKNOWN, self, where, "an exception that is not a std::exception");
  }
}

namespace {

const void* get_service(lh_str id) {
  const std::string_view name = view(id);
  if (name == LH_TENSOR_SERVICE) return &tensor_table;
  if (name == LH_TENSOR_OPS_SERVICE) return &tensor_ops_table;
  if (name == LH_PARAMS_SERVICE) return &params_table;
  if (name == LH_FUSED_SERVICE) return &fused_table;
  return nullptr;
}

// The flag belongs to a thread. A loop inside LibTorch reaches its workers; at::parallel_for, compiled here without
// OpenMP, would be serial.
void set_flush_denormal(bool on, int threads) {
  at::globalContext().setFlushDenormal(on);
  const at::Tensor one_each = at::empty({threads});
  at::TensorIterator::borrowing_nullary_op(one_each).for_each(
      [on](char**, const int64_t*, int64_t, int64_t) { at::globalContext().setFlushDenormal(on); },
      /*grain_size=*/1);
}

lh_status run_new(const lh_host* host, lh_run* run, const lh_engine_config* config) {
  set_host(host);
  return guard("run_new", [&] {
    if (config->threads < 1)
      refuse(LH_INVALID_ARGUMENT,
             "found " + std::to_string(config->threads) + " threads, expected at least 1");
    at::set_num_threads(config->threads);
    set_flush_denormal(config->flush_denormal != 0, config->threads);
    at::manual_seed(config->seed);
    run->engine = new Run;
  });
}

const lh_engine_v0 table = {
    sizeof(lh_engine_v0),
    0,
    LH_STR("libtorch"),
    LH_STR(TORCH_VERSION),
    get_service,
    run_new,
    [](lh_run*, uint64_t seed) { return guard("seed", [&] { at::manual_seed(seed); }); },
    [](lh_run* run) {
      delete run->engine;
      run->engine = nullptr;
    },
    [](lh_run* run, const lh_model_v0* v, lh_model* m, const lh_policy* policy) {
      return guard("adopt_model", [&] { adopt(state(run), *v, m, policy); });
    },
    [](lh_run* run, const lh_plan_v0** out) {
      *out = &plan_table;
      return reinterpret_cast<lh_plan*>(run);
    },
    [](lh_run* run) { return guard("layout", [&] { layout(state(run)); }); },
    [](lh_run* run, const lh_unit_events* events, const lh_unit_calls** out) {
      return guard("set_events", [&] { *out = set_events(state(run), *events); });
    },
    [](lh_run* run, const lh_group_spec* groups, uint64_t n, const lh_slot* slots, uint64_t n_slots) {
      return guard("optimizer_groups", [&] { make_groups(state(run), groups, n, slots, n_slots); });
    },
    [](lh_run* run, lh_tensor* loss, double seed) {
      return guard("backward", [&] { backward(state(run), loss ? &tensor(loss) : nullptr, seed); });
    },
    [](lh_run* run, double factor) { return guard("scale_grads", [&] { scale_grads(state(run), factor); }); },
    [](lh_run* run, lh_tensor** out) {
      return guard("grad_square_sum", [&] { *out = handle(grad_square_sum(state(run))); });
    },
    [](lh_run* run, lh_tensor* square_sum, double max_norm) {
      return guard("clip_norm", [&] { clip_norm(state(run), tensor(square_sum), max_norm); });
    },
    [](lh_run* run, double max_value) {
      return guard("clip_value", [&] { clip_value(state(run), max_value); });
    },
    [](lh_run* run, const lh_opt_group** out, uint64_t* n) {
      return guard("gradient_groups", [&] {
        Run& r = state(run);
        gradient_groups(r);
        *out = r.lent_groups.data();
        *n = r.lent_groups.size();
      });
    },
    [](lh_run* run) { return guard("drop_grads", [&] { drop_grads(state(run)); }); },
    [](lh_run*, lh_bool on) -> lh_status {
      c10::GradMode::set_enabled(!on);
      return nullptr;
    },
    [](lh_tensor* t, double* out, lh_bool* ready) {
      return guard("scalar", [&] { *ready = scalar(tensor(t), out); });
    },
    [](lh_tensor* t, lh_tensor** out) {
      return guard("to_host", [&] { *out = handle(*new at::Tensor(to_host(tensor(t)))); });
    },
    [](lh_tensor* dst, const lh_view* src) { return guard("assign", [&] { assign(tensor(dst), *src); }); },
    [](lh_run* run, uint32_t param, uint32_t slot) -> lh_tensor* {
      const Run& r = state(run);
      if (param >= r.params.size() || slot >= r.params[param].slots.size()) return nullptr;
      return r.params[param].slots[slot];
    },
    [](lh_run*, lh_tensor** out) {
      return guard("rng_save", [&] { *out = handle(*new at::Tensor(rng_save())); });
    },
    [](lh_run*, const lh_view* src) { return guard("rng_load", [&] { rng_load(*src); }); },
};

}  // namespace
}  // namespace lhost::engine

extern "C" LH_EXPORT const lh_engine_v0* lh_engine_entry_v0() { return &lhost::engine::table; }
