// host/kinds/component.hpp - a running component: its object, the host's own copy of its table, and who it is.
// The one way in which the host holds plugins' objects; destroyed in reverse order of creation. [main]
#pragma once
#include "plugin/host_table.hpp"
#include "plugin/loader.hpp"

#include <lhost/accelerator.h>
#include <lhost/callback.h>
#include <lhost/checkpointer.h>
#include <lhost/collective.h>
#include <lhost/data.h>
#include <lhost/launcher.h>
#include <lhost/logger.h>
#include <lhost/model.h>
#include <lhost/optimizer.h>
#include <lhost/precision.h>
#include <lhost/profiler.h>
#include <lhost/scheduler.h>
#include <lhost/strategy.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace lhost {

struct Identity {
  std::string kind;      // "logger"
  std::string name;      // "csv"
  std::string instance;  // its `name` in the manifest, else its place: "logger[0]"
  std::string version;
  uint64_t flags = 0;  // the component's
};

// What a plugin reported, with the component that raised it. Not a Failure yet: who catches it adds the place.
struct ComponentFailure : std::runtime_error {
  lh_code code;
  std::string component, where;
  ComponentFailure(const PluginError& e)
      : std::runtime_error(e.message), code(e.code), component(e.component), where(e.where) {}
};
[[noreturn]] void raise(lh_status);
inline void check(lh_status s) {
  if (s) [[unlikely]]
    raise(s);
}

// Runs what a plugin called in the host: nothing is thrown back into a plugin.
template <class F>
lh_status answer(const char* where, F&& f) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return nullptr;
    } else {
      return f();
    }
  } catch (const ComponentFailure& e) {
    return make_status(e.code, e.component, e.where, e.what());
  } catch (const std::bad_alloc&) {
    return make_status(LH_RESOURCE_EXHAUSTED, "host", where, "out of memory");
  } catch (const std::exception& e) {
    return make_status(LH_INTERNAL, "host", where, e.what());
  }
}

// What create() gave: taken into a Component of the right kind.
struct Created {
  void* self = nullptr;
  const void* table = nullptr;
  Identity identity;
};

template <class Self, class Table>
class Component {
 public:
  Component() = default;
  explicit Component(const Created& c) : Component() {  // complete from here on: what is refused is destroyed
    self_ = static_cast<Self*>(c.self);
    table_ = copy_table<Table>(c.table);
    identity_ = c.identity;
    require();
  }
  Component(Component&& o) noexcept
      : self_(std::exchange(o.self_, nullptr)), table_(o.table_), identity_(std::move(o.identity_)) {}
  Component& operator=(Component&& o) noexcept {
    reset();
    self_ = std::exchange(o.self_, nullptr);
    table_ = o.table_;
    identity_ = std::move(o.identity_);
    return *this;
  }
  ~Component() { reset(); }
  void reset() {
    if (self_ && table_.destroy) table_.destroy(self_);
    self_ = nullptr;
  }

  explicit operator bool() const { return self_ != nullptr; }
  Self* self() const { return self_; }
  const Table& table() const { return table_; }
  const Table* operator->() const { return &table_; }
  const Identity& identity() const { return identity_; }

 private:
  void require() const;  // component.cpp: the slots that the kind's header calls required
  Self* self_ = nullptr;
  Table table_{};
  Identity identity_;
};

using Accelerator = Component<lh_accelerator, lh_accelerator_v0>;
using Callback = Component<lh_callback, lh_callback_v0>;
using Checkpointer = Component<lh_checkpointer, lh_checkpointer_v0>;
using Collective = Component<lh_collective, lh_collective_v0>;
using Data = Component<lh_data, lh_data_v0>;
using Launcher = Component<lh_launcher, lh_launcher_v0>;
using Logger = Component<lh_logger, lh_logger_v1>;
using Model = Component<lh_model, lh_model_v0>;
using Optimizer = Component<lh_optimizer, lh_optimizer_v0>;
using Precision = Component<lh_precision, lh_precision_v0>;
using Profiler = Component<lh_profiler, lh_profiler_v0>;
using Scheduler = Component<lh_scheduler, lh_scheduler_v0>;
using Strategy = Component<lh_strategy, lh_strategy_v0>;

// Waits for an operation of a collective and releases it; NULL: it is complete already. Throws its failure.
void finish(lh_work*);

// A world of one: strategies never meet a missing collective.
const lh_collective_v0& collective_of_one();
lh_collective* collective_of_one_self();

inline std::string_view view(lh_str s) { return {s.ptr, static_cast<size_t>(s.len)}; }
inline lh_str str(std::string_view s) { return {s.data(), s.size()}; }

}  // namespace lhost
