/* lhost/abi.h - the base of the plugin ABI: types, errors, options, identity, the one exported symbol.
 *
 * C11, no dependency, 64-bit little-endian. FROZEN: members are only ever appended (README.md, "The law").
 *   - Every struct that crosses starts with `size`, set by whoever fills it to its own sizeof. A reader
 *     touches a member only if `size` reaches its end: LH_HAS. Larger than known is fine.
 *   - Strings are {pointer, length}, UTF-8, no NUL promised. Passed in: borrowed until the call returns.
 *     In static tables: they live as long as the plugin, which is never unloaded.
 *   - Errors are objects that only the host makes and frees. Nothing unwinds across the boundary.
 * Thread tags on every call: [main] control thread, never during a step; [train] whichever thread drives the
 * loop, one at a time; [backward] the autograd engine's thread; [io] the host's one background thread,
 * may block; [any] concurrent. */
#ifndef LHOST_ABI_H
#define LHOST_ABI_H
#include <stddef.h>
#include <stdint.h>

#define LH_ABI_MAJOR 1u
#define LH_ABI_MINOR 1u
#ifndef LH_TARGET_MINOR /* -DLH_TARGET_MINOR=n: "must run on hosts >= 1.n" */
#define LH_TARGET_MINOR LH_ABI_MINOR
#endif

#define LH_EXPORT __attribute__((visibility("default")))
#if defined(__cplusplus) && !defined(LH_HOST_BUILD)
#define LH_NX noexcept /* a plugin's function that may throw does not compile */
#else
#define LH_NX /* the host keeps its landing pads: what leaves a foreign plugin is caught there */
#endif
#define LH_MEMBER_END(T, f) (offsetof(T, f) + sizeof(((T *)0)->f))
/* "does the other side know this member, and is it set": the only legal test of an appended member */
#define LH_HAS(p, T, f) ((p) && (p)->size >= LH_MEMBER_END(T, f) && (p)->f)

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t lh_bool; /* 0 or 1; never _Bool, whose other values are undefined behaviour */
typedef struct lh_str {
  const char *ptr;
  uint64_t len;
} lh_str;
typedef struct lh_bytes {
  const void *ptr;
  uint64_t len;
} lh_bytes;
#define LH_STR(lit) \
  { (lit), sizeof(lit) - 1 }

typedef struct lh_error lh_error;
typedef lh_error *lh_status; /* NULL = success; else the receiver owns it and frees it with error_free */
typedef struct lh_tensor lh_tensor;       /* tensor.h */
typedef struct lh_work lh_work;           /* a completion; tensor.h */
typedef struct lh_run lh_run;             /* one training run in one process (one rank); opaque to plugins */
typedef struct lh_placement lh_placement; /* where a piece lies in the whole; params.h */

typedef int32_t lh_code;
enum {
  LH_OK = 0,
  LH_CANCELLED = 1,
  LH_UNKNOWN = 2,
  LH_INVALID_ARGUMENT = 3,
  LH_DEADLINE = 4,
  LH_NOT_FOUND = 5,
  LH_ALREADY_EXISTS = 6,
  LH_PERMISSION = 7,
  LH_RESOURCE_EXHAUSTED = 8, /* memory, disk space, handles */
  LH_FAILED_PRECONDITION = 9,
  LH_ABORTED = 10,
  LH_OUT_OF_RANGE = 11,
  LH_UNIMPLEMENTED = 12,
  LH_INTERNAL = 13,
  LH_UNAVAILABLE = 14,
  LH_DATA_LOSS = 15, /* a file that is cut short or damaged */
  LH_ABI_MISMATCH = 32,
  LH_PLUGIN_FAULT = 33, /* a plugin broke the rules: an exception left a slot, a required slot is missing */
  LH_PEER_LOST = 34
};

/* dtype and device carry DLPack's numbers, so lh_view is byte for byte a DLTensor (DLPack 1.x) */
typedef struct lh_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} lh_dtype;
typedef struct lh_device {
  int32_t type, index;
} lh_device;
typedef struct lh_view {
  void *data;
  lh_device device;
  int32_t ndim;
  lh_dtype dtype;
  int64_t *shape, *strides; /* in elements */
  uint64_t byte_offset;
} lh_view;
enum { LH_DT_INT = 0, LH_DT_UINT = 1, LH_DT_FLOAT = 2, LH_DT_BFLOAT = 4, LH_DT_BOOL = 6 };
enum { LH_DEVICE_CPU = 1, LH_DEVICE_CUDA = 2 };

