/* virtual_world.c - the reference for runs on several ranks: one process works through the micro-batches of N ranks. With
 * data.batch_size as on one rank and accumulate_grad_batches = A x N, micro-batch k of a window is that of rank k mod N.
 * Each rank's gradients are added in its own order, then those of the ranks in rank order, then divided once.
 *
 * Two components: the strategy does the adding; the precision backend's loss scale of N makes the one division the
 * window's last operation, with the seeds that N ranks have. */
#include <lhost/precision.h>
#include <lhost/sdk/c.h>
#include <lhost/strategy.h>

enum { kMost = 8 };
static const lh_params_v0 *params;
static const lh_tensor_v0 *tensors;
static const lh_tensor_ops_v0 *ops;

struct lh_strategy {
  lh_run *run;
  int64_t ranks;
  int used[kMost];
  lh_tensor *sum[kMost]; /* of each rank, in this window */
};
static struct lh_strategy world;

static void destroy(lh_strategy *s) {
  for (int r = 0; r < kMost; r++) tensors->release(s->sum[r]);
  memset(s, 0, sizeof *s);
}
static lh_status setup(lh_strategy *s, lh_run *run, const lh_setup *a, lh_topology *t) {
  (void)a;
  (void)t;
  s->run = run;
  return NULL;
}
static lh_status plan(lh_strategy *s, lh_plan *p, const lh_plan_v0 *b) {
  uint32_t ids[256], n = 0, group = 0;
  for (uint32_t i = 0; i < params->count(s->run) && n < 256; i++) {
    lh_param_info info = {.size = sizeof info};
    LH_TRY(params->info(s->run, i, &info));
    if (info.flags == LH_P_TRAINABLE) ids[n++] = i;
  }
  const lh_flat_args a = {.size = sizeof a,
                          .layout = LH_FULL_LOOSE | LH_GRAD_FLAT,
                          .params = ids,
                          .n_params = n,
                          .pad_multiple = 1,
                          .shard_count = 1};
  return b->flat(p, &a, &group);
}
static lh_status after_backward(lh_strategy *s, const lh_step *step) {
  lh_tensor *grad = params->full_grad(s->run, 0);
  const int r = (int)(step->micro % s->ranks);
  if (step->micro == 0) memset(s->used, 0, sizeof s->used);
  if (!s->sum[r]) {
    lh_view v;
    LH_TRY(tensors->view(grad, &v));
    const lh_device cpu = {LH_DEVICE_CPU, 0};
    LH_TRY(tensors->empty(s->run, cpu, v.dtype, v.shape, 1, 0, &s->sum[r]));
  }
  LH_TRY(s->used[r] ? ops->axpby(s->sum[r], 1, grad, 1) : ops->copy(s->sum[r], grad));
  s->used[r] = 1;
  return ops->fill(grad, 0); /* the next micro-batch is another rank's */
}
static lh_status sync_grads(lh_strategy *s, const lh_step *step) {
  (void)step;
  lh_tensor *grad = params->full_grad(s->run, 0);
  LH_TRY(ops->copy(grad, s->sum[0]));
  for (int r = 1; r < s->ranks; r++)
    if (s->used[r]) LH_TRY(ops->axpby(grad, 1, s->sum[r], 1));
  return NULL;
}
static const lh_strategy_v0 strategy = {.size = sizeof strategy,
                                        .destroy = destroy,
                                        .setup = setup,
                                        .plan = plan,
                                        .after_backward = after_backward,
                                        .sync_grads = sync_grads};
static lh_status create_strategy(const lh_component *c, const lh_create_args *a, void **self,
                                 const void **out) {
  (void)c;
  world.ranks = a->values[0].u.i;
  *self = &world;
  *out = &strategy;
  return NULL;
}

static double ranks_of_scale;
static void keep(lh_precision *p) { (void)p; }
static lh_status policy(lh_precision *p, lh_policy *out) {
  (void)p;
  (void)out;
  return NULL;
}
static double scale(lh_precision *p) {
  (void)p;
  return ranks_of_scale;
}
static const lh_precision_v0 precision = {
    .size = sizeof precision, .destroy = keep, .policy = policy, .loss_scale = scale};
static lh_status create_precision(const lh_component *c, const lh_create_args *a, void **self,
                                  const void **out) {
  (void)c;
  ranks_of_scale = (double)a->values[0].u.i;
  *self = &ranks_of_scale;
  *out = &precision;
  return NULL;
}

static const lh_option options[] = {LH_OPTION(LH_T_INT, "ranks", "how many there are to be",
                                              .flags = LH_O_REQUIRED, .min = LH_STR("1"),
                                              .max = LH_STR("8"))};
static const lh_component components[] = {{.size = sizeof(lh_component),
                                           .kind = LH_STR(LH_STRATEGY_KIND),
                                           .name = LH_STR("virtual_world"),
                                           .version = LH_STR("1.0"),
                                           .options = options,
                                           .n_options = 1,
                                           .option_stride = sizeof(lh_option),
                                           .create = create_strategy},
                                          {.size = sizeof(lh_component),
                                           .kind = LH_STR(LH_PRECISION_KIND),
                                           .name = LH_STR("virtual_world"),
                                           .version = LH_STR("1.0"),
                                           .options = options,
                                           .n_options = 1,
                                           .option_stride = sizeof(lh_option),
                                           .create = create_precision}};
static lh_status init(const lh_host *h) {
  lh_h = h;
  lh_name_component(LH_STRATEGY_KIND, "virtual_world");
  params = lh_service(LH_PARAMS_SERVICE);
  tensors = lh_service(LH_TENSOR_SERVICE);
  ops = lh_service(LH_TENSOR_OPS_SERVICE);
  return params && tensors && ops ? NULL : lh_fail(LH_UNIMPLEMENTED, "init", "a service is missing");
}
LH_PLUGIN_NOTE("virtual_world", "1.0", "",
               LH_STRATEGY_KIND ":virtual_world," LH_PRECISION_KIND ":virtual_world", "");
LH_EXPORT const lh_plugin *lh_plugin_v1(void) {
  static const lh_plugin p = {.size = sizeof(lh_plugin),
                              .abi_major = LH_ABI_MAJOR,
                              .abi_minor = LH_TARGET_MINOR,
                              .min_minor = LH_TARGET_MINOR,
                              .name = LH_STR("virtual_world"),
                              .version = LH_STR("1.0"),
                              .n_components = 2,
                              .component_stride = sizeof(lh_component),
                              .components = components,
                              .init = init};
  return &p;
}
