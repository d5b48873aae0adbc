/* lhost/optimizer.h - kind optimizer/0.1: the update rule; service "lhost.fused/0": the kernels to write it with.
 *
 * An optimizer declares slots (its state per parameter); the engine allocates, places, cuts and saves them. Its
 * FLOAT options flagged LH_O_HYPER come per group and live: a scheduler or callback changes them between steps.
 * One of them must be called "lr". Draft. */
#ifndef LHOST_OPTIMIZER_H
#define LHOST_OPTIMIZER_H
#include "step.h"
#include "tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_OPTIMIZER_KIND "optimizer/0.1"

enum {
  LH_OPT_ELEMENT_WISE = 1,
  LH_OPT_NEEDS_MATRIX = 2
}; /* component flags: runs on flat pieces / on whole tensors */

enum { LH_SLOT_LIKE_PARAM = 0, LH_SLOT_SCALAR = 1 };
typedef struct lh_slot { /* zero at the start */
  uint32_t size;
  int32_t shape;  /* LH_SLOT_* */
  lh_str name;    /* as in Python's optimizer state: "exp_avg" */
  lh_dtype dtype; /* bits == 0: the parameter's */
  uint32_t rsvd0;
} lh_slot;

/* Parameters that share hyper-parameters. Lists are parallel; parameters without a gradient in this window are
 * not in them, so that no decay or momentum step is made from nothing. */
typedef struct lh_opt_group {
  uint32_t size, n_slots;
  lh_str name;
  const lh_list *params, *grads;
  const lh_list *const *slots; /* one list per declared slot */
  const double *hyper;         /* one per LH_O_HYPER option, in their order */
  lh_tensor *found_inf;        /* one float32: not 0 = change nothing; NULL = not asked */
} lh_opt_group;

typedef struct lh_optimizer lh_optimizer;
typedef struct lh_optimizer_v0 {
  LH_OBJECT(lh_optimizer);
  uint64_t (*slots)(lh_optimizer *, const lh_slot **out) LH_NX; /* borrowed until destroy; [main] */
  lh_status (*step)(lh_optimizer *, const lh_opt_group *groups, uint64_t n) LH_NX; /* required; [train] */
} lh_optimizer_v0;

/* Whole optimizer steps in one kernel call: ATen's _fused_sgd_, _fused_adam_, _fused_adamw_. They implement
 * torch.optim.SGD, Adam and AdamW (decoupled weight decay: Loshchilov and Hutter 2019). [train] */
enum { LH_FUSED_NESTEROV = 1, LH_FUSED_MAXIMIZE = 2, LH_FUSED_AMSGRAD = 4, LH_FUSED_DECOUPLED = 8 };
typedef struct lh_sgd_args {
  uint32_t size, flags;
  double lr, momentum, dampening, weight_decay;
} lh_sgd_args;
typedef struct lh_adam_args {
  uint32_t size, flags;
  double lr, beta1, beta2, eps, weight_decay;
} lh_adam_args;
#define LH_FUSED_SERVICE "lhost.fused/0"
typedef struct lh_fused_v0 {
  uint32_t size, rsvd0;
  /* slots: momentum_buffer [LIKE_PARAM], step [SCALAR f32]; none when momentum is 0. A parameter whose step is 0
   * takes its gradient as the first momentum, as torch.optim.SGD does. */
  lh_status (*sgd)(const lh_opt_group *, const lh_sgd_args *) LH_NX;
  /* slots: exp_avg, exp_avg_sq [LIKE_PARAM], step [SCALAR f32], with AMSGRAD also max_exp_avg_sq */
  lh_status (*adam)(const lh_opt_group *, const lh_adam_args *) LH_NX;
} lh_fused_v0;

#ifdef __cplusplus
}
#endif
#endif
