/* lhost/callback.h - kind callback/0.1: reacts to events, may ask to stop. Draft.
 *
 * Callbacks hear an event in the order of the manifest, after the model. A failure ends the run, unless the
 * manifest says on_error = "warn". */
#ifndef LHOST_CALLBACK_H
#define LHOST_CALLBACK_H
#include "step.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_CALLBACK_KIND "callback/0.1"

typedef struct lh_callback lh_callback;
typedef struct lh_callback_v0 {
  LH_OBJECT(lh_callback);
  uint64_t (*events)(lh_callback *, const int32_t **ids)
      LH_NX;                                                 /* LH_EVENT list, asked once; required; [main] */
  lh_status (*on_event)(lh_callback *, int32_t event) LH_NX; /* required; [train] */
} lh_callback_v0;

#ifdef __cplusplus
}
#endif
#endif
