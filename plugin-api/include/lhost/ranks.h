/* lhost/ranks.h - service "lhost.ranks/0": the other ranks, for models and callbacks. Draft. [train] and [backward]
 *
 * What every rank calls in the same order, in the middle of a step, and waits for. With one rank all of it is free. */
#ifndef LHOST_RANKS_H
#define LHOST_RANKS_H
#include "step.h"
#include "tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_RANKS_SERVICE "lhost.ranks/0"
typedef struct lh_ranks_v0 {
  uint32_t size, rsvd0;
  int64_t (*rank)(lh_run *) LH_NX;
  int64_t (*world_size)(lh_run *) LH_NX;
  lh_status (*all_reduce)(lh_run *, lh_tensor *inout, int32_t op) LH_NX;  /* LH_REDUCE_* */
  lh_status (*broadcast)(lh_run *, lh_tensor *inout, int64_t root) LH_NX; /* from root to all */
  /* 1: batch statistics are to be taken over all ranks (trainer.sync_batchnorm, several ranks, training) */
  lh_bool (*sync_batchnorm)(lh_run *) LH_NX;
  /* rows of the running batch that count; 0 on a rank that only keeps the others company */
  int64_t (*counted)(lh_run *) LH_NX;
} lh_ranks_v0;

#ifdef __cplusplus
}
#endif
#endif
