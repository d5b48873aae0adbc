/* acme.allreduce.c - data parallel training in plain C: every rank has the model; gradients are averaged
 * bucket by bucket while backward still runs. Needs nothing but the installed headers:
 *   cc -shared -fPIC -std=c11 -fvisibility=hidden -I <prefix>/include acme.allreduce.c -o acme.allreduce.so
 */
#include <lhost/sdk/c.h>
#include <lhost/strategy.h>
#include <stdlib.h>

static const lh_params_v0 *params;
static const lh_work_v0 *works;

typedef struct bucket {
  uint32_t size, missing; /* parameters; those whose gradient is still to come */
  lh_work *work;
} bucket;
struct lh_strategy {
  lh_run *run;
  const lh_collective_v0 *collective;
  lh_collective *ranks;
  int64_t bucket_cap;
  uint32_t n_params, n_buckets, next; /* next: the first bucket that has not left */
  bucket *buckets;                    /* bucket b is the host's flat group b */
  uint32_t *bucket_of, *ids;          /* by parameter; for plan() */
  lh_bool last_micro;
};

/* No work: the call was complete when it returned. */
static lh_status finish(lh_work **work) {
  lh_status e = *work ? works->wait_stream(*work, NULL) : NULL;
  works->release(*work);
  *work = NULL;
  return e;
}
static void destroy(lh_strategy *s) {
  for (uint32_t b = 0; b < s->n_buckets; b++) works->release(s->buckets[b].work); /* left by an error */
  free(s->buckets), free(s->bucket_of), free(s->ids), free(s);
}
/* The topology stays as the host proposes it: each rank reads its own share of every batch. */
static lh_status setup(lh_strategy *s, lh_run *run, const lh_setup *a, lh_topology *inout) {
  (void)inout;
  s->run = run;
  s->collective = a->collective;
  s->ranks = a->collective_self;
  s->n_params = params->count(run);
  s->buckets = calloc(s->n_params + 1u, sizeof *s->buckets);
  s->bucket_of = calloc(s->n_params + 1u, sizeof *s->bucket_of);
  s->ids = calloc(s->n_params + 1u, sizeof *s->ids);
  if (s->buckets && s->bucket_of && s->ids) return NULL;
  return lh_fail(LH_RESOURCE_EXHAUSTED, "setup", "out of memory");
}

/* Loose: weights stay where they are, only the gradients of a bucket lie in one buffer. */
static lh_status close_bucket(lh_strategy *s, lh_plan *plan, const lh_plan_v0 *host, uint32_t n) {
  const lh_flat_args a = {sizeof a,        LH_FULL_LOOSE | LH_GRAD_FLAT, s->ids, n, .pad_multiple = 1,
                          .shard_count = 1};
  uint32_t group; /* numbered from 0, like our buckets */
  s->buckets[s->n_buckets++].size = n;
  return host->flat(plan, &a, &group);
}
/* From the last parameter to the first: about the order in which gradients come. */
static lh_status plan(lh_strategy *s, lh_plan *p, const lh_plan_v0 *host) {
  uint32_t n = 0;
  int64_t bytes = 0;
  lh_dtype dtype = {0};
  for (uint32_t i = s->n_params; i-- > 0;) {
    lh_param_info info = {.size = sizeof info};
    LH_TRY(params->info(s->run, i, &info));
    if (info.flags != LH_P_TRAINABLE) continue; /* frozen, a buffer, or a second name */
    if (n && (bytes >= s->bucket_cap || memcmp(&dtype, &info.dtype, sizeof dtype) != 0)) {
      LH_TRY(close_bucket(s, p, host, n));
      n = 0, bytes = 0;
    }
    dtype = info.dtype;
    bytes += info.numel * dtype.bits / 8;
    s->bucket_of[i] = s->n_buckets;
    s->ids[n++] = i;
  }
  return n ? close_bucket(s, p, host, n) : NULL;
}
/* Every rank starts from the weights and buffers of rank 0. */
static lh_status params_ready(lh_strategy *s, uint32_t unit) {
  for (uint32_t i = 0; unit == LH_UNIT_ALL && i < s->n_params; i++) {
    lh_param_info info = {.size = sizeof info};
    LH_TRY(params->info(s->run, i, &info));
    if (info.flags & LH_P_ALIAS) continue;
    lh_tensor *t = params->tensor(s->run, i);
    const lh_collective_args a = {.size = sizeof a, .in = t, .out = t, .root = 0};
    lh_work *work = NULL;
    LH_TRY(s->collective->broadcast(s->ranks, &a, &work));
    LH_TRY(finish(&work));
  }
  return NULL;
}

static lh_status begin_micro(lh_strategy *s, const lh_step *step) {
  s->last_micro = step->last_micro;
  s->next = 0;
  for (uint32_t b = 0; b < s->n_buckets; b++) s->buckets[b].missing = s->buckets[b].size;
  return NULL;
}
/* In one order on all ranks, whatever the order of the gradients: else operations do not match. */
static lh_status start(lh_strategy *s, int all) {
  while (s->next < s->n_buckets && (all || s->buckets[s->next].missing == 0)) {
    lh_tensor *grad = params->full_grad(s->run, s->next);
    const lh_collective_args a = {.size = sizeof a, .op = LH_REDUCE_AVG, .in = grad, .out = grad};
    LH_TRY(s->collective->all_reduce(s->ranks, &a, &s->buckets[s->next++].work));
  }
  return NULL;
}
static lh_status grad_ready(lh_strategy *s, uint32_t p) {
  if (!s->last_micro) return NULL; /* the window's gradients are still being added up */
  s->buckets[s->bucket_of[p]].missing--;
  return start(s, 0);
}
/* Buckets that a parameter without a gradient holds back: its part is zero. */
static lh_status after_backward(lh_strategy *s, const lh_step *step) {
  return step->last_micro ? start(s, 1) : NULL;
}
static lh_status sync_grads(lh_strategy *s, const lh_step *step) {
  (void)step;
  for (uint32_t b = 0; b < s->n_buckets; b++) LH_TRY(finish(&s->buckets[b].work));
  return NULL;
}

static lh_status create(const lh_component *c, const lh_create_args *a, void **self, const void **out) {
  static const lh_strategy_v0 table = {.size = sizeof table,
                                       .destroy = destroy,
                                       .setup = setup,
                                       .plan = plan,
                                       .params_ready = params_ready,
                                       .begin_micro = begin_micro,
                                       .grad_ready = grad_ready,
                                       .after_backward = after_backward,
                                       .sync_grads = sync_grads};
  (void)c;
  lh_strategy *s = calloc(1, sizeof *s);
  if (!s) return lh_fail(LH_RESOURCE_EXHAUSTED, "create", "out of memory");
  s->bucket_cap = a->values[0].u.i;
  *self = s, *out = &table;
  return NULL;
}
static lh_status ask_services(void) {
  params = lh_service(LH_PARAMS_SERVICE);
  works = lh_service(LH_WORK_SERVICE);
  return params && works ? NULL : lh_fail(LH_UNIMPLEMENTED, "init", "the host lacks a service of strategies");
}
static const lh_option options[] = {
    LH_OPTION(LH_T_SIZE, "bucket_cap", "bytes of gradients in one all_reduce", .def = LH_STR("\"16KiB\""))};
LH_PLUGIN(LH_STRATEGY_KIND, "acme.allreduce", "1.0.0", options, 1, create, ask_services)