/* ---- options: what a component lets the user write in its manifest table ------------------------------ */
enum {
  LH_T_NONE = 0, /* in lh_value only: no default, and the user gave nothing */
  LH_T_BOOL = 1,
  LH_T_INT = 2,
  LH_T_FLOAT = 3,
  LH_T_STR = 4,
  LH_T_PATH = 5,     /* relative to the file that names it; arrives absolute */
  LH_T_ENUM = 6,     /* one of `choices`; arrives as its index in u.i */
  LH_T_SIZE = 7,     /* "25MiB", or a number of bytes; u.i in bytes */
  LH_T_DURATION = 8, /* "90s", "00:30:00"; u.i in nanoseconds */
  LH_T_LIST_INT = 9,
  LH_T_LIST_FLOAT = 10,
  LH_T_LIST_STR = 11,
  LH_T_SHARE = 12,  /* "5%", or a number in 0..1; u.f in 0..1 */
  LH_T_CADENCE = 13 /* { steps = 500 }; `n` = LH_EVERY_*, u.i = count (seconds: nanoseconds) */
};
enum {
  LH_EVERY_STEPS = 1,
  LH_EVERY_BATCHES = 2,
  LH_EVERY_SAMPLES = 3,
  LH_EVERY_EPOCHS = 4,
  LH_EVERY_SECONDS = 5
};
enum {
  LH_O_REQUIRED = 1,
  LH_O_DEPRECATED = 2,  /* still accepted; replaced_by names the new key */
  LH_O_SECRET = 4,      /* masked in every file and message */
  LH_O_MUST_EXIST = 16, /* PATH: a file or folder that has to be there before a run starts */
  LH_O_HYPER = 8        /* FLOAT of an optimizer: may differ per parameter group and change while running */
};
typedef struct lh_option {
  uint32_t size;
  int32_t type; /* LH_T_* */
  uint32_t flags, n_choices;
  lh_str key;              /* may be dotted: "train.images" */
  lh_str doc;              /* one line, lower case, no full stop */
  lh_str def, min, max;    /* TOML literals as text; empty = none; for lists min and max hold per element */
  const lh_str *choices;   /* LH_T_ENUM */
  lh_str replaced_by;      /* LH_O_DEPRECATED */
  uint32_t min_len, rsvd0; /* lists: least number of elements */
} lh_option;
typedef struct lh_value { /* one checked value, same index as its lh_option */
  int32_t type;           /* LH_T_*; LH_T_NONE = not given and without default */
  uint32_t n;             /* lists: length; CADENCE: the unit */
  union {
    int64_t i;
    double f;
    lh_bool b;
    lh_str s;
    const int64_t *li;
    const double *lf;
    const lh_str *ls;
  } u; /* arrays and strings are borrowed until the call that brings them returns */
} lh_value;

/* ---- state: what a component wants to find again after a resume --------------------------------------- */
typedef struct lh_state_out { /* lent to save_state */
  uint32_t size, rsvd0;
  void *ctx;
  /* BOOL, INT, FLOAT, STR, LIST_INT, LIST_FLOAT; copied before the call returns */
  lh_status (*put)(void *ctx, lh_str name, const lh_value *) LH_NX;
  /* placement NULL: every rank holds the whole tensor */
  lh_status (*put_tensor)(void *ctx, lh_str name, lh_tensor *, const lh_placement *) LH_NX;
} lh_state_out;
typedef struct lh_state_in { /* lent to load_state */
  uint32_t size, rsvd0;
  void *ctx;
  /* the value as it was put, borrowed until load_state returns; type NONE if the file has no such name */
  lh_status (*get)(void *ctx, lh_str name, lh_value *out) LH_NX;
  lh_status (*get_tensor)(void *ctx, lh_str name, lh_tensor *dst, const lh_placement *) LH_NX;
} lh_state_in;

/* What a run is doing. */
enum { LH_STAGE_FIT = 0, LH_STAGE_VALIDATE = 1, LH_STAGE_TEST = 2, LH_STAGE_PREDICT = 3 };

