/* lhost/profiler.h - kind profiler/0.1: where time goes. Draft.
 *
 * Failure policy: an error closes the profiler, the run goes on. Spans of one thread nest. */
#ifndef LHOST_PROFILER_H
#define LHOST_PROFILER_H
#include "logger.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_PROFILER_KIND "profiler/0.1"

enum {
  LH_SPAN_STEP = 0,    /* a whole training micro-batch with its optimizer step */
  LH_SPAN_DATA = 1,    /* waiting for the next batch */
  LH_SPAN_FORWARD = 2, /* training_step */
  LH_SPAN_BACKWARD = 3,
  LH_SPAN_SYNC = 4,      /* strategy: gradients of the other ranks */
  LH_SPAN_OPTIMIZER = 5, /* clipping and update */
  LH_SPAN_CALLBACK = 6,  /* hooks of model and callbacks */
  LH_SPAN_EVALUATE = 7,  /* one pass of validation, test or predict */
  LH_SPAN_CHECKPOINT = 8,
  LH_SPAN_COUNT = 9
};

typedef struct lh_profiler lh_profiler;
typedef struct lh_profiler_v0 {
  LH_OBJECT(lh_profiler);
  /* *mask: bit (1 << LH_SPAN_x) for each span wanted; others cost nothing. required; [main] */
  lh_status (*start)(lh_profiler *, const lh_run_info *, uint64_t *mask) LH_NX;
  void (*begin)(lh_profiler *, int32_t span, int64_t monotonic_ns)
      LH_NX;                                                            /* required; no allocation; [train] */
  void (*end)(lh_profiler *, int32_t span, int64_t monotonic_ns) LH_NX; /* required; no allocation; [train] */
  /* Write the report below the run's folder; *summary: text for the terminal, borrowed until destroy. [main] */
  lh_status (*stop)(lh_profiler *, lh_str *summary) LH_NX;
} lh_profiler_v0;

#ifdef __cplusplus
}
#endif
#endif
