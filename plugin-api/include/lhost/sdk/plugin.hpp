// lhost/sdk/plugin.hpp - what every C++ plugin needs: errors both ways, services, state, the exported symbol.
// Header-only C++17, no LibTorch; it compiles into the plugin and nothing of it crosses the boundary.
#pragma once
#include <lhost/abi.h>
#include <lhost/sdk/options.hpp>

#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lhost {

// Set by the host before anything else runs; hidden visibility makes them one per plugin.
inline const lh_host* host = nullptr;
inline std::string_view component_name;  // "logger:csv": who raises this plugin's errors

// An error with a code. Throw it anywhere in a plugin: the host prints it with component and place.
struct Error : std::runtime_error {
  lh_code code;
  Error(lh_code c, const std::string& what) : std::runtime_error(what), code(c) {}
};

// A status from the host on its way through C++ code: passes unchanged, so the first culprit keeps the blame. Who
// catches one may ask for its text and drop it.
struct StatusError : std::exception {
  lh_status status;
  explicit StatusError(lh_status s) : status(s), text_(view(host->error_message(s))) {}
  StatusError(StatusError&& o) noexcept
      : status(std::exchange(o.status, nullptr)), text_(std::move(o.text_)) {}
  ~StatusError() override {
    if (status) host->error_free(status);
  }
  lh_code code() const noexcept { return host->error_code(status); }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};
inline void check(lh_status s) {
  if (s) throw StatusError(s);
}

inline lh_status current_exception_status(const char* where) noexcept {
  auto make = [&](lh_code c, std::string_view what) {
    // LibTorch appends its stack: of no use to who reads a message
    for (const char* stack : {"\nException raised from ", "\nframe #"})
      what = what.substr(0, what.find(stack));
    if (c == LH_INTERNAL && what.find("can't allocate memory") != what.npos) c = LH_RESOURCE_EXHAUSTED;
    return host->error_new(host, c, str(component_name), str(where), str(what));
  };
  try {
    throw;
  } catch (StatusError& e) {
    return std::exchange(e.status, nullptr);
  } catch (const Error& e) {
    return make(e.code, e.what());
  } catch (const std::bad_alloc&) {
    return make(LH_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::invalid_argument& e) {
    return make(LH_INVALID_ARGUMENT, e.what());
  } catch (const std::exception& e) {
    return make(LH_INTERNAL, e.what());
  } catch (...) {
    return make(LH_UNKNOWN, "something was thrown that is not a std::exception");
  }
}
// The exception barrier: f's exception becomes a status.
template <class F>
lh_status guard(const char* where, F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return current_exception_status(where);
  }
}

inline void log(int32_t level, const std::string& message) noexcept {
  host->log(host, level, str(component_name), str(message));
}

// A service table, copied at min(its size, ours): a slot that an older host lacks is NULL.
template <class T>
struct Service {
  T table{};
  void bind(const char* id) {
    auto* p = static_cast<const T*>(host->get_service(host, str(id)));
    if (!p) throw Error(LH_UNIMPLEMENTED, std::string("this host does not offer the service ") + id);
    std::memcpy(&table, p, p->size < sizeof(T) ? p->size : sizeof(T));
  }
  const T* operator->() const noexcept { return &table; }
};

// --- state: override save_state and load_state of any base class --------------------------------------------

class StateOut {
 public:
  explicit StateOut(const lh_state_out* s) : s_(s) {}
  void put(std::string_view name, int64_t v) const {
    value(name, LH_T_INT, [&](lh_value& x) { x.u.i = v; });
  }
  void put(std::string_view name, double v) const {
    value(name, LH_T_FLOAT, [&](lh_value& x) { x.u.f = v; });
  }
  void put(std::string_view name, std::string_view v) const {
    value(name, LH_T_STR, [&](lh_value& x) { x.u.s = str(v); });
  }

 private:
  template <class F>
  void value(std::string_view name, int32_t type, F set) const {
    lh_value x{};
    x.type = type;
    set(x);
    check(s_->put(s_->ctx, str(name), &x));
  }
  const lh_state_out* s_;
};

class StateIn {
 public:
  explicit StateIn(const lh_state_in* s) : s_(s) {}
  // Leaves `out` as it is and returns false if the file has no such value of this type.
  bool get(std::string_view name, int64_t& out) const {
    return value(name, LH_T_INT, [&](const lh_value& x) { out = x.u.i; });
  }
  bool get(std::string_view name, double& out) const {
    return value(name, LH_T_FLOAT, [&](const lh_value& x) { out = x.u.f; });
  }
  bool get(std::string_view name, std::string& out) const {
    return value(name, LH_T_STR, [&](const lh_value& x) { out.assign(x.u.s.ptr, x.u.s.len); });
  }

 private:
  template <class F>
  bool value(std::string_view name, int32_t type, F take) const {
    lh_value x{};
    check(s_->get(s_->ctx, str(name), &x));
    if (x.type != type) return false;
    take(x);
    return true;
  }
  const lh_state_in* s_;
};

