/* memory_c.c - a logger in plain C: one line per record into <run folder>/memory_c.txt.
 * All calls come from one background thread, so they may block. */
#define _POSIX_C_SOURCE 200809L
#include <lhost/logger.h>
#include <lhost/sdk/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct lh_logger {
  FILE *file;
  int64_t kept; /* bytes that a resumed run keeps */
};

static lh_status written(lh_logger *l) {
  return fflush(l->file) == 0 ? NULL
                              : lh_fail(LH_RESOURCE_EXHAUSTED, "write", "memory_c.txt cannot be written");
}

static lh_status open_file(lh_logger *l, const lh_run_info *run) {
  char path[4096], message[4200];
  const int resumed = run->flags & LH_RUN_RESUMED;
  snprintf(path, sizeof path, "%.*s/memory_c.txt", (int)run->dir.len, run->dir.ptr);
  l->file = fopen(path, resumed ? "r+" : "w");
  if (l->file && (!resumed || (ftruncate(fileno(l->file), l->kept) == 0 && fseek(l->file, 0, SEEK_END) == 0)))
    return NULL;
  snprintf(message, sizeof message, "%s cannot be written", path);
  return lh_fail(LH_PERMISSION, "open", message);
}
static lh_status record(lh_logger *l, const lh_record *r) {
  fprintf(l->file, "step=%lld epoch=%lld", (long long)r->global_step, (long long)r->epoch);
  for (uint64_t i = 0; i < r->n_scalars; i++)
    fprintf(l->file, " %.*s=%.17g", (int)r->scalars[i].name.len, r->scalars[i].name.ptr, r->scalars[i].value);
  fputc('\n', l->file);
  return written(l);
}
static lh_status flush(lh_logger *l) { return written(l); }
static lh_status close_file(lh_logger *l, lh_code outcome, lh_str message) {
  (void)outcome, (void)message;
  int failed = l->file && fclose(l->file) != 0;
  l->file = NULL;
  return failed ? lh_fail(LH_RESOURCE_EXHAUSTED, "close", "memory_c.txt cannot be written") : NULL;
}

/* A resumed run goes on where the checkpoint was written: no record is there twice. */
static lh_status save_state(lh_logger *l, const lh_state_out *out) {
  LH_TRY(written(l));
  const lh_value bytes = {.type = LH_T_INT, .u.i = ftell(l->file)};
  return out->put(out->ctx, lh_text("bytes"), &bytes);
}
static lh_status load_state(lh_logger *l, const lh_state_in *in) {
  lh_value bytes = {.type = LH_T_NONE};
  LH_TRY(in->get(in->ctx, lh_text("bytes"), &bytes));
  l->kept = bytes.type == LH_T_INT ? bytes.u.i : 0;
  return NULL;
}

static void destroy(lh_logger *l) {
  if (l->file) fclose(l->file);
  free(l);
}
static const lh_logger_v1 table = {.size = sizeof table,
                                   .destroy = destroy,
                                   .save_state = save_state,
                                   .load_state = load_state,
                                   .open = open_file,
                                   .record = record,
                                   .flush = flush,
                                   .close = close_file};

static lh_status create(const lh_component *c, const lh_create_args *a, void **self, const void **out) {
  (void)c, (void)a;
  *self = calloc(1, sizeof(lh_logger));
  *out = &table;
  return *self ? NULL : lh_fail(LH_RESOURCE_EXHAUSTED, "create", "out of memory");
}

LH_PLUGIN(LH_LOGGER_KIND, "memory_c", "1.0.0", NULL, 0, create, lh_no_services)
