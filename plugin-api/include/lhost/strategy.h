/* lhost/strategy.h - kind strategy/0.2: layout of parameters over ranks, gradient traffic. Draft.
 *
 * The gradient of a rank is the mean over its own rows, weighted so that the AVERAGE over the data ranks is the mean over
 * all rows of the window, however uneven they are: LH_REDUCE_AVG, or a sum and one division. On return of sync_grads
 * every rank holds that average (or its shard of it).
 *
 * A slot left NULL is not in the compiled step at all. The host owns autograd, storage, optimizer and the order
 * of the loop; a strategy declares flat groups in plan() and reacts to events. */
#ifndef LHOST_STRATEGY_H
#define LHOST_STRATEGY_H
#include "collective.h"
#include "params.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_STRATEGY_KIND "strategy/0.2"

/* Component flag: trains on one rank only; a manifest that makes more is refused before anything starts. */
enum { LH_STRATEGY_ONE_RANK = 1 };

#define LH_UNIT_ALL 0xffffffffu /* params_ready: last call, every unit is in */
enum { LH_PHASE_FORWARD = 0, LH_PHASE_RECOMPUTE = 1 };

typedef struct lh_strategy lh_strategy;
typedef struct lh_setup {
  uint32_t size, rsvd0;
  const lh_env *env;
  const lh_collective_v0 *collective; /* never NULL: with one rank it is the host's collective of one */
  lh_collective *collective_self;
  int64_t accumulate; /* micro-batches in a full window */
  /* A few float64 numbers, in host memory, that the host wants summed over ranks with every optimizer step: votes to
   * stop, the loss. A strategy that does it with its own traffic, between backward of the last micro-batch and the
   * return of sync_grads, says LH_CARRIES_VOTES; for others the host makes a collective of its own. */
  lh_tensor *votes;
} lh_setup;
enum { LH_CARRIES_VOTES = 1 };
typedef struct lh_topology {     /* in: rank and world size of the run; the strategy may change it */
  uint32_t size, flags;          /* LH_CARRIES_VOTES */
  int64_t data_rank, data_count; /* which share of each global batch this rank reads */
} lh_topology;

/* Events of units, in the order that README.md guarantees. [train], backward ones [backward] */
typedef struct lh_strategy_units_v0 {
  uint32_t size, rsvd0;
  lh_status (*pre_forward)(lh_strategy *, uint32_t unit, int32_t phase) LH_NX;
  lh_status (*post_forward)(lh_strategy *, uint32_t unit, int32_t phase) LH_NX;
  lh_status (*pre_backward)(lh_strategy *, uint32_t unit) LH_NX;
  lh_status (*post_backward)(lh_strategy *, uint32_t unit) LH_NX;
} lh_strategy_units_v0;

typedef struct lh_strategy_v0 {
  LH_OBJECT(lh_strategy);
  /* once; [main] */
  lh_status (*setup)(lh_strategy *, lh_run *, const lh_setup *, lh_topology *inout) LH_NX; /* required */
  lh_status (*plan)(lh_strategy *, lh_plan *, const lh_plan_v0 *) LH_NX;
  lh_status (*params_ready)(lh_strategy *, uint32_t unit) LH_NX; /* each unit in order, then LH_UNIT_ALL */
  lh_status (*fit_start)(lh_strategy *) LH_NX; /* the optimizer exists, the checkpoint is loaded */
  /* per micro-batch; [train] */
  lh_status (*begin_micro)(lh_strategy *, const lh_step *) LH_NX;
  lh_status (*grad_ready)(lh_strategy *, uint32_t param) LH_NX; /* its gradient is accumulated; [backward] */
  lh_status (*after_backward)(lh_strategy *, const lh_step *) LH_NX;
  /* per optimizer step; [train] */
  lh_status (*sync_grads)(lh_strategy *, const lh_step *) LH_NX; /* on return the gradients are final */
  lh_status (*after_step)(lh_strategy *, const lh_step *) LH_NX;
  /* An evaluation begins: weights and buffers are to be the same on all ranks. [train] */
  lh_status (*eval_start)(lh_strategy *) LH_NX;
  void (*abort)(lh_strategy *, lh_code why) LH_NX; /* must not block; [any] */
  lh_status (*teardown)(lh_strategy *) LH_NX;      /* also after an error; [main] */
  const lh_strategy_units_v0 *units;               /* NULL: no unit events */
} lh_strategy_v0;

#ifdef __cplusplus
}
#endif
#endif
