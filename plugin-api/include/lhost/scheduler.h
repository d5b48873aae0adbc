/* lhost/scheduler.h - kind scheduler/0.1: the learning rate over time. Draft.
 *
 * A scheduler is a pure function of its clock. The host owns the clock (interval, frequency), the warm-up and the
 * parameter groups; each group is scheduled from its own base rate. */
#ifndef LHOST_SCHEDULER_H
#define LHOST_SCHEDULER_H
#include "abi.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_SCHEDULER_KIND "scheduler/0.1"

typedef struct lh_clock {
  uint32_t size, rsvd0;
  int64_t t;     /* ticks since the warm-up ended, from 0 */
  int64_t total; /* ticks from there to the end of training; -1 = not known */
} lh_clock;

typedef struct lh_scheduler lh_scheduler;
typedef struct lh_scheduler_v0 {
  LH_OBJECT(lh_scheduler);
  /* Before training: refuse what cannot work (total not known but needed). [main] */
  lh_status (*check)(lh_scheduler *, const lh_clock *) LH_NX;
  /* The rate at clock->t. required; [train] */
  lh_status (*rate)(lh_scheduler *, const lh_clock *, double base_lr, double *out) LH_NX;
} lh_scheduler_v0;

#ifdef __cplusplus
}
#endif
#endif
