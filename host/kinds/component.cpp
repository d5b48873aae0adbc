#include "kinds/component.hpp"

#include "plugin/work.hpp"

#include <lhost/tensor.h>

namespace lhost {

void raise(lh_status s) { throw ComponentFailure(take(s)); }

void finish(lh_work* work) {
  lh_status s = work_service().wait(work, -1);  // the operation has its own time limit
  work_service().release(work);
  check(s);
}

namespace {

void require_slot(bool present, const Identity& id, const char* slot) {
  if (present) return;
  throw ComponentFailure(PluginError{
      LH_PLUGIN_FAULT, id.kind + ":" + id.name, "create",
      "its table lacks the required slot \"" + std::string(slot) + "\"; this is a fault of the plugin"});
}

}  // namespace

#define REQUIRE(slot) require_slot(table_.slot != nullptr, identity_, #slot)
template <>
void Accelerator::require() const {
  REQUIRE(destroy), REQUIRE(score), REQUIRE(device_count), REQUIRE(open);
}
template <>
void Callback::require() const {
  REQUIRE(destroy), REQUIRE(events), REQUIRE(on_event);
}
template <>
void Checkpointer::require() const {
  REQUIRE(destroy), REQUIRE(suffix), REQUIRE(save), REQUIRE(load);
}
template <>
void Collective::require() const {
  REQUIRE(destroy), REQUIRE(init), REQUIRE(all_reduce), REQUIRE(broadcast), REQUIRE(all_gather);
}
template <>
void Data::require() const {
  REQUIRE(destroy), REQUIRE(describe), REQUIRE(fetch);
}
template <>
void Launcher::require() const {
  REQUIRE(destroy), REQUIRE(env);
}
template <>
void Logger::require() const {
  REQUIRE(destroy), REQUIRE(open), REQUIRE(record);
}
template <>
void Model::require() const {
  REQUIRE(destroy), REQUIRE(unit_count), REQUIRE(unit), REQUIRE(param_count), REQUIRE(param),
      REQUIRE(set_mode), REQUIRE(training_step);
}
template <>
void Optimizer::require() const {
  REQUIRE(destroy), REQUIRE(step);
}
template <>
void Precision::require() const {
  REQUIRE(destroy), REQUIRE(policy);
}
template <>
void Profiler::require() const {
  REQUIRE(destroy), REQUIRE(start), REQUIRE(begin), REQUIRE(end);
}
template <>
void Scheduler::require() const {
  REQUIRE(destroy), REQUIRE(rate);
}
template <>
void Strategy::require() const {
  REQUIRE(destroy), REQUIRE(setup);
}
#undef REQUIRE

namespace {

lh_status copy_through(lh_collective*, const lh_collective_args* a, lh_work** work) {
  *work = nullptr;  // already complete
  if (a->in == a->out) return nullptr;
  const lh_host& h = host_table();
  const auto* ops = static_cast<const lh_tensor_ops_v0*>(h.get_service(&h, str(LH_TENSOR_OPS_SERVICE)));
  return ops->copy(a->out, a->in);
}

}  // namespace

const lh_collective_v0& collective_of_one() {
  static const lh_collective_v0 table = [] {
    lh_collective_v0 t{};
    t.size = sizeof t;
    t.destroy = [](lh_collective*) {};
    t.init = [](lh_collective*, lh_run*, const lh_collective_init*) -> lh_status { return nullptr; };
    t.group = [](lh_collective*, const int64_t*, uint64_t, lh_process_group** out) -> lh_status {
      *out = nullptr;  // all ranks, which are this one
      return nullptr;
    };
    t.group_free = [](lh_collective*, lh_process_group*) {};
    t.all_reduce = t.reduce = t.broadcast = t.all_gather = t.gather = copy_through;
    t.reduce_scatter = t.scatter = t.all_to_all = copy_through;
    t.barrier = [](lh_collective*, const lh_collective_args*, lh_work** work) -> lh_status {
      *work = nullptr;
      return nullptr;
    };
    t.abort = [](lh_collective*, lh_code) {};
    return t;
  }();
  return table;
}

lh_collective* collective_of_one_self() {
  static char object;  // an address of its own is all that the handle needs
  return reinterpret_cast<lh_collective*>(&object);
}

}  // namespace lhost