/* ---- the host as a plugin sees it ----------------------------------------------------------------------- */
enum { LH_LOG_DEBUG = 0, LH_LOG_INFO = 1, LH_LOG_WARN = 2, LH_LOG_ERROR = 3 };
typedef struct lh_host {
  uint32_t size, abi_major, abi_minor, rsvd0;
  lh_str name, version;
  void *impl;
  /* A new error. component: who raises it ("strategy:ddp"); where: the function; message: what was found,
   * what was expected, a way out. Cannot fail.                                                      [any] */
  lh_status (*error_new)(const struct lh_host *, lh_code, lh_str component, lh_str where, lh_str message)
      LH_NX;
  lh_code (*error_code)(const lh_error *) LH_NX;   /* [any] */
  lh_str (*error_message)(const lh_error *) LH_NX; /* lives as long as the error; [any] */
  void (*error_free)(lh_error *) LH_NX;            /* [any] */
  /* The run's log; plugins never write to stdout or stderr.                                        [any] */
  void (*log)(const struct lh_host *, int32_t level, lh_str component, lh_str message) LH_NX;
  /* A table of functions by name ("lhost.tensor/0"); NULL = not offered. Static: ask once.         [any] */
  const void *(*get_service)(const struct lh_host *, lh_str id)LH_NX;
} lh_host;

/* ---- what a plugin gives ------------------------------------------------------------------------------- */
typedef struct lh_create_args {
  uint32_t size, rsvd0;
  const lh_value *values; /* one per option of the component, same order */
  uint64_t n_values;
  lh_run *run;     /* for services */
  lh_str instance; /* its `name` in the manifest, else its place: "logger[0]" */
} lh_create_args;
typedef struct lh_component {
  uint32_t size, rsvd0;
  lh_str
      kind; /* kind and revision: "logger/1", "strategy/0.1" (a draft: host and plugin must agree exactly) */
  lh_str
      name; /* what `use` names; in the tree one word, elsewhere with the vendor in front: "acme.periodic" */
  lh_str version, summary;
  uint64_t flags; /* per kind, see its header */
  const lh_option *options;
  uint32_t n_options, option_stride;
  /* Only stores the options; touches no file, device or thread. *table is the kind's table, static or living
   * as long as *self. [main] */
  lh_status (*create)(const struct lh_component *, const lh_create_args *, void **self, const void **table)
      LH_NX;
  /* Of a strategy: what it wants of other tables unless the manifest says otherwise, as manifest lines:
   * "launcher.use = \"spawn\"". */
  const lh_str *defaults;
  uint32_t n_defaults, rsvd1;
} lh_component;
typedef struct lh_plugin {
  uint32_t size, abi_major, abi_minor, min_minor; /* min_minor: oldest host it runs on */
  lh_str name, version, license;
  uint32_t n_components, component_stride;
  const lh_component *components;
  /* Once per process, before any create: keep the host pointer, ask for services. No threads, files, devices.
   * [main] */
  lh_status (*init)(const lh_host *) LH_NX;
} lh_plugin;

/* The one exported symbol. Pure: no side effect, callable before init, also in a throw-away process. */
LH_EXPORT const lh_plugin *lh_plugin_v1(void) LH_NX;

/* ---- identity readable without running any code: an ELF note ------------------------------------------- */
#define LH_NOTE_OWNER "LHOST"
#define LH_NOTE_TYPE 1u
typedef struct lh_note_v1 { /* the note's description; fixed for ever; NUL-padded texts */
  uint32_t size, abi_major, abi_minor, min_minor;
  char name[64], version[32], license[32];
  char components[512]; /* "strategy/0.1:ddp,strategy/0.1:ddp_spawn" */
  char torch[96];       /* "" = no LibTorch; else the version it was built against: "2.11.0" */
} lh_note_v1;
typedef struct lh_elf_note {
  uint32_t namesz, descsz, type;
  char name[8];
  lh_note_v1 desc;
} lh_elf_note;
#define LH_PLUGIN_NOTE(NAME, VERSION, LICENSE, COMPONENTS, TORCH)                                  \
  __attribute__((section(".note.lhost"), used, aligned(4))) static const lh_elf_note lh_note_ = {  \
      sizeof(LH_NOTE_OWNER),                                                                       \
      sizeof(lh_note_v1),                                                                          \
      LH_NOTE_TYPE,                                                                                \
      LH_NOTE_OWNER,                                                                               \
      {sizeof(lh_note_v1), LH_ABI_MAJOR, LH_TARGET_MINOR, LH_TARGET_MINOR, NAME, VERSION, LICENSE, \
       COMPONENTS, TORCH}}

/* First members of every kind's table. destroy [main]; save_state and load_state [main], NULL = no state.
 * load_state comes after create (and setup, where a kind has one) and before the first step. */
#define LH_OBJECT(T)                                        \
  uint32_t size, rsvd0;                                     \
  void (*destroy)(T *) LH_NX;                               \
  lh_status (*save_state)(T *, const lh_state_out *) LH_NX; \
  lh_status (*load_state)(T *, const lh_state_in *) LH_NX

#ifdef __cplusplus
}
#endif
#endif
