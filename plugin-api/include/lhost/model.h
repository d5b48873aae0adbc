/* lhost/model.h - kind model/0.1: modules, units, steps. Draft.
 *
 * Order: create (constructs the module; the generator is already seeded) - unit/param enumeration - attach -
 * set_mode - steps and events. A failure in any call ends the run. */
#ifndef LHOST_MODEL_H
#define LHOST_MODEL_H
#include "params.h"
#include "step.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_MODEL_KIND "model/0.1"

typedef struct lh_batch { /* made by the host, lent for one call; names do not change during a stage */
  uint32_t size, n;
  const lh_str *names;
  lh_tensor *const *tensors; /* [rows, shape of the field...] */
  int64_t rows;              /* at least 1 */
  int64_t counted;           /* rows that count in means: rows, or 0 for a filler of a rank without data */
} lh_batch;

/* Boundary calls lent at attach(). A NULL pair: nobody wants unit events, the model calls nothing. The tensors
 * are replaced IN PLACE (same handle). */
typedef struct lh_unit_calls {
  uint32_t size, rsvd0;
  void *ctx;
  lh_status (*enter)(void *ctx, uint32_t unit, lh_tensor *const *io, uint64_t n) LH_NX;
  lh_status (*exit)(void *ctx, uint32_t unit, lh_tensor *const *io, uint64_t n) LH_NX;
} lh_unit_calls;

typedef struct lh_step_out { /* filled by training_step */
  uint32_t size, rsvd0;
  lh_tensor *loss; /* borrowed: the model keeps it until the next call; one element; NULL = skip this batch */
  double weight;   /* of this micro-batch in the window's mean; 0 = its rows (the usual case) */
} lh_step_out;

enum { LH_MODE_TRAIN = 0, LH_MODE_EVAL = 1 };

typedef struct lh_model lh_model;
typedef struct lh_model_v0 {
  LH_OBJECT(lh_model);
  uint32_t (*unit_count)(lh_model *) LH_NX;                           /* required; [main] */
  lh_status (*unit)(lh_model *, uint32_t u, lh_unit_info *out) LH_NX; /* required */
  uint32_t (*param_count)(lh_model *) LH_NX; /* parameters, aliases, buffers; required */
  lh_status (*param)(lh_model *, uint32_t p, lh_param_info *out, lh_tensor **borrowed) LH_NX; /* required */
  uint64_t (*events)(lh_model *, const int32_t **ids) LH_NX;    /* LH_EVENT list; NULL = none */
  lh_status (*attach)(lh_model *, const lh_unit_calls *) LH_NX; /* borrowed for the run */
  /* EVAL keeps each module's mode and turns all to evaluation, TRAIN brings the kept modes back. required */
  lh_status (*set_mode)(lh_model *, int32_t mode) LH_NX;
  lh_status (*training_step)(lh_model *, const lh_batch *, lh_step_out *) LH_NX; /* required; [train] */
  lh_status (*validation_step)(lh_model *, const lh_batch *) LH_NX; /* NULL = the model cannot be validated */
  lh_status (*test_step)(lh_model *, const lh_batch *) LH_NX;
  /* outs: borrowed until the next call */
  lh_status (*predict_step)(lh_model *, const lh_batch *, lh_tensor *const **outs, uint64_t *n) LH_NX;
  lh_status (*on_event)(lh_model *, int32_t event) LH_NX;
} lh_model_v0;

#ifdef __cplusplus
}
#endif
#endif
