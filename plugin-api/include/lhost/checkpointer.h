/* lhost/checkpointer.h - kind checkpointer/0.1: a tree of values and tensors <-> the bytes of a file. Draft.
 *
 * The host gives the tree its meaning and commits files (temporary name, flush, rename); a checkpointer only knows
 * its format. A file can never name code to run. */
#ifndef LHOST_CHECKPOINTER_H
#define LHOST_CHECKPOINTER_H
#include "abi.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_CHECKPOINTER_KIND "checkpointer/0.1"

enum { LH_LEAF_VALUE = 0, LH_LEAF_TENSOR = 1, LH_LEAF_UNKNOWN = 2 /* in the file, but not a type of ours */ };
typedef struct lh_leaf { /* one leaf, addressed by the keys that lead to it; list positions as decimals */
  uint32_t size, n_path;
  const lh_str *path;
  int32_t kind; /* LH_LEAF_*; UNKNOWN has a STR as value that says what it is */
  uint32_t rsvd0;
  lh_value value; /* VALUE: NONE BOOL INT FLOAT STR LIST_INT LIST_FLOAT LIST_STR */
  lh_view view;   /* TENSOR: contiguous, in host memory */
} lh_leaf;
typedef struct lh_sink { /* lent to save: bytes go out in order */
  uint32_t size, rsvd0;
  void *ctx;
  lh_status (*write)(void *ctx, lh_bytes) LH_NX;
} lh_sink;
typedef struct lh_leaf_visitor { /* lent to load */
  uint32_t size, rsvd0;
  void *ctx;
  /* borrowed until load returns when the bytes lie in the file, else until leaf returns: copy what you keep */
  lh_status (*leaf)(void *ctx, const lh_leaf *) LH_NX;
} lh_leaf_visitor;

typedef struct lh_checkpointer lh_checkpointer;
typedef struct lh_checkpointer_v0 {
  LH_OBJECT(lh_checkpointer);
  lh_str (*suffix)(lh_checkpointer *) LH_NX; /* ".ckpt"; static; required; [main] */
  lh_status (*save)(lh_checkpointer *, const lh_leaf *leaves, uint64_t n, const lh_sink *)
      LH_NX; /* required; [io] */
  /* `file` is the whole file; any content, also hostile, gives an error or leaves, never a fault. required; [main] */
  lh_status (*load)(lh_checkpointer *, lh_bytes file, const lh_leaf_visitor *) LH_NX;
} lh_checkpointer_v0;

#ifdef __cplusplus
}
#endif
#endif
