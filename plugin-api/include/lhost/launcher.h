/* lhost/launcher.h - kind launcher/0.1: how ranks come to be, and who this process is. Draft.
 *
 * Runs before any device is touched. */
#ifndef LHOST_LAUNCHER_H
#define LHOST_LAUNCHER_H
#include "step.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_LAUNCHER_KIND "launcher/0.1"

typedef struct lh_launch_spec {
  uint32_t size, rsvd0;
  int64_t num_nodes, ranks_per_node;
  const lh_str *argv; /* what a further rank executes */
  uint64_t n_argv;
} lh_launch_spec;

typedef struct lh_launcher lh_launcher;
typedef struct lh_launcher_v0 {
  LH_OBJECT(lh_launcher);
  /* 0..100: is this process one of a job that this launcher knows? Looks at the environment only. [main] */
  int32_t (*detect)(lh_launcher *) LH_NX;
  /* Who this process is. An error if the spec cannot be met (single: more than one rank). required; [main] */
  lh_status (*env)(lh_launcher *, const lh_launch_spec *, lh_env *out) LH_NX;
  /* Make the other ranks and wait for them; NULL: ranks are made by someone else, or there is one. [main] */
  lh_status (*launch)(lh_launcher *, const lh_launch_spec *, int32_t *out_exit_code) LH_NX;
  void (*signal)(lh_launcher *, int32_t sig) LH_NX; /* passed on to the other ranks; [any] */
} lh_launcher_v0;

#ifdef __cplusplus
}
#endif
#endif
