#include "plugin/work.hpp"

#include "plugin/host_table.hpp"
#include "plugin/loader.hpp"

#include <new>

struct lh_work {
  lh_work_ops ops;
  void* self;
};

namespace lhost {
namespace {

lh_status fault(const char* where, const std::string& why) {
  return make_status(LH_PLUGIN_FAULT, "host", where,
                     why + "; this is a bug in the plugin that made the work");
}

template <class F>
lh_status guarded(const char* where, F call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return fault(where, std::string("an exception left its operation: ") + e.what());
  } catch (...) {
    return fault(where, "an exception left its operation");
  }
}

void destroy(const lh_work_ops& ops, void* self) {
  if (!ops.destroy) return;
  const lh_status ignored = guarded("release", [&]() -> lh_status {
    ops.destroy(self);
    return nullptr;
  });
  take(ignored);
}

lh_status wrap(const lh_work_ops* foreign, void* self, lh_work** out) {
  if (!foreign || !out) return fault("wrap", "no operations or no place for the work were given");
  const auto ops = copy_table<lh_work_ops>(foreign);
  if (!ops.wait) {
    destroy(ops, self);
    return fault("wrap", "the operations have no wait");
  }
  *out = new (std::nothrow) lh_work{ops, self};
  if (*out) return nullptr;
  destroy(ops, self);
  return make_status(LH_RESOURCE_EXHAUSTED, "host", "wrap", "out of memory");
}

void release(lh_work* w) {
  if (!w) return;
  destroy(w->ops, w->self);
  delete w;
}

lh_status wait(lh_work* w, int64_t timeout_ns) {
  if (!w) return nullptr;  // no work: done
  return guarded("wait", [&] { return w->ops.wait(w->self, timeout_ns); });
}

// Work without a stream of its own is done when it is waited for.
lh_status wait_stream(lh_work* w, lh_stream* stream) {
  if (!w || !w->ops.wait_stream) return wait(w, -1);
  return guarded("wait_stream", [&] { return w->ops.wait_stream(w->self, stream); });
}

}  // namespace

const lh_work_v0& work_service() {
  static const lh_work_v0 table = {sizeof(lh_work_v0), 0, wrap, release, wait, wait_stream};
  return table;
}

}  // namespace lhost
