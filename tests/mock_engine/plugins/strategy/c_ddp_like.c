/* c_ddp_like.c - replicas in plain C: flat groups of a few parameters, each averaged over the ranks as soon
 * as its gradients are in, while backward still runs. With one rank the numbers are those of `single`. */
#include <lhost/sdk/c.h>
#include <lhost/strategy.h>
#include <stdlib.h>

static const lh_params_v0 *params;
static const lh_work_v0 *works;

typedef struct bucket {
  uint32_t group, size, left; /* left: gradients of this micro-batch that are not in yet */
  lh_work *work;
} bucket;
struct lh_strategy {
  lh_run *run;
  const lh_collective_v0 *collective;
  lh_collective *collective_self;
  int64_t per_bucket;
  uint32_t n_buckets, next; /* next: the first bucket not started; all ranks start them in this order */
  bucket *buckets;
  uint32_t *bucket_of; /* by parameter */
  lh_bool last_micro;
};

static void destroy(lh_strategy *s) {
  free(s->buckets);
  free(s->bucket_of);
  free(s);
}

static lh_status setup(lh_strategy *s, lh_run *run, const lh_setup *a, lh_topology *inout) {
  (void)inout;
  const uint32_t n = params->count(run);
  s->run = run;
  s->collective = a->collective;
  s->collective_self = a->collective_self;
  s->buckets = calloc(n + 1u, sizeof *s->buckets);
  s->bucket_of = calloc(n + 1u, sizeof *s->bucket_of);
  if (s->buckets && s->bucket_of) return NULL;
  return lh_fail(LH_RESOURCE_EXHAUSTED, "setup", "out of memory");
}

static lh_status close_bucket(lh_strategy *s, lh_plan *p, const lh_plan_v0 *b, const uint32_t *ids,
                              uint32_t n) {
  const lh_flat_args a = {.size = sizeof a,
                          .layout = LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_FLAT,
                          .params = ids,
                          .n_params = n,
                          .pad_multiple = 1,
                          .shard_count = 1};
  bucket *k = &s->buckets[s->n_buckets++];
  k->size = n;
  return b->flat(p, &a, &k->group);
}
/* buckets in reverse order of the parameters: about the order in which gradients come */
static lh_status plan(lh_strategy *s, lh_plan *p, const lh_plan_v0 *b) {
  const uint32_t count = params->count(s->run);
  uint32_t *ids = calloc(count + 1u, sizeof *ids), n = 0;
  lh_status e = ids ? NULL : lh_fail(LH_RESOURCE_EXHAUSTED, "plan", "out of memory");
  for (uint32_t i = count; i-- > 0 && !e;) {
    lh_param_info info = {.size = sizeof info};
    e = params->info(s->run, i, &info);
    if (e || info.flags != LH_P_TRAINABLE) continue;
    s->bucket_of[i] = s->n_buckets;
    ids[n++] = i;
    if (n < s->per_bucket) continue;
    e = close_bucket(s, p, b, ids, n);
    n = 0;
  }
  if (n && !e) e = close_bucket(s, p, b, ids, n);
  free(ids);
  return e;
}

static lh_status finish(lh_work *w) {
  if (!w) return NULL;
  lh_status e = works->wait_stream(w, NULL);
  works->release(w);
  return e;
}
static lh_status fit_start(lh_strategy *s) { /* every rank starts from the values of rank 0 */
  for (uint32_t k = 0; k < s->n_buckets; k++) {
    lh_tensor *full = params->full(s->run, s->buckets[k].group);
    const lh_collective_args a = {.size = sizeof a, .in = full, .out = full};
    lh_work *w = NULL;
    LH_TRY(s->collective->broadcast(s->collective_self, &a, &w));
    LH_TRY(finish(w));
  }
  return NULL;
}

static lh_status begin_micro(lh_strategy *s, const lh_step *step) {
  s->last_micro = step->last_micro;
  s->next = 0;
  for (uint32_t k = 0; k < s->n_buckets; k++) s->buckets[k].left = s->buckets[k].size;
  return NULL;
}
static lh_status start_complete(lh_strategy *s, int all) {
  while (s->next < s->n_buckets && (all || s->buckets[s->next].left == 0)) {
    bucket *k = &s->buckets[s->next++];
    lh_tensor *grad = params->full_grad(s->run, k->group);
    const lh_collective_args a = {.size = sizeof a, .op = LH_REDUCE_AVG, .in = grad, .out = grad};
    LH_TRY(s->collective->all_reduce(s->collective_self, &a, &k->work));
  }
  return NULL;
}
static lh_status grad_ready(lh_strategy *s, uint32_t p) {
  if (!s->last_micro) return NULL;
  s->buckets[s->bucket_of[p]].left--;
  return start_complete(s, 0);
}
static lh_status sync_grads(lh_strategy *s, const lh_step *step) {
  (void)step;
  LH_TRY(start_complete(s, 1)); /* also those with a parameter that got no gradient */
  for (uint32_t k = 0; k < s->n_buckets; k++) {
    lh_work *w = s->buckets[k].work;
    s->buckets[k].work = NULL;
    LH_TRY(finish(w));
  }
  return NULL;
}

static const lh_strategy_v0 table = {.size = sizeof table,
                                     .destroy = destroy,
                                     .setup = setup,
                                     .plan = plan,
                                     .fit_start = fit_start,
                                     .begin_micro = begin_micro,
                                     .grad_ready = grad_ready,
                                     .sync_grads = sync_grads};

static lh_status create(const lh_component *c, const lh_create_args *a, void **self, const void **out) {
  (void)c;
  lh_strategy *s = calloc(1, sizeof *s);
  if (!s) return lh_fail(LH_RESOURCE_EXHAUSTED, "create", "out of memory");
  s->per_bucket = a->values[0].u.i;
  *self = s;
  *out = &table;
  return NULL;
}
static lh_status bind_services(void) {
  params = lh_service(LH_PARAMS_SERVICE);
  works = lh_service(LH_WORK_SERVICE);
  return params && works ? NULL : lh_fail(LH_UNIMPLEMENTED, "init", "the host lacks a service of strategies");
}

static const lh_option options[] = {
    LH_OPTION(LH_T_INT, "bucket_params", "parameters in one bucket", .def = LH_STR("2"), .min = LH_STR("1"))};
LH_PLUGIN(LH_STRATEGY_KIND, "c_ddp_like", "1.0.0", options, 1, create, bind_services)
