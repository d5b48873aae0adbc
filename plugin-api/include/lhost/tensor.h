/* lhost/tensor.h - handles, views, memory, a little arithmetic, completions. Draft.
 *
 * A handle is opaque. With the LibTorch engine it IS the address of an at::Tensor (= AOTI's AtenTensorHandle):
 *   - lending a parameter, a batch or a loss costs nothing ("borrowed": until the call returns);
 *   - a plugin built against the same LibTorch casts it (sdk/torch.hpp; the note's `torch` is checked at load).
 * retain() makes a NEW handle to the same tensor; only such handles, and those of empty() and narrow(), are
 * released. Calls are ordered by the device's current stream; only to_host synchronises. */
#ifndef LHOST_TENSOR_H
#define LHOST_TENSOR_H
#include "abi.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct lh_stream lh_stream; /* a device's queue; NULL = the current one */
typedef struct lh_list lh_list;     /* tensors in a row, owned by the engine: what fused kernels take */

enum { LH_EMPTY_PINNED = 1, LH_EMPTY_ZEROED = 2 };
#define LH_TENSOR_SERVICE "lhost.tensor/0"
typedef struct lh_tensor_v0 { /* [any] */
  uint32_t size, rsvd0;
  lh_status (*retain)(lh_tensor *, lh_tensor **out) LH_NX;
  void (*release)(lh_tensor *) LH_NX; /* NULL: nothing */
  /* out: data, shape and strides stay valid until release or a change of the storage */
  lh_status (*view)(lh_tensor *, lh_view *out) LH_NX;
  lh_status (*empty)(lh_run *, lh_device, lh_dtype, const int64_t *shape, uint32_t ndim, uint32_t flags,
                     lh_tensor **out) LH_NX;
  /* rows [start, start + len) of dimension 0; shares the storage */
  lh_status (*narrow)(lh_tensor *, int64_t start, int64_t len, lh_tensor **out) LH_NX;
  lh_bool (*unique)(const lh_tensor *) LH_NX; /* nobody else holds the tensor or its bytes: reusable */
  uint64_t (*list_size)(const lh_list *) LH_NX;
  lh_tensor *(*list_at)(const lh_list *, uint64_t i)LH_NX; /* borrowed as long as the list is */
} lh_tensor_v0;

#define LH_TENSOR_OPS_SERVICE "lhost.tensor_ops/0"
typedef struct lh_tensor_ops_v0 { /* without autograd; [train] or [backward] */
  uint32_t size, rsvd0;
  lh_status (*fill)(lh_tensor *x, double v) LH_NX;
  lh_status (*copy)(lh_tensor *dst, lh_tensor *src) LH_NX;                  /* casts, crosses devices */
  lh_status (*scale)(lh_tensor *x, double a) LH_NX;                         /* x *= a */
  lh_status (*axpby)(lh_tensor *y, double a, lh_tensor *x, double b) LH_NX; /* y = a x + b y */
  lh_status (*to_host)(lh_tensor *scalar, double *out) LH_NX;               /* one element; synchronises */
} lh_tensor_ops_v0;

/* Whoever produces a completion supplies its operations: NCCL, gloo and a thread pool all fit. */
typedef struct lh_work_ops {
  uint32_t size, rsvd0;
  lh_status (*wait)(void *self, int64_t timeout_ns) LH_NX; /* the calling thread blocks; < 0: no limit */
  lh_status (*wait_stream)(void *self, lh_stream *) LH_NX; /* orders the stream after it */
  void (*destroy)(void *self) LH_NX;
} lh_work_ops;
#define LH_WORK_SERVICE "lhost.work/0"
typedef struct lh_work_v0 { /* Dropping a work neither waits nor cancels. [any] */
  uint32_t size, rsvd0;
  lh_status (*wrap)(const lh_work_ops *, void *self, lh_work **out) LH_NX; /* takes self */
  void (*release)(lh_work *) LH_NX;
  lh_status (*wait)(lh_work *, int64_t timeout_ns) LH_NX;
  lh_status (*wait_stream)(lh_work *, lh_stream *) LH_NX;
} lh_work_v0;

#ifdef __cplusplus
}
#endif
#endif
