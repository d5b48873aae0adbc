/* lhost/sdk/c.h - the few macros that a plugin in C wants. Include once per plugin. */
#ifndef LHOST_SDK_C_H
#define LHOST_SDK_C_H
#include <lhost/abi.h>
#include <string.h>

static const lh_host *lh_h; /* set before anything else runs */
static lh_str lh_component_name;

#define LH_TRY(x)       \
  do {                  \
    lh_status s_ = (x); \
    if (s_) return s_;  \
  } while (0)

static inline lh_str lh_text(const char *s) { return (lh_str){s, strlen(s)}; }
static inline lh_status lh_fail(lh_code code, const char *where, const char *message) {
  return lh_h->error_new(lh_h, code, lh_component_name, lh_text(where), lh_text(message));
}
/* A service table, or NULL if this host does not offer it. */
static inline const void *lh_service(const char *id) { return lh_h->get_service(lh_h, lh_text(id)); }

#define LH_OPTION(TYPE, KEY, DOC, ...) \
  { .size = sizeof(lh_option), .type = TYPE, .key = LH_STR(KEY), .doc = LH_STR(DOC), __VA_ARGS__ }

/* "strategy/0.1", "ddp" -> "strategy:ddp": how errors name this plugin */
static inline void lh_name_component(const char *kind, const char *name) {
  static char text[96];
  const size_t k = strcspn(kind, "/"), n = strlen(name);
  if (k + n + 2 > sizeof text) return;
  memcpy(text, kind, k);
  text[k] = ':';
  memcpy(text + k + 1, name, n);
  lh_component_name = (lh_str){text, k + n + 1};
}

/* One component, one plugin. KIND is the header's LH_*_KIND; CREATE fills self and table; BIND asks for the
 * services, or is lh_no_services. */
static inline lh_status lh_no_services(void) { return NULL; }
#define LH_PLUGIN(KIND, COMPONENT, VERSION, OPTIONS, N_OPTIONS, CREATE, BIND) \
  LH_PLUGIN_WITH_FLAGS(KIND, COMPONENT, VERSION, OPTIONS, N_OPTIONS, CREATE, BIND, 0)
#define LH_PLUGIN_WITH_FLAGS(KIND, COMPONENT, VERSION, OPTIONS, N_OPTIONS, CREATE, BIND, FLAGS) \
  LH_PLUGIN_NOTE(COMPONENT, VERSION, "", KIND ":" COMPONENT, "");                               \
  static lh_status lh_plugin_init_(const lh_host *h) {                                          \
    lh_h = h;                                                                                   \
    lh_name_component(KIND, COMPONENT);                                                         \
    return BIND();                                                                              \
  }                                                                                             \
  static const lh_component lh_the_component_ = {.size = sizeof(lh_component),                  \
                                                 .kind = LH_STR(KIND),                          \
                                                 .name = LH_STR(COMPONENT),                     \
                                                 .version = LH_STR(VERSION),                    \
                                                 .flags = FLAGS,                                \
                                                 .options = OPTIONS,                            \
                                                 .n_options = N_OPTIONS,                        \
                                                 .option_stride = sizeof(lh_option),            \
                                                 .create = CREATE};                             \
  LH_EXPORT const lh_plugin *lh_plugin_v1(void) {                                               \
    static const lh_plugin p = {.size = sizeof(lh_plugin),                                      \
                                .abi_major = LH_ABI_MAJOR,                                      \
                                .abi_minor = LH_TARGET_MINOR,                                   \
                                .min_minor = LH_TARGET_MINOR,                                   \
                                .name = LH_STR(COMPONENT),                                      \
                                .version = LH_STR(VERSION),                                     \
                                .n_components = 1,                                              \
                                .component_stride = sizeof(lh_component),                       \
                                .components = &lh_the_component_,                               \
                                .init = lh_plugin_init_};                                       \
    return &p;                                                                                  \
  }
#endif
