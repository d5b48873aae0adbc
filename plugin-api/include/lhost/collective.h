/* lhost/collective.h - kind collective/0.2: the transport between ranks. Draft.
 *
 * Every rank of a group issues the same calls on it in the same order. A call is asynchronous: the buffers belong to it
 * until its work is waited for, and *work comes back NULL when it is already complete. Tensors are contiguous and of
 * one dtype on all ranks: float64, float32, float16, bfloat16, int64 or uint8. As in NCCL, in may be out, or the part
 * of out (of in) that belongs to this rank; other overlaps are not allowed.
 *
 * A time limit starts when the call is made, not when its turn comes or when it is waited for.
 *
 * Errors, of the call or of its work: LH_PEER_LOST a rank is gone; LH_DEADLINE no answer within the time limit;
 * LH_ABORTED after abort; LH_INVALID_ARGUMENT shapes or dtypes that cannot be. After one of them the group is of no
 * more use. */
#ifndef LHOST_COLLECTIVE_H
#define LHOST_COLLECTIVE_H
#include "step.h"
#include "tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_COLLECTIVE_KIND "collective/0.2"

enum { LH_REDUCE_SUM = 0, LH_REDUCE_AVG = 1, LH_REDUCE_MAX = 2, LH_REDUCE_MIN = 3 };
typedef struct lh_process_group lh_process_group; /* NULL = all ranks */

typedef struct lh_collective_init {
  uint32_t size;
  int32_t
      listen_fd; /* a socket that listens on env->master_port already, for rank 0; -1: none. The plugin's */
  const lh_env *env;
  int64_t timeout_ns;         /* of every call that brings none of its own */
  int64_t connect_timeout_ns; /* until all ranks have met */
} lh_collective_init;

typedef struct lh_collective_args {
  uint32_t size;
  int32_t op; /* LH_REDUCE_* */
  lh_process_group *group;
  lh_tensor *in, *out;
  int64_t root;      /* the one rank that gives or gets, or the peer of send and recv; counted in the group */
  lh_stream *stream; /* NULL = current */
  int64_t timeout_ns; /* 0: the one of init; < 0: none */
} lh_collective_args;

typedef struct lh_collective lh_collective;
typedef lh_status (*lh_collective_fn)(lh_collective *, const lh_collective_args *, lh_work **) LH_NX;
/* [train] and [backward], one at a time; n is the group's size */
typedef struct lh_collective_v0 {
  LH_OBJECT(lh_collective);
  /* Meets the other ranks; required; [main] */
  lh_status (*init)(lh_collective *, lh_run *, const lh_collective_init *) LH_NX;
  /* A group of some ranks, which count anew from 0 in the order given; blocks until its members are there. All ranks
   * call it, in the same order, members or not; to one that is no member *out comes back NULL, and it makes no call on
   * that group: NULL as a group means all ranks. [main] */
  lh_status (*group)(lh_collective *, const int64_t *ranks, uint64_t n, lh_process_group **out) LH_NX;
  void (*group_free)(lh_collective *, lh_process_group *) LH_NX; /* when its works are done. [main] */
  lh_collective_fn all_reduce;                                   /* in, out of one shape; required */
  lh_collective_fn reduce;                                       /* out: root only */
  lh_collective_fn broadcast;      /* in: root only; out of the same shape on all; required */
  lh_collective_fn all_gather;     /* out = n x in, in rank order; required */
  lh_collective_fn gather;         /* out = n x in: root only */
  lh_collective_fn reduce_scatter; /* in = n x out */
  lh_collective_fn scatter;        /* in = n x out: root only */
  lh_collective_fn all_to_all;     /* in = out = n x part: part r of in goes to rank r */
  lh_collective_fn send;           /* in, to root */
  lh_collective_fn recv;           /* out, from root */
  lh_collective_fn barrier;        /* no tensors */
  void (*abort)(lh_collective *, lh_code why) LH_NX; /* unblocks every waiter; once; [any] */
} lh_collective_v0;

#ifdef __cplusplus
}
#endif
#endif
