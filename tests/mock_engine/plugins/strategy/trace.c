/* trace.c - writes every event of a strategy into the run's log, in the order in which it comes. */
#include <lhost/sdk/c.h>
#include <lhost/strategy.h>
#include <stdio.h>
#include <stdlib.h>

static const lh_params_v0 *params;

struct lh_strategy {
  lh_run *run;
  lh_bool fail;
};

static void destroy(lh_strategy *s) { free(s); }

static void say(const char *event, lh_str detail) {
  char line[200];
  int n = snprintf(line, sizeof line, "%s%s%.*s", event, detail.len ? " " : "", (int)detail.len, detail.ptr);
  lh_h->log(lh_h, LH_LOG_INFO, lh_component_name, (lh_str){line, (uint64_t)n});
}
static lh_status say_unit(lh_strategy *s, const char *event, uint32_t unit) {
  lh_unit_info i = {.size = sizeof i};
  if (unit == LH_UNIT_ALL) return say(event, lh_text("all")), NULL;
  LH_TRY(params->unit_info(s->run, unit, &i));
  say(event, i.name.len ? i.name : lh_text("root"));
  return NULL;
}
static lh_status say_step(const char *event, const lh_step *step) {
  char detail[80];
  snprintf(detail, sizeof detail, "step=%lld micro=%d/%d last=%u", (long long)step->global_step,
           (int)step->micro, (int)step->micro_count, step->last_micro);
  say(event, lh_text(detail));
  return NULL;
}

static lh_status setup(lh_strategy *s, lh_run *run, const lh_setup *a, lh_topology *inout) {
  (void)a, (void)inout;
  s->run = run;
  say("setup", lh_text(""));
  return NULL;
}
static lh_status plan(lh_strategy *s, lh_plan *p, const lh_plan_v0 *b) {
  (void)s, (void)p, (void)b;
  say("plan", lh_text(""));
  return NULL;
}
static lh_status fit_start(lh_strategy *s) {
  (void)s;
  say("fit_start", lh_text(""));
  return NULL;
}
static lh_status grad_ready(lh_strategy *s, uint32_t p) {
  lh_param_info i = {.size = sizeof i};
  if (s->fail) return lh_fail(LH_ABORTED, "grad_ready", "told to fail inside backward");
  LH_TRY(params->info(s->run, p, &i));
  say("grad_ready", i.name);
  return NULL;
}
static lh_status params_ready(lh_strategy *s, uint32_t u) { return say_unit(s, "params_ready", u); }
static lh_status pre_forward(lh_strategy *s, uint32_t u, int32_t phase) {
  (void)phase;
  return say_unit(s, "pre_forward", u);
}
static lh_status post_forward(lh_strategy *s, uint32_t u, int32_t phase) {
  (void)phase;
  return say_unit(s, "post_forward", u);
}
static lh_status pre_backward(lh_strategy *s, uint32_t u) { return say_unit(s, "pre_backward", u); }
static lh_status post_backward(lh_strategy *s, uint32_t u) { return say_unit(s, "post_backward", u); }
static lh_status begin_micro(lh_strategy *s, const lh_step *step) {
  return (void)s, say_step("begin_micro", step);
}
static lh_status after_backward(lh_strategy *s, const lh_step *step) {
  return (void)s, say_step("after_backward", step);
}
static lh_status sync_grads(lh_strategy *s, const lh_step *step) {
  return (void)s, say_step("sync_grads", step);
}
static lh_status after_step(lh_strategy *s, const lh_step *step) {
  return (void)s, say_step("after_step", step);
}
static lh_status teardown(lh_strategy *s) {
  (void)s;
  say("teardown", lh_text(""));
  return NULL;
}

static const lh_strategy_units_v0 units = {.size = sizeof units,
                                           .pre_forward = pre_forward,
                                           .post_forward = post_forward,
                                           .pre_backward = pre_backward,
                                           .post_backward = post_backward};
static const lh_strategy_v0 table = {.size = sizeof table,
                                     .destroy = destroy,
                                     .setup = setup,
                                     .plan = plan,
                                     .params_ready = params_ready,
                                     .fit_start = fit_start,
                                     .begin_micro = begin_micro,
                                     .grad_ready = grad_ready,
                                     .after_backward = after_backward,
                                     .sync_grads = sync_grads,
                                     .after_step = after_step,
                                     .teardown = teardown,
                                     .units = &units};

static lh_status create(const lh_component *c, const lh_create_args *a, void **self, const void **out) {
  (void)c;
  lh_strategy *s = calloc(1, sizeof *s);
  if (!s) return lh_fail(LH_RESOURCE_EXHAUSTED, "create", "out of memory");
  s->fail = a->values[0].u.b;
  *self = s;
  *out = &table;
  return NULL;
}
static lh_status bind_services(void) {
  params = lh_service(LH_PARAMS_SERVICE);
  return params ? NULL : lh_fail(LH_UNIMPLEMENTED, "init", "the host does not offer " LH_PARAMS_SERVICE);
}

static const lh_option options[] = {
    LH_OPTION(LH_T_BOOL, "fail", "return an error in grad_ready", .def = LH_STR("false"))};
LH_PLUGIN(LH_STRATEGY_KIND, "trace", "1.0.0", options, 1, create, bind_services)
