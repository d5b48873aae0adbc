/* lhost/collective.h - kind collective/0.1: the transport a strategy uses. Draft.
 *
 * Every rank issues the same calls on a group in the same order. A call is asynchronous; *work comes back NULL
 * when it is already complete. in == out is allowed where the comment says so. */
#ifndef LHOST_COLLECTIVE_H
#define LHOST_COLLECTIVE_H
#include "step.h"
#include "tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_COLLECTIVE_KIND "collective/0.1"

enum { LH_REDUCE_SUM = 0, LH_REDUCE_AVG = 1, LH_REDUCE_MAX = 2, LH_REDUCE_MIN = 3 };
typedef struct lh_process_group lh_process_group; /* NULL = all ranks */

typedef struct lh_collective_args {
  uint32_t size;
  int32_t op; /* LH_REDUCE_* */
  lh_process_group *group;
  lh_tensor *in, *out; /* contiguous */
  int64_t root;        /* broadcast */
  lh_stream *stream;   /* NULL = current */
} lh_collective_args;

typedef struct lh_collective lh_collective;
typedef struct lh_collective_v0 {
  LH_OBJECT(lh_collective);
  lh_status (*init)(lh_collective *, lh_run *, const lh_env *)
      LH_NX; /* meets the other ranks; required; [main] */
  lh_status (*all_reduce)(lh_collective *, const lh_collective_args *, lh_work **)
      LH_NX; /* in == out allowed; required */
  lh_status (*broadcast)(lh_collective *, const lh_collective_args *, lh_work **)
      LH_NX; /* in == out allowed; required */
  /* out = world_size x in, in rank order; in may be this rank's slot of out */
  lh_status (*all_gather)(lh_collective *, const lh_collective_args *, lh_work **) LH_NX;
  /* in = world_size x out; out may be this rank's slot of in */
  lh_status (*reduce_scatter)(lh_collective *, const lh_collective_args *, lh_work **) LH_NX;
  lh_status (*barrier)(lh_collective *, lh_process_group *, lh_work **) LH_NX;
  void (*abort)(lh_collective *, lh_code why) LH_NX; /* unblocks every waiter; [any] */
} lh_collective_v0;

#ifdef __cplusplus
}
#endif
#endif
