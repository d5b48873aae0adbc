/* host/engine/engine.h - the private table between the loop and an engine. C, no LibTorch.
 *
 * Not part of the plugin API: host and engine are built together. Two engines implement it: liblhost_engine.so on
 * LibTorch, and the mock engine of the tests. Plugins see the public services, which an engine offers through
 * get_service: tensor, tensor_ops, params, fused. All calls [main] or [train]. */
#ifndef LHOST_ENGINE_H
#define LHOST_ENGINE_H
#include <lhost/model.h>
#include <lhost/optimizer.h>
#include <lhost/precision.h>
#include <lhost/strategy.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What stands behind the opaque lh_run of the plugin API: each side finds its own half. */
struct lh_run {
  struct lh_host_run *host;     /* owned by host/train */
  struct lh_engine_run *engine; /* made by run_new, freed by run_free */
};

typedef struct lh_engine_config {
  uint32_t size;
  int32_t threads; /* for one operation; at least 1 */
  uint64_t seed;
  lh_bool flush_denormal;
  uint32_t rsvd0;
} lh_engine_config;

/* What the strategy asked to hear; NULL entries are never called and install no autograd hook. */
typedef struct lh_unit_events {
  lh_strategy *self;
  lh_status (*grad_ready)(lh_strategy *, uint32_t);
  const lh_strategy_units_v0 *units; /* may be NULL */
} lh_unit_events;

typedef struct lh_group_spec { /* a parameter group to make */
  lh_str name;
  const uint32_t *params; /* indices of trainable parameters */
  uint64_t n_params;
  const double *hyper; /* lives as long as the run: read at every step */
} lh_group_spec;

typedef struct lh_engine_v0 {
  uint32_t size, rsvd0;
  lh_str name, version; /* "libtorch", "2.11.0" */
  const void *(*get_service)(lh_str id);
  /* Fills run->engine; sets threads and denormals, seeds the default generator. */
  lh_status (*run_new)(const lh_host *, lh_run *, const lh_engine_config *);
  lh_status (*seed)(lh_run *, uint64_t); /* the default generator, anew */
  void (*run_free)(lh_run *);            /* after every component that holds tensors is gone */

  /* --- assembly, in this order */
  lh_status (*adopt_model)(lh_run *, const lh_model_v0 *, lh_model *, const lh_policy *);
  lh_plan *(*plan)(lh_run *, const lh_plan_v0 **out);
  lh_status (*layout)(lh_run *); /* storages for the plan; parameters are re-pointed into them */
  lh_status (*set_events)(lh_run *, const lh_unit_events *,
                          const lh_unit_calls **out); /* out lives as the run */
  /* Parameters in no group are not optimised. Slots are allocated here, as zeros. */
  lh_status (*optimizer_groups)(lh_run *, const lh_group_spec *, uint64_t n, const lh_slot *,
                                uint64_t n_slots);

  /* --- the step */
  /* Adds to the gradients; afterwards those of flat groups that nothing arrived for are zeros. loss NULL: this
   * micro-batch has none, only the latter. */
  lh_status (*backward)(lh_run *, lh_tensor *loss, double seed);
  lh_status (*scale_grads)(lh_run *, double factor);
  /* Sum of squares of all gradients as one float64 on the device; borrowed until the next call. */
  lh_status (*grad_square_sum)(lh_run *, lh_tensor **out);
  /* Scales the gradients by min(1, max_norm / (norm + 1e-6)): torch.nn.utils.clip_grad_norm_. */
  lh_status (*clip_norm)(lh_run *, lh_tensor *square_sum, double max_norm);
  lh_status (*clip_value)(lh_run *, double max_value); /* torch.nn.utils.clip_grad_value_ */
  /* The groups with what has a gradient now; borrowed until drop_grads. */
  lh_status (*gradient_groups)(lh_run *, const lh_opt_group **out, uint64_t *n);
  lh_status (*drop_grads)(lh_run *);            /* also of a window that makes no step */
  lh_status (*inference)(lh_run *, lh_bool on); /* no graph is recorded while on */

  /* --- values */
  /* One element as a double. ready 0: it lives on a device and was not read; keep a handle, read it later. */
  lh_status (*scalar)(lh_tensor *, double *out, lh_bool *ready);
  /* A contiguous tensor in host memory with the same values: itself if it is that already. Owned handle. */
  lh_status (*to_host)(lh_tensor *, lh_tensor **out);
  /* dst's values from memory, cast to its dtype; shapes must agree. */
  lh_status (*assign)(lh_tensor *dst, const lh_view *src);
  /* A slot of a parameter's optimizer state; NULL = it has none (not optimised). Borrowed for the run. */
  lh_tensor *(*slot)(lh_run *, uint32_t param, uint32_t slot);
  lh_status (*rng_save)(lh_run *, lh_tensor **out); /* bytes, as torch.get_rng_state(); owned handle */
  lh_status (*rng_load)(lh_run *, const lh_view *);
} lh_engine_v0;

#define LH_ENGINE_ENTRY "lh_engine_entry_v0"
typedef const lh_engine_v0 *(*lh_engine_entry)(void);

#ifdef __cplusplus
}
#endif
#endif