// The root of every kind's base class.
class Component {
 public:
  virtual ~Component() = default;
  virtual void save_state(const StateOut&) {}
  virtual void load_state(const StateIn&) {}
};

// --- from a class to the exported symbol -------------------------------------------------------------------------

namespace detail {

// Is f overridden in D? &D::f names the class that declares it last.
#define LHOST_OVERRIDES(D, Base, f) (!std::is_same_v<decltype(&D::f), decltype(&Base::f)>)

// `self` of a component is a pointer to the kind's base class.
template <class Base, class Handle>
Base& self(Handle* h) noexcept {
  return *reinterpret_cast<Base*>(h);
}

// The slots that all kinds share.
template <class D, class Base, class Table>
Table object_table() {
  using Handle = typename Base::Handle;
  Table t{};
  t.size = sizeof t;
  t.destroy = [](Handle* h) noexcept { delete &self<Base>(h); };
  if (LHOST_OVERRIDES(D, Component, save_state))
    t.save_state = [](Handle* h, const lh_state_out* s) noexcept {
      return guard("save_state", [&] { self<Base>(h).save_state(StateOut(s)); });
    };
  if (LHOST_OVERRIDES(D, Component, load_state))
    t.load_state = [](Handle* h, const lh_state_in* s) noexcept {
      return guard("load_state", [&] { self<Base>(h).load_state(StateIn(s)); });
    };
  return t;
}

// What a component may learn when it is made; read by the base classes that need it.
inline thread_local lh_run* creating_run = nullptr;

template <class D, class Options>
std::unique_ptr<D> make(const Options& o) {
  if constexpr (std::is_constructible_v<D, const Options&>) return std::make_unique<D>(o);
  else return std::make_unique<D>();  // a class that takes no options
}
template <class Base>
void made(Base&) {}  // a base class with something to ask of the finished object has its own

// A class may say in a line what it is, for `lhost inspect`:  static constexpr const char* summary = "...";
template <class D, class = void>
struct Summary {
  static lh_str text() { return {nullptr, 0}; }
};
template <class D>
struct Summary<D, std::void_t<decltype(D::summary)>> {
  static lh_str text() { return str(D::summary); }
};

// And a strategy what it wants of other tables:  static constexpr const char* defaults[] = {"launcher.use = \"spawn\""};
template <class D, class = void>
struct Defaults {
  static void put(lh_component&) {}
};
template <class D>
struct Defaults<D, std::void_t<decltype(D::defaults)>> {
  static void put(lh_component& c) {
    static lh_str texts[std::size(D::defaults)];
    for (size_t i = 0; i < std::size(D::defaults); ++i) texts[i] = str(D::defaults[i]);
    c.defaults = texts;
    c.n_defaults = std::size(D::defaults);
  }
};

// Kind: the adapter of a kind's header, with `kind`, `Base`, `bind()` and `table<D>()`.
template <class Kind, class D, class Options>
const lh_plugin* single_plugin(const char* name, const char* version, uint64_t flags) noexcept {
  static lh_component component{};
  static lh_plugin plugin{};
  static std::string full_name;
  if (plugin.size) return &plugin;
  lh_component& c = component;
  c.size = sizeof c;
  c.kind = str(Kind::kind);
  c.name = str(name);
  c.version = str(version);
  c.summary = Summary<D>::text();
  c.flags = flags;
  Defaults<D>::put(c);
  c.options = described<Options>().data();
  c.n_options = described<Options>().size();
  c.option_stride = sizeof(lh_option);
  c.create = [](const lh_component*, const lh_create_args* a, void** out, const void** table) noexcept {
    return guard("create", [&] {
      static const auto t = Kind::template table<D>();
      creating_run = a->run;
      auto object = make<D>(described<Options>().read(*a));
      typename Kind::Base& base = *object;
      made(base);
      object.release();
      *out = &base;
      *table = &t;
    });
  };
  full_name = std::string(Kind::kind).substr(0, std::string_view(Kind::kind).find('/')) + ":" + name;
  component_name = full_name;
  plugin.abi_major = LH_ABI_MAJOR;
  plugin.abi_minor = plugin.min_minor = LH_TARGET_MINOR;
  plugin.name = str(name);
  plugin.version = str(version);
  plugin.n_components = 1;
  plugin.component_stride = sizeof(lh_component);
  plugin.components = &component;
  plugin.init = [](const lh_host* h) noexcept {
    host = h;
    return guard("init", [] { Kind::bind(); });
  };
  plugin.size = sizeof plugin;
  return &plugin;
}

}  // namespace detail
}  // namespace lhost

// One component, one plugin. KIND is the adapter in the kind's header, KIND_TEXT its LH_*_KIND.
#define LHOST_SINGLE_PLUGIN(KIND, KIND_TEXT, Class, Options, name, version, torch, flags) \
  LH_PLUGIN_NOTE(name, version, "", KIND_TEXT ":" name, torch);                           \
  extern "C" LH_EXPORT const lh_plugin* lh_plugin_v1(void) LH_NX {                        \
    return ::lhost::detail::single_plugin<KIND, Class, Options>(name, version, flags);    \
  }
