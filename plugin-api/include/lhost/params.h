/* lhost/params.h - what the model is made of, and the strategy's layout of it. Draft. */
#ifndef LHOST_PARAMS_H
#define LHOST_PARAMS_H
#include "tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  LH_P_TRAINABLE = 1,
  LH_P_BUFFER = 2, /* saved, not trained: running means */
  LH_P_ALIAS = 4   /* a second name of parameter `alias_of` (tied weights) */
};
typedef struct lh_param_info {
  uint32_t size, index, unit, flags; /* LH_P_* */
  lh_str name;                       /* as in Python's state_dict: "net.0.weight" */
  lh_dtype dtype;
  int32_t ndim;
  const int64_t *shape;
  int64_t numel;
  uint32_t alias_of, rsvd0;
} lh_param_info;

#define LH_ROOT_UNIT 0u /* unit 0 always exists: every parameter in no other unit */
typedef struct lh_unit_info {
  uint32_t size, index, parent, rsvd0;
  lh_str name; /* module path; "" = the root */
  const uint32_t *params;
  uint64_t n_params;
} lh_unit_info;

struct lh_placement { /* a flat piece of a flattened whole */
  uint32_t size, rsvd0;
  int64_t offset, length; /* in elements */
  const int64_t *global_shape;
  uint32_t ndim, rsvd1;
};

enum {
  LH_FULL_PERSISTENT = 1,
  LH_FULL_TRANSIENT = 2, /* full values: always there / allocated and freed by the strategy */
  LH_SHARD_ALIAS = 4,
  LH_SHARD_SEPARATE = 8, /* the optimised piece: part of full, or its own memory */
  LH_FULL_LOOSE =
      16, /* parameters stay where they are: only gradients share a buffer. No shard; may be regrouped */
  LH_GRAD_FLAT = 32,
  LH_GRAD_TRANSIENT = 64 /* .grad are views of one flat buffer */
};
/* A flat group: parameters in one 1-D buffer. Each starts at 64 bytes, and so does each shard: else vectorised
 * kernels round differently from loose parameters. With LH_GRAD_FLAT each parameter has a gradient in every window,
 * zeros after backward if nothing arrived: the optimizer decays it, unless grad_absent says that no rank used it. */
typedef struct lh_flat_args {
  uint32_t size, layout; /* LH_FULL_* | LH_SHARD_* | LH_GRAD_* */
  const uint32_t *params;
  uint64_t n_params;
  int64_t pad_multiple;
  int64_t shard_count, shard_index; /* [lo, hi) = equal cut of the padded length */
  int64_t
      tail; /* further elements behind the gradients in full_grad: the strategy's own, never touched by the host */
} lh_flat_args;
typedef struct lh_flat_info {
  uint32_t size, layout;
  int64_t numel, padded, lo, hi; /* in elements */
} lh_flat_info;

typedef struct lh_plan lh_plan;
typedef struct lh_plan_v0 { /* valid inside strategy.plan() only; [main] */
  uint32_t size, rsvd0;
  lh_status (*flat)(lh_plan *, const lh_flat_args *, uint32_t *out_group) LH_NX;
} lh_plan_v0;

#define LH_PARAMS_SERVICE "lhost.params/0"
typedef struct lh_params_v0 { /* handles are borrowed and stay valid for the run; [train] or [backward] */
  uint32_t size, rsvd0;
  uint32_t (*count)(lh_run *) LH_NX; /* parameters, aliases and buffers, in the order of the state_dict */
  lh_status (*info)(lh_run *, uint32_t p, lh_param_info *out) LH_NX;
  uint32_t (*unit_count)(lh_run *) LH_NX;
  lh_status (*unit_info)(lh_run *, uint32_t u, lh_unit_info *out) LH_NX;
  lh_tensor *(*tensor)(lh_run *, uint32_t p)LH_NX;
  uint32_t (*group_count)(lh_run *) LH_NX;
  lh_status (*flat_info)(lh_run *, uint32_t g, lh_flat_info *out) LH_NX;
  lh_tensor *(*full)(lh_run *, uint32_t g)LH_NX; /* padded 1-D; same storage as the parameters */
  lh_tensor *(*full_grad)(lh_run *, uint32_t g)LH_NX;
  lh_tensor *(*shard)(lh_run *, uint32_t g)LH_NX;      /* what the optimizer owns */
  lh_tensor *(*shard_grad)(lh_run *, uint32_t g)LH_NX; /* what the optimizer reads */
  lh_status (*full_alloc)(lh_run *, uint32_t g)
      LH_NX; /* same storage object, new bytes: saved views stay valid */
  lh_status (*full_free)(lh_run *, uint32_t g) LH_NX;
  lh_status (*grad_alloc)(lh_run *, uint32_t g) LH_NX; /* zeroed; .grad of the members point into it */
  lh_status (*grad_free)(lh_run *, uint32_t g) LH_NX;
  /* Other groups in place of all LH_FULL_LOOSE ones, of the same parameters together; numbered anew from 0. Only with
   * loose groups alone, and between steps: gradients are lost. */
  lh_status (*regroup)(lh_run *, const lh_flat_args *, uint64_t n) LH_NX;
  /* A parameter of a flat group that no rank used in this window: the optimizer leaves it alone. Until the step. */
  lh_status (*grad_absent)(lh_run *, uint32_t p) LH_NX;
} lh_params_v0;

#ifdef __cplusplus
}
#endif
#endif
