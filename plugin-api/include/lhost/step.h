/* lhost/step.h - where the run is, who this process is, and the events of a run. Draft. */
#ifndef LHOST_STEP_H
#define LHOST_STEP_H
#include "abi.h"
#ifdef __cplusplus
extern "C" {
#endif

/* One object per run, updated in place by the host: readable at any time without a call. [train] */
enum { LH_STEP_SANITY = 1 /* this validation is the check before training: nothing of it is kept */ };
typedef struct lh_step {
  uint32_t size, flags;
  int64_t global_step;        /* optimizer rounds done; in after_step the one just taken counts */
  int64_t epoch;              /* the running one, from 0 */
  int64_t batch;              /* the running micro-batch of the stage, from 0 */
  int64_t samples;            /* training samples seen, over all ranks */
  int32_t micro, micro_count; /* place in the accumulation window */
  lh_bool last_micro;         /* gradients are synchronised after this micro-batch */
  int32_t stage;              /* LH_STAGE_* */
  double lr;                  /* of the first parameter group */
} lh_step;

typedef struct lh_env { /* who this process is; from the launcher */
  uint32_t size, rsvd0;
  int64_t world_size, rank, local_world_size, local_rank, num_nodes, node_rank;
  lh_str master_addr; /* where rank 0 is met: a name or an address */
  int64_t master_port;
  lh_str job;      /* the same on all ranks of one run, and of no other: two runs on one port notice it */
  int64_t restart; /* how often the run was started again; 0 the first time */
  /* 1: whoever started the ranks serves a c10d TCPStore at master_addr:master_port (torchrun's agent does, also over
   * restarts); 0: rank 0 has to listen there */
  int64_t store_served;
} lh_env;

/* Events. An id is LH_EVENT(stage, what). A model or callback returns the list of those that it wants, once;
 * what nobody asked for costs nothing. */
enum {
  LH_ON_START = 0,
  LH_ON_END = 1,
  LH_ON_EPOCH_START = 2,
  LH_ON_EPOCH_END =
      3, /* FIT: after the last batch and the validation due there; the epoch's means are final */
  LH_ON_BATCH_START = 4,
  LH_ON_BATCH_END = 5,
  LH_ON_BEFORE_STEP = 6, /* FIT: gradients are unscaled, synchronised, not yet clipped */
  LH_ON_EXCEPTION = 7,   /* the run fails: `trainer.failure` has the text */
  LH_ON_CHECKPOINT = 8   /* a checkpoint file has just been completed */
};
#define LH_EVENT(stage, what) ((stage)*16 + (what))

#ifdef __cplusplus
}
#endif
#endif
