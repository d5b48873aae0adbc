/* lhost/trainer.h - services "lhost.trainer/0" (the run, for models and callbacks) and "lhost.terminal/0"
 * (the only way to the screen). Draft. [train] */
#ifndef LHOST_TRAINER_H
#define LHOST_TRAINER_H
#include "metrics.h"
#include "step.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct lh_trainer_info { /* constant while a stage runs; -1 = no limit, 0 = there is none */
  uint32_t size, rsvd0;
  lh_str run_dir;
  lh_str model; /* name of the model component */
  int64_t max_epochs, max_steps;
  int64_t batches; /* micro-batches in one pass of the running stage, on this rank */
  int64_t samples; /* samples of that pass, over all ranks */
} lh_trainer_info;
typedef struct lh_metric_value {
  lh_str name;
  double value;
  uint32_t flags, rsvd0; /* LH_PROG_BAR */
} lh_metric_value;
typedef struct lh_group_state { /* a parameter group of the optimizer */
  lh_str name;                  /* "" for the base group */
  double lr;
} lh_group_state;

#define LH_TRAINER_SERVICE "lhost.trainer/0"
typedef struct lh_trainer_v0 {
  uint32_t size, rsvd0;
  const lh_step *(*step)(lh_run *)LH_NX; /* borrowed for the run */
  const lh_env *(*env)(lh_run *)LH_NX;   /* borrowed for the run */
  void (*info)(lh_run *, lh_trainer_info *out) LH_NX;
  /* Last known value of a metric, its epoch value once there is one. 0: no such metric so far. */
  lh_bool (*metric)(lh_run *, lh_str name, double *out) LH_NX;
  /* All of them, in the order in which they were first logged; borrowed until the next call of log. */
  uint64_t (*metrics)(lh_run *, const lh_metric_value **out) LH_NX;
  uint64_t (*groups)(lh_run *, const lh_group_state **out) LH_NX; /* borrowed until the next call */
  /* End training after the running step or epoch, once min_epochs and min_steps are met. */
  void (*stop)(lh_run *, lh_str reason) LH_NX;
  lh_str (*failure)(lh_run *) LH_NX;    /* in LH_ON_EXCEPTION: the text; else empty */
  lh_str (*checkpoint)(lh_run *) LH_NX; /* in LH_ON_CHECKPOINT: the file just completed; else empty */
  /* what predict_step returned for the running batch: handles borrowed until the event returns */
  uint64_t (*predictions)(lh_run *, lh_tensor *const **out) LH_NX;
} lh_trainer_v0;

#define LH_TERMINAL_SERVICE "lhost.terminal/0"
typedef struct lh_terminal_v0 {
  uint32_t size, rsvd0;
  lh_bool (*is_tty)(void) LH_NX;  /* 0 also when output is turned off */
  lh_bool (*colour)(void) LH_NX;  /* escape sequences are wanted */
  lh_bool (*enabled)(void) LH_NX; /* 0 under -q and on other ranks than 0 */
  int32_t (*width)(void) LH_NX;   /* columns; 80 when not a terminal */
  /* One line that is painted over by the next; empty removes it. Nothing when not a terminal. */
  void (*status_line)(lh_str text) LH_NX;
  void (*print)(lh_str text) LH_NX; /* one or several lines that stay; a newline is added */
} lh_terminal_v0;

#ifdef __cplusplus
}
#endif
#endif
