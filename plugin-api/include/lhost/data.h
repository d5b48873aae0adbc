/* lhost/data.h - kind data/0.1: a map from sample index to bytes. Draft.
 *
 * The host owns order, shuffling, splitting, sharding over ranks, threads, batch buffers and position; a data
 * component only turns indices into bytes, written straight into the tensors that the model reads. */
#ifndef LHOST_DATA_H
#define LHOST_DATA_H
#include "abi.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_DATA_KIND "data/0.1"

enum { LH_SPLIT_TRAIN = 0, LH_SPLIT_VAL = 1, LH_SPLIT_TEST = 2, LH_SPLIT_PREDICT = 3 };

typedef struct lh_field { /* one named tensor of a batch: [rows, shape...], row-major */
  uint32_t size;
  int32_t ndim; /* of one sample; 0 = a scalar per sample */
  lh_str name;
  lh_dtype dtype;
  uint32_t rsvd0;
  const int64_t *shape;
} lh_field;
typedef struct lh_split {
  uint32_t size, n_fields;
  int64_t samples;        /* 0: this component has no such split */
  const lh_field *fields; /* borrowed until destroy */
} lh_split;

typedef struct lh_data lh_data;
typedef struct lh_data_v0 {
  LH_OBJECT(lh_data);
  /* Opens and checks what the split needs; the same answer when asked again. required; [main] */
  lh_status (*describe)(lh_data *, int32_t split, lh_split *out) LH_NX;
  /* Write samples indices[0..n) into dst[field], one after the other, contiguous. Any order, any thread, several
   * at once. `epoch` is for augmentation. A faulty sample: an error that names its index and what is wrong.
   * required; [any] */
  lh_status (*fetch)(lh_data *, int32_t split, const int64_t *indices, uint64_t n, int64_t epoch,
                     void *const *dst) LH_NX;
} lh_data_v0;

#ifdef __cplusplus
}
#endif
#endif
