// tests/support/component.hpp - load one component of one plugin in a test, without the host: a small host table, typed
// options by key, errors as exceptions. For tests of plugins; LHOST_TEST_PLUGINS is the folder <kind>/<name>.so.
//   Component<lh_logger, lh_logger_v1> csv("logger", "csv", {{"file", "x.csv"}});
//   csv.call(csv->open(csv.self, &info));
#pragma once
#ifndef LH_HOST_BUILD
#define LH_HOST_BUILD  // a test that loads plugins is a host
#endif
#include <lhost/abi.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <list>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

struct lh_error {
  lh_code code;
  std::string component, where, message;
};

namespace lhost_test {

struct StatusError : std::runtime_error {
  lh_code code;
  StatusError(lh_code c, const std::string& m) : std::runtime_error(m), code(c) {}
};

inline std::string text(lh_str s) { return {s.ptr, s.len}; }
inline lh_str str(const std::string& s) { return {s.data(), s.size()}; }

// Services that a test offers: id -> table.
inline std::map<std::string, const void*>& services() {
  static std::map<std::string, const void*> s;
  return s;
}
inline std::vector<std::string>& logged() {
  static std::vector<std::string> l;
  return l;
}

inline const lh_host& host() {
  static const lh_host h = {
      sizeof(lh_host),
      LH_ABI_MAJOR,
      LH_ABI_MINOR,
      0,
      LH_STR("test"),
      LH_STR("0"),
      nullptr,
      [](const lh_host*, lh_code c, lh_str component, lh_str where, lh_str message) -> lh_status {
        return new lh_error{c, text(component), text(where), text(message)};
      },
      [](const lh_error* e) { return e->code; },
      [](const lh_error* e) { return str(e->message); },
      [](lh_error* e) { delete e; },
      [](const lh_host*, int32_t, lh_str, lh_str m) { logged().push_back(text(m)); },
      [](const lh_host*, lh_str id) -> const void* {
        const auto i = services().find(text(id));
        return i == services().end() ? nullptr : i->second;
      }};
  return h;
}

inline void call(lh_status s) {
  if (!s) return;
  StatusError e(s->code, s->message);
  delete s;
  throw e;
}
// The message of a call that must fail.
inline std::string failure(lh_status s) {
  if (!s) return "(no error)";
  std::string m = s->message;
  delete s;
  return m;
}

using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<double>, std::vector<std::string>>;
using Options = std::map<std::string, OptionValue>;

template <class Object, class Table>
class Component {
 public:
  Component(const std::string& kind, const std::string& name, const Options& options = {},
            lh_run* run = nullptr) {
    const std::string path = std::string(LHOST_TEST_PLUGINS) + "/" + kind + "/" + name + ".so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    auto entry = reinterpret_cast<const lh_plugin* (*)()>(dlsym(library, "lh_plugin_v1"));
    const lh_plugin* plugin = entry();
    call(plugin->init(&host()));
    const lh_component* component = nullptr;
    for (uint32_t i = 0; i < plugin->n_components; ++i) {
      auto* c = reinterpret_cast<const lh_component*>(reinterpret_cast<const char*>(plugin->components) +
                                                      i * plugin->component_stride);
      if (text(c->name) == name) component = c;
    }
    if (!component) throw std::runtime_error(path + " has no component " + name);
    std::vector<lh_value> values;
    for (uint32_t i = 0; i < component->n_options; ++i)
      values.push_back(value(component->options[i], options));
    for (const auto& [key, unused] : options)
      if (!known(*component, key)) throw std::runtime_error("no option " + key);
    lh_create_args a{sizeof(lh_create_args), 0, values.data(), values.size(), run, LH_STR("test")};
    const void* table_address = nullptr;
    void* object = nullptr;
    call(component->create(component, &a, &object, &table_address));
    self = static_cast<Object*>(object);
    std::memcpy(&table, table_address, sizeof table);
  }
  ~Component() {
    if (self) table.destroy(self);
  }
  Component(const Component&) = delete;
  const Table* operator->() const { return &table; }
  static void call(lh_status s) { lhost_test::call(s); }

