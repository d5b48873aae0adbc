/* single_c.c - the strategy `single` in plain C: one process, nothing to distribute. A slot that stays NULL
 * is not in the step at all. */
#include <lhost/sdk/c.h>
#include <lhost/strategy.h>

struct lh_strategy { /* it needs no state of its own: one object serves every run */
  int unused;
};
static struct lh_strategy the_one;

static void destroy(lh_strategy *s) { (void)s; }

static lh_status setup(lh_strategy *s, lh_run *run, const lh_setup *a, lh_topology *inout) {
  (void)s, (void)run, (void)inout;
  if (a->env->world_size == 1) return NULL;
  return lh_fail(LH_INVALID_ARGUMENT, "setup",
                 "found more than one process, expected one; choose another strategy");
}

static const lh_strategy_v0 table = {.size = sizeof table, .destroy = destroy, .setup = setup};

static lh_status create(const lh_component *c, const lh_create_args *a, void **self, const void **out) {
  (void)c, (void)a;
  *self = &the_one;
  *out = &table;
  return NULL;
}

LH_PLUGIN(LH_STRATEGY_KIND, "single_c", "1.0.0", NULL, 0, create, lh_no_services)
