#include "plugin/host_table.hpp"

#include "base/log.hpp"
#include "plugin/work.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

struct lh_error {
  lhost::PluginError is;
};

namespace lhost {
namespace {

std::string_view view(lh_str s) { return s.ptr ? std::string_view(s.ptr, s.len) : std::string_view(); }

// What an error becomes when there is no memory left to make one.
lh_error& no_memory() {
  static lh_error e{{LH_RESOURCE_EXHAUSTED, "host", "error_new", "out of memory"}};
  return e;
}
[[maybe_unused]] const lh_error& made_before_it_is_needed = no_memory();

struct Shared {
  std::mutex mutex;
  std::vector<ServiceSource> sources;
};
Shared& shared() {
  static auto& s = *new Shared;  // plugins' threads may ask until the very end
  return s;
}

void host_log(const lh_host*, int32_t level, lh_str component, lh_str message) {
  try {
    const auto l = static_cast<Level>(std::clamp(level, int32_t{LH_LOG_DEBUG}, int32_t{LH_LOG_ERROR}));
    log(l, std::string(view(component)) + ": " + std::string(view(message)));
  } catch (...) {  // a log that fails must not stop a run, nor throw into a plugin
  }
}

const void* host_service(const lh_host*, lh_str id) {
  if (view(id) == LH_WORK_SERVICE) return &work_service();
  const std::lock_guard<std::mutex> lock(shared().mutex);
  for (const ServiceSource& source : shared().sources)
    if (const void* table = source(view(id))) return table;
  return nullptr;
}

void free_error(lh_error* e) {
  if (e != &no_memory()) delete e;
}

}  // namespace

lh_status make_status(lh_code code, std::string component, std::string where, std::string message) {
  try {
    return new lh_error{{code, std::move(component), std::move(where), std::move(message)}};
  } catch (const std::bad_alloc&) {
    return &no_memory();
  }
}

PluginError take(lh_status s) {
  if (!s) return {};
  PluginError e = s == &no_memory() ? s->is : std::move(s->is);
  free_error(s);
  return e;
}

const lh_host& host_table() {
  static const lh_host table = {
      sizeof(lh_host),
      LH_ABI_MAJOR,
      LH_ABI_MINOR,
      0,
      LH_STR("lhost"),
      LH_STR(LHOST_VERSION),
      nullptr,
      [](const lh_host*, lh_code code, lh_str component, lh_str where, lh_str message) -> lh_status {
        try {
          return new lh_error{
              {code, std::string(view(component)), std::string(view(where)), std::string(view(message))}};
        } catch (...) {
          return &no_memory();
        }
      },
      [](const lh_error* e) { return e ? e->is.code : lh_code{LH_OK}; },
      [](const lh_error* e) {
        return e ? lh_str{e->is.message.data(), e->is.message.size()} : lh_str{nullptr, 0};
      },
      free_error,
      host_log,
      host_service};
  return table;
}

void offer_services(ServiceSource source) {
  const std::lock_guard<std::mutex> lock(shared().mutex);
  shared().sources.push_back(std::move(source));
}
void withdraw_services() {
  const std::lock_guard<std::mutex> lock(shared().mutex);
  shared().sources.clear();
}

}  // namespace lhost
