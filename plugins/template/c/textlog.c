/* textlog.c - a logger that writes one line of text for each record. Copy, rename, change.
 * Only C11 and lhost's headers; all calls come from one background thread. */
#include <lhost/logger.h>
#include <lhost/sdk/c.h>
#include <stdio.h>
#include <stdlib.h>

struct lh_logger {
  FILE *file;
  char name[256];
};

static void destroy(lh_logger *self) {
  if (self->file) fclose(self->file);
  free(self);
}

static lh_status open_file(lh_logger *self, const lh_run_info *run) {
  char path[4096];
  int n = snprintf(path, sizeof path, "%.*s/%s", (int)run->dir.len, run->dir.ptr, self->name);
  if (n < 0 || (size_t)n >= sizeof path)
    return lh_fail(LH_INVALID_ARGUMENT, "open", "the path of the log is too long");
  self->file = fopen(path, "a"); /* a resumed run goes on at the end */
  return self->file
             ? NULL
             : lh_fail(LH_UNAVAILABLE, "open", "the log cannot be opened; is the run's folder writable?");
}

static lh_status record(lh_logger *self, const lh_record *r) {
  fprintf(self->file, "step %lld", (long long)r->global_step);
  for (uint64_t i = 0; i < r->n_scalars; ++i)
    fprintf(self->file, "  %.*s %.9g", (int)r->scalars[i].name.len, r->scalars[i].name.ptr,
            r->scalars[i].value);
  fputc('\n', self->file);
  return ferror(self->file)
             ? lh_fail(LH_UNAVAILABLE, "record", "the log cannot be written; is the disk full?")
             : NULL;
}

static lh_status flush(lh_logger *self) {
  return fflush(self->file) ? lh_fail(LH_UNAVAILABLE, "flush", "the log cannot be written; is the disk full?")
                            : NULL;
}

static const lh_logger_v1 table = {
    .size = sizeof table, .destroy = destroy, .open = open_file, .record = record, .flush = flush};

static const lh_option options[] = {
    LH_OPTION(LH_T_STR, "file", "name of the file in the run's folder", .def = LH_STR("\"log.txt\""))};

static lh_status create(const lh_component *component, const lh_create_args *args, void **self,
                        const void **out) {
  (void)component;
  const lh_str file = args->values[0].u.s; /* borrowed until create returns */
  lh_logger *l = calloc(1, sizeof *l);
  if (!l) return lh_fail(LH_RESOURCE_EXHAUSTED, "create", "out of memory");
  if (file.len >= sizeof l->name) {
    free(l);
    return lh_fail(LH_INVALID_ARGUMENT, "create", "file: the name is longer than 255 bytes");
  }
  memcpy(l->name, file.ptr, file.len);
  *self = l;
  *out = &table;
  return NULL;
}
LH_PLUGIN(LH_LOGGER_KIND, "acme.textlog", "1.0.0", options, 1, create, lh_no_services)
