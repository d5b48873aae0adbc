/* lhost/accelerator.h - kind accelerator/0.1: devices, streams, memory numbers. Draft.
 *
 * score and device_count run before any rank is launched and must not create a device context. */
#ifndef LHOST_ACCELERATOR_H
#define LHOST_ACCELERATOR_H
#include "tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_ACCELERATOR_KIND "accelerator/0.1"

typedef struct lh_accelerator_info {
  uint32_t size, rsvd0;
  lh_device device;
  lh_str name;                                     /* "AMD EPYC 7B13", "NVIDIA H200"; borrowed until close */
  uint64_t memory_total, memory_free, memory_peak; /* bytes; 0 = not known */
} lh_accelerator_info;

typedef struct lh_accelerator lh_accelerator;
typedef struct lh_accelerator_v0 {
  LH_OBJECT(lh_accelerator);
  /* accelerator.use = "auto" takes the greatest; 0 = cannot be used on this machine. required; [main] */
  int32_t (*score)(lh_accelerator *) LH_NX;
  uint32_t (*device_count)(lh_accelerator *) LH_NX;                          /* required; [main] */
  lh_status (*open)(lh_accelerator *, uint32_t index, lh_device *out) LH_NX; /* required; [main] */
  lh_status (*info)(lh_accelerator *, lh_accelerator_info *out) LH_NX;       /* after open; [main] */
  /* Streams: a device that works in order with the host leaves all of these NULL. [any] */
  lh_status (*stream_new)(lh_accelerator *, int32_t priority, lh_stream **out) LH_NX;
  void (*stream_free)(lh_accelerator *, lh_stream *) LH_NX;
  lh_status (*event_record)(lh_accelerator *, lh_stream *, void **out_event) LH_NX;
  lh_status (*stream_wait)(lh_accelerator *, lh_stream *, void *event) LH_NX;
  void (*event_free)(lh_accelerator *, void *event) LH_NX;
  lh_status (*synchronize)(lh_accelerator *) LH_NX;
  void (*close)(lh_accelerator *) LH_NX; /* [main] */
} lh_accelerator_v0;

#ifdef __cplusplus
}
#endif
#endif
