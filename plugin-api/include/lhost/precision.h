/* lhost/precision.h - kind precision/0.1: dtypes, autocast, loss scaling. Draft.
 *
 * Scaling a loss costs no operation: the host starts backward with the scale as seed gradient. */
#ifndef LHOST_PRECISION_H
#define LHOST_PRECISION_H
#include "step.h"
#include "tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_PRECISION_KIND "precision/0.1"

typedef struct lh_policy { /* dtype with bits == 0: leave as it is */
  uint32_t size;
  lh_dtype param;  /* of parameters and floating-point buffers */
  lh_dtype input;  /* floating-point fields of a batch are cast to it */
  lh_dtype reduce; /* gradient traffic */
} lh_policy;

typedef struct lh_precision lh_precision;
typedef struct lh_precision_v0 {
  LH_OBJECT(lh_precision);
  lh_status (*policy)(lh_precision *, lh_policy *out) LH_NX; /* required; [main] */
  lh_status (*enter)(lh_precision *, const lh_step *) LH_NX; /* before a model's step; [train] */
  lh_status (*leave)(lh_precision *, const lh_step *) LH_NX; /* after it, before backward; [train] */
  double (*loss_scale)(lh_precision *) LH_NX;                /* NULL: 1; [train] */
  /* After a step: found_inf 1 = some gradient was not finite and the step was skipped. [train] */
  lh_status (*update)(lh_precision *, lh_bool found_inf) LH_NX;
} lh_precision_v0;

#ifdef __cplusplus
}
#endif
#endif