  Object* self = nullptr;
  Table table{};

 private:
  static bool known(const lh_component& c, const std::string& key) {
    for (uint32_t i = 0; i < c.n_options; ++i)
      if (text(c.options[i].key) == key) return true;
    return false;
  }
  // Given ones; defaults are read from the schema's literal, simple forms only.
  lh_value value(const lh_option& o, const Options& options) {
    lh_value v{};
    const auto given = options.find(text(o.key));
    if (given == options.end()) {
      const std::string d = text(o.def);
      if (d.empty() || o.type >= LH_T_LIST_INT) return from_list(o, d);
      v.type = o.type;
      if (o.type == LH_T_BOOL) v.u.b = d == "true";
      else if (o.type == LH_T_INT || o.type == LH_T_SIZE) v.u.i = std::stoll(d);
      else if (o.type == LH_T_FLOAT) v.u.f = std::stod(d);
      else if (o.type == LH_T_ENUM) v.u.i = choice(o, d.substr(1, d.size() - 2));
      else if (o.type == LH_T_DURATION) v.u.i = static_cast<int64_t>(1e9 * std::stod(d.substr(1)));
      else v.u.s = str(keep(d.size() >= 2 ? d.substr(1, d.size() - 2) : ""));
      return v;
    }
    v.type = o.type;
    if (auto* b = std::get_if<bool>(&given->second)) v.u.b = *b;
    if (auto* i = std::get_if<int64_t>(&given->second)) {
      if (o.type == LH_T_FLOAT || o.type == LH_T_SHARE) v.u.f = static_cast<double>(*i);
      else v.u.i = *i;
    }
    if (auto* f = std::get_if<double>(&given->second)) v.u.f = *f;
    if (auto* s = std::get_if<std::string>(&given->second)) {
      if (o.type == LH_T_ENUM) v.u.i = choice(o, *s);
      else v.u.s = str(keep(*s));
    }
    if (auto* l = std::get_if<std::vector<int64_t>>(&given->second)) {
      v.u.li = ints_.emplace_back(*l).data();
      v.n = static_cast<uint32_t>(l->size());
    }
    if (auto* l = std::get_if<std::vector<double>>(&given->second)) {
      v.u.lf = floats_.emplace_back(*l).data();
      v.n = static_cast<uint32_t>(l->size());
    }
    if (auto* l = std::get_if<std::vector<std::string>>(&given->second)) {
      std::vector<lh_str>& texts = texts_.emplace_back();
      for (const std::string& s : *l) texts.push_back(str(keep(s)));
      v.u.ls = texts.data();
      v.n = static_cast<uint32_t>(l->size());
    }
    return v;
  }
  lh_value from_list(const lh_option& o, const std::string& d) {
    lh_value v{};
    if (d.size() < 2) return v;
    v.type = o.type;
    std::vector<double> numbers;
    for (size_t at = 1; at + 1 < d.size();) {
      size_t used = 0;
      numbers.push_back(std::stod(d.substr(at), &used));
      at += used + 2;
    }
    v.n = static_cast<uint32_t>(numbers.size());
    if (o.type == LH_T_LIST_INT) v.u.li = ints_.emplace_back(numbers.begin(), numbers.end()).data();
    else if (o.type == LH_T_LIST_FLOAT) v.u.lf = floats_.emplace_back(numbers).data();
    else if (o.type == LH_T_SHARE) v.u.f = std::stod(d), v.n = 0;
    return v;
  }
  static int64_t choice(const lh_option& o, const std::string& name) {
    for (uint32_t i = 0; i < o.n_choices; ++i)
      if (text(o.choices[i]) == name) return i;
    throw std::runtime_error("no choice " + name);
  }
  const std::string& keep(std::string s) { return strings_.emplace_back(std::move(s)); }
  std::list<std::string> strings_;
  std::list<std::vector<int64_t>> ints_;
  std::list<std::vector<double>> floats_;
  std::list<std::vector<lh_str>> texts_;
};

}  // namespace lhost_test
