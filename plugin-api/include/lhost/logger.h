/* lhost/logger.h - kind logger/1: where records go. FROZEN like abi.h.
 *
 * Failure policy: an error is written to the run's log and the logger is closed after three in a row; the run
 * goes on, unless the manifest says on_error = "stop". Records are queued, so a slow logger never slows a step. */
#ifndef LHOST_LOGGER_H
#define LHOST_LOGGER_H
#include "abi.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_LOGGER_KIND "logger/1"

enum { LH_RUN_RESUMED = 1 };
typedef struct lh_run_info {
  uint32_t size, flags; /* LH_RUN_* */
  lh_str name;          /* [run] name */
  lh_str dir;           /* the run's folder, absolute; a logger writes only below it */
  lh_str manifest;      /* the resolved manifest as TOML, secrets masked */
  lh_str host_version;
  int64_t rank, world_size;
} lh_run_info;
typedef struct lh_pair { /* one hyper-parameter */
  lh_str key;            /* dotted: "optimizer.lr" */
  lh_str value;          /* TOML literal: 0.001, "adamw", [128, 64] */
} lh_pair;
typedef struct lh_scalar {
  lh_str name;
  double value; /* may be NaN or infinite: record it as such */
} lh_scalar;
/* Everything that was logged at one moment: one call, one record, one row. */
typedef struct lh_record {
  uint32_t size;
  int32_t stage;                       /* LH_STAGE_* */
  int64_t global_step, epoch, samples; /* the run's counters at that moment; samples over all ranks */
  int64_t unix_time_ns;
  const lh_scalar *scalars;
  uint64_t n_scalars;
} lh_record;

typedef struct lh_logger lh_logger;
typedef struct lh_logger_v1 {
  LH_OBJECT(lh_logger); /* save_state: flush, then put the byte position; load_state comes before open, which
                           then cuts the file back to it, so that no record is there twice. [io] */
  lh_status (*open)(lh_logger *, const lh_run_info *) LH_NX;           /* required; [io] */
  lh_status (*params)(lh_logger *, const lh_pair *, uint64_t n) LH_NX; /* once, after open; [io] */
  lh_status (*record)(lh_logger *, const lh_record *) LH_NX;           /* required; [io] */
  lh_status (*flush)(lh_logger *) LH_NX;                               /* [io] */
  /* outcome: LH_OK done, LH_CANCELLED interrupted, else failed with `message`. Also after an error. [io] */
  lh_status (*close)(lh_logger *, lh_code outcome, lh_str message) LH_NX;
} lh_logger_v1;

#ifdef __cplusplus
}
#endif
#endif
