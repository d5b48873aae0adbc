#include "plugin/plugin_table.hpp"

#include "base/failure.hpp"
#include "plugin/kinds.hpp"

#include <cstring>

namespace lhost {
namespace {

// What no honest plugin reaches; beyond it a size or a length is garbage.
constexpr uint32_t kMaxTable = 64 * 1024;
constexpr uint32_t kMaxCount = 4096;
constexpr uint64_t kMaxText = 64 * 1024;

[[noreturn]] void refuse_table(const std::string& why) { throw Failure(Exit::plugin, why); }

void check_size(const std::string& what, uint64_t size, uint64_t least) {
  if (size < least || size > kMaxTable)
    refuse_table("malformed: " + what + " says that it has " + std::to_string(size) +
                 " bytes, expected at least " + std::to_string(least) + " and at most " +
                 std::to_string(kMaxTable));
}
void check_count(const std::string& what, uint64_t n, const void* list) {
  if (n > kMaxCount || (n && !list))
    refuse_table("malformed: " + what + " says that it has " + std::to_string(n) +
                 (list ? "" : " at no address"));
}
std::string text(const std::string& what, lh_str s) {
  if (s.len > kMaxText || (s.len && !s.ptr))
    refuse_table("malformed: " + what + " is a text of " + std::to_string(s.len) + " bytes" +
                 (s.ptr ? "" : " at no address"));
  return {s.ptr, s.len};
}

void same(const char* what, const std::string& note, const std::string& table) {
  if (note != table)
    refuse_table(std::string("its note lies: it gives the ") + what + " " + note + ", the plugin itself " +
                 table);
}

template <class T>
T read_table(const std::string& what, const void* foreign) {
  uint32_t size;
  std::memcpy(&size, foreign, sizeof size);
  check_size(what, size, sizeof(T));
  return copy_table<T>(foreign);
}

void check_options(const std::string& component, const lh_component& c) {
  check_count("the list of options of " + component, c.n_options, c.options);
  if (c.n_options) check_size("an option of " + component, c.option_stride, sizeof(lh_option));
  for (uint32_t i = 0; i < c.n_options; ++i) {
    const auto* at = reinterpret_cast<const char*>(c.options) + uint64_t{i} * c.option_stride;
    const std::string nth = "option " + std::to_string(i) + " of " + component;
    const auto o = read_table<lh_option>(nth, at);
    const std::string key = text("the key of " + nth, o.key);
    if (key.empty()) refuse_table(nth + " has no key");
    if (o.type <= LH_T_NONE || o.type > LH_T_CADENCE)
      refuse_table("option " + key + " of " + component + " has the type " + std::to_string(o.type) +
                   ", which this host does not know");
    for (lh_str s : {o.doc, o.def, o.min, o.max, o.replaced_by}) text("a text of option " + key, s);
    check_count("the list of choices of option " + key, o.n_choices, o.choices);
    if (o.type == LH_T_ENUM && o.n_choices == 0)
      refuse_table("option " + key + " of " + component + " has no choices");
    for (uint32_t j = 0; j < o.n_choices; ++j) text("a choice of option " + key, o.choices[j]);
  }
}

void check_component(const lh_component& c, const Note& note, std::vector<bool>& seen) {
  const std::string kind = text("a component's kind", c.kind);
  const std::string name = text("a component's name", c.name);
  const std::string label = split_kind(kind).first + ":" + name;
  text("the version of " + label, c.version);
  text("the summary of " + label, c.summary);
  for (size_t i = 0; i < note.components.size(); ++i) {
    const NotedComponent& noted = note.components[i];
    if (noted.kind + "/" + noted.revision != kind || noted.name != name) continue;
    if (seen[i]) refuse_table("offers the component " + label + " twice");
    seen[i] = true;
    if (!c.create) refuse_table("the component " + label + " has no create");
    check_count("the list of defaults of " + label, c.n_defaults, c.defaults);
    for (uint32_t d = 0; d < c.n_defaults; ++d) text("a default of " + label, c.defaults[d]);
    return check_options(label, c);
  }
  refuse_table("its note lies: it does not name the component " + kind + ":" + name +
               ", which the plugin offers");
}

const lh_plugin* call(PluginEntry entry) {
  try {
    return entry();
  } catch (const std::exception& e) {
    refuse_table(std::string("an exception left lh_plugin_v1: ") + e.what() +
                 "; this is a bug in the plugin");
  } catch (...) {
    refuse_table("an exception left lh_plugin_v1; this is a bug in the plugin");
  }
}

}  // namespace

void copy_table(void* own, uint32_t own_size, const void* foreign) {
  uint32_t size;
  std::memcpy(&size, foreign, sizeof size);
  std::memset(own, 0, own_size);
  std::memcpy(own, foreign, size < own_size ? size : own_size);
  std::memcpy(own, &own_size, sizeof own_size);
}

void read_plugin_table(PluginEntry entry, LoadedPlugin& plugin) {
  const lh_plugin* foreign = call(entry);
  if (!foreign) refuse_table("lh_plugin_v1 returned no table");
  plugin.table = read_table<lh_plugin>("the plugin's table", foreign);
  const lh_plugin& t = plugin.table;
  const Note& note = plugin.note;
  same("ABI major", std::to_string(note.abi_major), std::to_string(t.abi_major));
  same("ABI minor", std::to_string(note.abi_minor), std::to_string(t.abi_minor));
  same("oldest host ABI minor", std::to_string(note.min_minor), std::to_string(t.min_minor));
  same("name", note.name, text("the plugin's name", t.name));
  same("version", note.version, text("the plugin's version", t.version));
  text("the plugin's licence", t.license);
  check_count("the list of components", t.n_components, t.components);
  if (t.n_components) check_size("a component", t.component_stride, sizeof(lh_component));
  std::vector<bool> seen(note.components.size());
  for (uint32_t i = 0; i < t.n_components; ++i) {
    const auto* at = reinterpret_cast<const char*>(t.components) + uint64_t{i} * t.component_stride;
    plugin.components.push_back(read_table<lh_component>("component " + std::to_string(i), at));
    plugin.originals.push_back(reinterpret_cast<const lh_component*>(at));
    check_component(plugin.components.back(), note, seen);
  }
  for (size_t i = 0; i < seen.size(); ++i)
    if (!seen[i])
      refuse_table("its note lies: it names the component " + note.components[i].kind + ":" +
                   note.components[i].name + ", which the plugin does not offer");
}

}  // namespace lhost
