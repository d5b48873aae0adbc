// host/cli/inspect.cpp - lhost inspect: a plugin's components and options (what the describing child said is cached), or
// the host's keys of a manifest's table.
#include "base/failure.hpp"
#include "base/terminal.hpp"
#include "cli/commands.hpp"
#include "manifest/diagnostics.hpp"
#include "manifest/host_keys.hpp"
#include "plugin/describe.hpp"
#include "plugin/loader.hpp"
#include "plugin/registry.hpp"

#include <algorithm>

namespace lhost {
namespace {

std::string type_name(int32_t type) {
  static const char* names[] = {
      "",     "bool",     "int",         "float",         "string",         "path",  "enum",
      "size", "duration", "list of int", "list of float", "list of string", "share", "cadence"};
  switch (type) {  // of host keys
    case T_LIMIT:
      return "number or share";
    case T_DEVICES:
      return "\"auto\", number or list";
    case T_WARMUP:
      return "ticks or share";
    case T_SAVE_LAST:
      return "false | true | \"link\"";
    case T_REGEX:
      return "regular expression";
    default:
      return type >= 0 && type <= LH_T_CADENCE ? names[type] : "?";
  }
}

std::string type_text(const OptionSpec& o) {
  std::string s = type_name(o.type);
  if (!o.min.empty() && !o.max.empty()) s += " " + o.min + " to " + o.max;
  else if (!o.min.empty()) s += o.min[0] == '>' ? " " + o.min : " >= " + o.min;
  else if (!o.max.empty()) s += " <= " + o.max;
  for (size_t i = 0; i < o.choices.size(); ++i) s += (i ? " | " : " ") + o.choices[i];
  return s;
}

void print_options(const Schema& options) {
  size_t key = 0, type = 0, def = 0;
  for (const OptionSpec& o : options) {
    key = std::max(key, o.key.size());
    type = std::max(type, type_text(o).size());
    def = std::max(def, o.flags & LH_O_REQUIRED ? 8 : o.def.empty() ? 1 : o.def.size());
  }
  const auto pad = [](const std::string& s, size_t n) {
    return s + std::string(n - std::min(n, s.size()), ' ');
  };
  for (const OptionSpec& o : options) {
    const std::string value = o.flags & LH_O_REQUIRED ? "required" : o.def.empty() ? "-" : o.def;
    std::string notes;
    if (o.flags & LH_O_HYPER) notes += " (per group)";
    if (o.flags & LH_O_DEPRECATED) notes += " (deprecated: use " + o.replaced_by + ")";
    Terminal::get().print("  " + pad(o.key, key) + "  " + pad(type_text(o), type) + "  " + pad(value, def) +
                          "  " + o.doc + notes);
  }
}

void print_component(const ComponentDescription& c) {
  Terminal& t = Terminal::get();
  t.print(bold(c.kind + "  " + c.name, t.colour()) + "  " + c.version +
          (c.revision == "1" ? "" : "  (draft " + c.revision + ")"));
  if (!c.summary.empty()) t.print("  " + c.summary);
  print_options(c.options);
  if (c.options.empty()) t.print("  no options");
  for (const KindTable& k : kind_tables())
    if (c.kind == k.kind)
      t.print(dim(std::string("  keys that every ") + k.kind + " has: lhost inspect " + k.table, t.colour()));
}

// A table of the manifest: the host's keys in it. false: there is no such table.
bool print_table(const std::string& name) {
  Terminal& t = Terminal::get();
  const std::pair<const char*, const Schema*> tables[] = {
      {"run", &run_keys()}, {"trainer", &trainer_keys()}, {"resume", &resume_keys()}};
  for (const auto& [table, keys] : tables)
    if (name == table) {
      t.print(bold("[" + name + "]", t.colour()));
      return print_options(*keys), true;
    }
  for (const KindTable& k : kind_tables()) {
    if (name != k.table) continue;
    t.print(bold(k.list ? "[[" + name + "]]" : "[" + name + "]", t.colour()) + "  a " + k.kind +
            "; its own options: lhost inspect NAME, names: lhost list " + k.kind);
    Schema keys = selection_keys();
    keys.insert(keys.end(), host_part(k.kind).begin(), host_part(k.kind).end());
    return print_options(keys), true;
  }
  return false;
}

// A path, or "kind/name", or a name.
std::string path_of(const std::vector<std::string>& plugin_dirs, const std::string& what, std::string& kind,
                    std::string& name) {
  const Registry registry(search_path(plugin_dirs), libtorch_version_or_empty());
  if (what.find(".so") != what.npos || what[0] == '/' || what[0] == '.') return registry.read(what).path;
  const auto slash = what.find('/');
  kind = slash == what.npos ? "" : what.substr(0, slash);
  name = slash == what.npos ? what : what.substr(slash + 1);
  std::vector<std::string> names;
  for (const Installed& i : registry.all())
    for (const NotedComponent& c : i.note.components) {
      names.push_back(kind.empty() ? c.name : c.kind + "/" + c.name);
      if (c.name != name || (!kind.empty() && c.kind != kind)) continue;
      if (!i.refused.empty()) throw Failure(Exit::plugin, i.path + ": " + i.refused);
      return i.path;
    }
  const std::string close = closest(what, names);
  throw Failure(Exit::usage, "no component \"" + what + "\" is installed" +
                                 (close.empty() ? "" : "; did you mean \"" + close + "\"?") +
                                 " (lhost list shows all)");
}

}  // namespace

int inspect_command(const std::vector<std::string>& plugin_dirs, const std::string& what) {
  if (print_table(what)) return 0;
  std::string kind, name;
  const std::string path = path_of(plugin_dirs, what, kind, name);
  const PluginDescription p = describe_plugins({path}).front();
  Terminal& t = Terminal::get();
  t.print("plugin  " + p.name + " " + p.version + (p.license.empty() ? "" : "  " + p.license));
  t.print("file    " + p.path);
  t.print("torch   " + (p.torch.empty() ? std::string("not used") : p.torch));
  for (const ComponentDescription& c : p.components)
    if ((kind.empty() || c.kind == kind) && (name.empty() || c.name == name)) {
      t.print("");
      print_component(c);
    }
  return 0;
}

}  // namespace lhost
