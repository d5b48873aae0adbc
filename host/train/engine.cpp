#include "train/engine.hpp"

#include "base/failure.hpp"
#include "kinds/component.hpp"

#include <mutex>
#include <set>

namespace lhost {

Engine load_engine(const std::string& path) {
  const auto entry = reinterpret_cast<lh_engine_entry>(load_engine_entry(path, LH_ENGINE_ENTRY));
  Engine e;
  const lh_engine_v0* table = entry();
  if (table->size != sizeof(lh_engine_v0))
    throw Failure(Exit::environment, path + " was built with another lhost; build host and engine together");
  e.table = *table;
  static std::mutex mutex;
  static std::set<const void*> offered;  // a process may have many runs
  if (const std::lock_guard lock(mutex); offered.insert(table).second)
    offer_services([get = e.table.get_service](std::string_view id) { return get(str(id)); });
  const auto service = [&](const char* id) {
    const void* t = e.table.get_service(str(id));
    if (!t) throw Failure(Exit::environment, path + " does not offer " + id);
    return t;
  };
  e.tensor = copy_table<lh_tensor_v0>(service(LH_TENSOR_SERVICE));
  e.ops = copy_table<lh_tensor_ops_v0>(service(LH_TENSOR_OPS_SERVICE));
  e.params = copy_table<lh_params_v0>(service(LH_PARAMS_SERVICE));
  return e;
}

}  // namespace lhost
