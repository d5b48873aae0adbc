/* single - one process. Every slot but setup is NULL, so the compiled step holds nothing of it. */
#include <lhost/sdk/c.h>
#include <lhost/strategy.h>

struct lh_strategy {
  char unused;
};
static struct lh_strategy the_one;

static void destroy(lh_strategy *self) { (void)self; }

static lh_status setup(lh_strategy *self, lh_run *run, const lh_setup *s, lh_topology *topology) {
  (void)self;
  (void)run;
  (void)topology;
  if (s->env->world_size == 1) return NULL;
  return lh_fail(LH_INVALID_ARGUMENT, "setup",
                 "found several ranks, but \"single\" trains in one process; set trainer.devices = 1 and "
                 "trainer.num_nodes = 1, or choose a strategy for several ranks");
}

static const lh_strategy_v0 table = {.size = sizeof table, .destroy = destroy, .setup = setup};

static lh_status create(const lh_component *c, const lh_create_args *a, void **self, const void **out) {
  (void)c;
  (void)a;
  *self = &the_one;
  *out = &table;
  return NULL;
}
LH_PLUGIN_WITH_FLAGS(LH_STRATEGY_KIND, "single", "1.0.0", NULL, 0, create, lh_no_services,
                     LH_STRATEGY_ONE_RANK)
