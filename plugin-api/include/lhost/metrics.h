/* lhost/metrics.h - service "lhost.metrics/0": log() from anywhere. Draft. [train]
 *
 * A value stays where it is until a record is due. A step value is the value of that micro-batch; an epoch
 * value is reduced over all micro-batches (and ranks) of the stage, each with its weight. */
#ifndef LHOST_METRICS_H
#define LHOST_METRICS_H
#include "abi.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { LH_MEAN = 0, LH_METRIC_SUM = 1, LH_METRIC_MIN = 2, LH_METRIC_MAX = 3 };
enum {
  LH_ON_STEP = 1,  /* neither: FIT logs on the step, the other stages on the epoch */
  LH_ON_EPOCH = 2, /* both: name_step, name_epoch, and name = the epoch's */
  LH_PROG_BAR = 4  /* show it in the progress line */
};
#define LH_METRICS_SERVICE "lhost.metrics/0"
typedef struct lh_metrics_v0 {
  uint32_t size, rsvd0;
  /* The number of a metric: ask once per place in the code, keep it. Asking again for the same name with other
   * flags or reduction is an error. Names: not empty, no control characters. */
  lh_status (*declare)(lh_run *, lh_str name, uint32_t flags, int32_t reduce, uint32_t *out_id) LH_NX;
  /* One element, any dtype; detached. weight: its share in an epoch's mean (rows, tokens). */
  lh_status (*log)(lh_run *, uint32_t id, lh_tensor *scalar, double weight) LH_NX;
  lh_status (*log_number)(lh_run *, uint32_t id, double value, double weight) LH_NX;
} lh_metrics_v0;

#ifdef __cplusplus
}
#endif
#endif
