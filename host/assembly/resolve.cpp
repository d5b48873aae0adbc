#include "assembly/resolve.hpp"

#include "base/text.hpp"
#include "manifest/parse.hpp"
#include "plugin/describe.hpp"
#include "plugin/loader.hpp"

#include <lhost/strategy.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace lhost {
namespace {

// What the run cannot do without, beside what its stages need.
bool is_required(std::string_view kind, const std::vector<std::string>& stages) {
  if (kind == "optimizer") return std::find(stages.begin(), stages.end(), "fit") != stages.end();
  return kind == "accelerator" || kind == "launcher" || kind == "strategy" || kind == "precision" ||
         kind == "model" || kind == "data";
}

std::vector<std::string> list_of(const lh_value& v) {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < v.n; ++i) out.emplace_back(v.u.ls[i].ptr, v.u.ls[i].len);
  return out;
}

class Resolver {
 public:
  Resolver(const ResolveInput& input, Diagnostics& diagnostics)
      : registry_(search_path(input.plugin_dirs), libtorch_version_or_empty()), d_(diagnostics) {
    plan_.input = input.manifest;
    plan_.manifest = load_manifest(input.manifest, d_);
  }

  Plan resolve() {
    if (!plan_.manifest.complete) return std::move(plan_);
    check_table(plan_.manifest.root, "", root_keys(), texts(), d_);
    plan_.run = check("run", run_keys());
    plan_.trainer = check("trainer", trainer_keys());
    plan_.resume = check("resume", resume_keys());
    take_strategy_defaults();
    select_all();
    describe_all();
    check_options();
    check_unknown();
    check_rules();
    build_resolved();
    return std::move(plan_);
  }

  std::vector<std::string> refusals;  // found, but this host does not load it

 private:
  const Texts& texts() const { return plan_.manifest.texts; }
  const Node& table(const std::string& path) const {
    static const Node empty = [] {
      Node n;
      n.type = Node::Type::table;
      return n;
    }();
    const Node* n = plan_.manifest.root.at_path(path);
    return n && n->is_table() ? *n : empty;
  }
  Values check(const std::string& path, const Schema& schema) {
    return check_table(table(path), path, schema, texts(), d_);
  }

  void select_all() {
    const std::vector<std::string> stages = list_of(plan_.run["stages"]);
    for (const KindTable& k : kind_tables()) {
      const Node* node = plan_.manifest.root.find(k.table);
      if (is_missing_default(k.kind, node)) continue;
      if (!k.list) {
        if (node && node->is_table() &&
            (node->find("use") || node->find("plugin") || is_required(k.kind, stages)))
          select(k.kind, k.table);
        else if (node && node->is_table() && !node->table.empty()) nameless(*node, k.kind, k.table);
        else if (is_required(k.kind, stages))
          d_.add({}, k.table,
                 std::string("is missing; add [") + k.table + "] with use = \"...\" (" + installed(k.kind) +
                     ")");
        continue;
      }
      if (!node || node->type != Node::Type::array) continue;
      for (size_t i = 0; i < node->array.size(); ++i)
        select(k.kind, std::string(k.table) + "[" + std::to_string(i) + "]");
    }
  }

  // What the strategy wants of other tables, where only the defaults file has said something else.
  void take_strategy_defaults() {
    const Node& node = table("strategy");
    const Node *use = node.find("use"), *plugin = node.find("plugin");
    Installed chosen;
    try {
      if (plugin) chosen = registry_.read(plugin->string);
      else if (const Installed* found = use ? registry_.find("strategy", use->string) : nullptr)
        chosen = *found;
    } catch (const Failure&) {
      return;  // reported where it is selected
    }
    if (chosen.path.empty() || !chosen.refused.empty()) return;
    const Described d = try_describe_plugins({chosen.path}).front();
    const ComponentDescription* c =
        d.broken.empty() ? d.plugin.find("strategy", use ? use->string : "") : nullptr;
    for (size_t i = 0; c && i < c->defaults.size(); ++i)
      take_default("the strategy \"" + c->name + "\"", c->defaults[i]);
  }

  void take_default(const std::string& from, const std::string& line) {
    Texts& all = plan_.manifest.texts;
    all.push_back({from, "", line});
    const auto parsed = parse_toml(static_cast<int>(all.size()) - 1, Origin::file, all, d_);
    if (!parsed) return;
    for (const Node::Entry& t : parsed->table)
      for (const Node::Entry& e : t.value.table) {
        const Node* now = plan_.manifest.root.at_path(t.key + "." + e.key);
        if (!now || now->source.origin == Origin::defaults_file)
          put(plan_.manifest.root, t.key + "." + e.key, e.value);
      }
  }

  // The collective that nobody asked for: without it a run on one rank is whole. More ranks ask for it when they start.
  bool is_missing_default(std::string_view kind, const Node* node) const {
    if (kind != "collective" || !node || !node->is_table()) return false;
    const Node* use = node->find("use");
    return use && use->source.origin == Origin::defaults_file && !registry_.find(kind, use->string);
  }

  std::string installed(const std::string& kind) const {
    const auto names = registry_.names(kind);
    return names.empty() ? "no " + kind + " is installed" : join(names, ", ");
  }

  void select(const std::string& kind, const std::string& instance) {
    Selection s;
    s.kind = kind;
    s.instance = instance;
    const Node& node = table(instance);
    Schema schema = selection_keys();
    const Schema& part = host_part(kind);
    schema.insert(schema.end(), part.begin(), part.end());
    s.host = check_table(node, instance, schema, texts(), d_);
    s.label = s.host.has("name") ? s.host.text("name") : instance;
    for (const Selection& other : plan_.selections)
      if (other.label == s.label)
        d_.add(s.host.source("name"), instance + ".name",
               "the name \"" + s.label + "\" belongs to " + other.instance + "; choose another");
    const std::string use = s.host.has("use") ? s.host.text("use") : "";
    if (s.host.has("plugin")) by_path(s, use);
    else if (!use.empty()) by_name(s, use);
    else nameless(node, kind, instance);
    const std::string wanted = s.host.has("version") ? s.host.text("version") : "";
    const bool fits = s.version == wanted || s.version.rfind(wanted + ".", 0) == 0;
    if (!s.path.empty() && !wanted.empty() && !fits)
      d_.add(s.host.source("version"), instance + ".version",
             "the installed " + kind + " \"" + s.name + "\" has version " + s.version +
                 ", the manifest wants " + wanted);
    plan_.selections.push_back(std::move(s));
  }

  // A table without `use` and `plugin`; perhaps one of its keys was meant to be that.
  void nameless(const Node& node, const std::string& kind, const std::string& instance) {
    d_.add(node.source, instance, "names no component; add use = \"...\" (" + installed(kind) + ")");
    for (const Node::Entry& e : node.table)
      if (const std::string close = closest(e.key, {"use", "plugin"}); !close.empty())
        d_.add(e.key_source, instance + "." + e.key, "unknown key; did you mean \"" + close + "\"?");
  }

  void take(Selection& s, const Installed& found, const std::string& name) {
    s.path = found.path;
    s.origin = found.origin;
    s.version = found.note.version;
    s.name = name;
  }

  // Which launcher it is shows when the environment is looked at: that runs their code, so not here.
  void any_launcher(Selection& s) {
    s.name = "auto";
    for (const std::string& name : registry_.names("launcher")) {
      Selection candidate;
      candidate.kind = s.kind;
      candidate.instance = candidate.label = s.instance;
      take(candidate, *registry_.find("launcher", name), name);
      Node empty;
      empty.type = Node::Type::table;
      candidate.host = check_table(empty, s.instance, selection_keys(), texts(), d_);
      plan_.launchers.push_back(std::move(candidate));
    }
    if (plan_.launchers.empty())
      d_.add(s.host.source("use"), s.instance + ".use", "no launcher is installed");
  }

  void by_name(Selection& s, std::string use) {
    const Source source = s.host.source("use");
    if (use == "auto" && s.kind == "launcher") return any_launcher(s);
    if (use == "auto" && s.kind == "accelerator") {
      const auto names = registry_.names(s.kind);
      if (names.empty()) return d_.add(source, s.instance + ".use", "no accelerator is installed");
      if (names.size() > 1)
        return d_.add(source, s.instance + ".use",
                      "\"auto\" cannot choose among several; name one of " + join(names, ", "));
      use = names.front();
    }
    const Installed* found = nullptr;
    try {
      found = registry_.find(s.kind, use);
    } catch (const Failure& f) {
      return d_.add(source, s.instance + ".use", f.what());
    }
    if (!found) {
      const std::string close = closest(use, registry_.names(s.kind));
      return d_.add(source, s.instance + ".use",
                    "no " + s.kind + " \"" + use + "\" is installed" +
                        (close.empty() ? "" : "; did you mean \"" + close + "\"?") + " (" +
                        installed(s.kind) + ")");
    }
    if (!found->refused.empty())
      return refusals.push_back(s.instance + ".use: " + s.kind + " \"" + use + "\": " + found->path + ": " +
                                found->refused);
    take(s, *found, use);
  }

  void by_path(Selection& s, const std::string& use) {
    const Source source = s.host.source("plugin");
    const std::string path = s.host.text("plugin");
    Installed found;
    try {
      found = registry_.read(path);
    } catch (const Failure& f) {
      if (f.code == Exit::usage) return d_.add(source, s.instance + ".plugin", f.what());
      return refusals.push_back(s.instance + ".plugin: " + f.what());
    }
    if (!found.refused.empty())
      return refusals.push_back(s.instance + ".plugin: " + found.path + ": " + found.refused);
    std::vector<std::string> names;
    for (const NotedComponent& c : found.note.components)
      if (c.kind == s.kind) names.push_back(c.name);
    found.origin = "manifest";
    if (names.empty()) {
      std::vector<std::string> has;
      for (const NotedComponent& c : found.note.components) has.push_back(c.kind + " " + c.name);
      d_.add(source, s.instance + ".plugin", path + " holds no " + s.kind + "; it holds " + join(has, ", "));
    } else if (!use.empty() && std::find(names.begin(), names.end(), use) == names.end()) {
      d_.add(s.host.source("use"), s.instance + ".use",
             path + " holds no " + s.kind + " \"" + use + "\"; it holds " + join(names, ", "));
    } else if (use.empty() && names.size() > 1) {
      d_.add(source, s.instance + ".plugin",
             path + " holds several of this kind; choose with use = ... (" + join(names, ", ") + ")");
    } else {
      take(s, found, use.empty() ? names.front() : use);
    }
  }

  void describe_all() {
    std::vector<std::string> paths;
    for (const std::vector<Selection>* list : {&plan_.selections, &plan_.launchers})
      for (const Selection& s : *list)
        if (!s.path.empty() && std::find(paths.begin(), paths.end(), s.path) == paths.end())
          paths.push_back(s.path);
    for (Described& x : try_describe_plugins(paths)) {
      if (x.broken.empty()) described_[x.plugin.path] = std::move(x.plugin);
      else refusals.push_back(x.broken);
    }
  }

  const ComponentDescription* description(const Selection& s) const {
    const auto i = described_.find(s.path);
    return i == described_.end() ? nullptr : i->second.find(s.kind, s.name);
  }

  void check_options() {
    Node empty;
    empty.type = Node::Type::table;
    for (Selection& s : plan_.launchers)
      if (const ComponentDescription* c = description(s)) {
        s.version = c->version;
        s.options = check_table(empty, s.instance, c->options, texts(), d_);
      }
    for (Selection& s : plan_.selections) {
      const ComponentDescription* c = description(s);
      if (!c) continue;
      s.version = c->version;
      s.options = check_table(table(s.instance), s.instance, c->options, texts(), d_);
      check_files(s);
      if (s.kind == "optimizer") check_groups(s, *c);
    }
  }

  void check_files(const Selection& s) {
    for (const OptionSpec& o : s.options.schema()) {
      std::error_code ec;
      if (o.type != LH_T_PATH || !(o.flags & LH_O_MUST_EXIST) || !s.options.given(o.key)) continue;
      if (const std::string path = s.options.text(o.key); !std::filesystem::exists(path, ec))
        d_.add(s.options.source(o.key), s.instance + "." + o.key, path + " does not exist");
    }
  }

  // A group overrides the optimizer's hyper-parameters: the same options, none of them required, without defaults.
  void check_groups(Selection& s, const ComponentDescription& c) {
    for (size_t i = 0; i < c.options.size(); ++i)
      if (c.options[i].flags & LH_O_HYPER) {
        s.hyper.push_back(i);
        OptionSpec o = c.options[i];
        o.def.clear();
        o.flags &= ~uint32_t{LH_O_REQUIRED};
        group_schema_.push_back(o);
      }
    const Node* groups = table(s.instance).find("group");
    if (!groups) return;
    if (groups->type != Node::Type::array || !groups->is_array_of_tables())
      return d_.add(
          groups->source, "optimizer.group",
          std::string("found ") + type_name(groups->type) + ", expected tables; write [[optimizer.group]]");
    for (size_t i = 0; i < groups->array.size(); ++i) {
      const std::string prefix = "optimizer.group[" + std::to_string(i) + "]";
      s.groups.push_back(check_table(groups->array[i], prefix, group_keys(), texts(), d_));
      s.group_hyper.push_back(check_table(groups->array[i], prefix, group_schema_, texts(), d_));
    }
  }

  void check_unknown() {
    KnownKeys everything = host_known_keys();
    for (const Selection& s : plan_.selections)
      if (const ComponentDescription* c = description(s))
        for (const OptionSpec& o : c->options) everything[s.kind + " " + s.name].push_back(o.key);
    report_unknown(plan_.manifest.root, "", {&root_keys()}, everything, d_);
    report_unknown(table("run"), "run", {&run_keys()}, everything, d_);
    report_unknown(table("trainer"), "trainer", {&trainer_keys()}, everything, d_);
    report_unknown(table("resume"), "resume", {&resume_keys()}, everything, d_);
    for (const Selection& s : plan_.selections) {
      const ComponentDescription* c = description(s);
      static const Schema none;
      if (!c && s.name != "auto") continue;  // its options are not known; the selection itself is the error
      report_unknown(table(s.instance), s.instance,
                     {&selection_keys(), &host_part(s.kind), c ? &c->options : &none}, everything, d_);
      for (size_t i = 0; i < s.groups.size(); ++i) {
        const std::string prefix = "optimizer.group[" + std::to_string(i) + "]";
        report_unknown(table(prefix), prefix, {&group_keys(), &group_schema_}, everything, d_);
      }
    }
  }

  void check_rules() {
    check_together(plan_.run, plan_.trainer, d_);
    std::vector<const Values*> policies;
    for (const Selection& s : plan_.selections) {
      if (s.kind == "data") check_data(s.host, d_);
      if (s.kind == "checkpointer") policies.push_back(&s.host);
    }
    check_checkpoints(policies, d_);
    check_ranks();
  }

  void check_ranks() {
    const bool devices = plan_.trainer["devices"].n > 1, nodes = plan_.trainer.integer("num_nodes") > 1;
    const Selection* s = plan_.find("strategy");
    const ComponentDescription* c = s ? description(*s) : nullptr;
    if (!c || !(c->flags & LH_STRATEGY_ONE_RANK) || !(devices || nodes)) return;
    const char* key = devices ? "devices" : "num_nodes";
    d_.add(plan_.trainer.source(key), std::string("trainer.") + key,
           "makes several ranks, but the strategy \"" + s->name +
               "\" trains on one rank; choose a strategy for several, such as [strategy] use = \"ddp\"");
  }

  // Every key with its value: what the user wrote, and the defaults.
  void build_resolved() {
    Node& root = plan_.resolved;
    root.type = Node::Type::table;
    const auto add = [&](const std::string& prefix, const Values& values) {
      for (const OptionSpec& o : values.schema()) {
        if (o.key == "always") continue;
        // without effect, and so refused when the resolved manifest is run again
        if (o.key == "gradient_clip_algorithm" && !values.has("gradient_clip_val")) continue;
        const Node& n = values.node(o.key);
        if (n.type != Node::Type::none && o.type != LH_T_NONE) put(root, prefix + o.key, n);
      }
    };
    add("run.", plan_.run);
    const auto text = [&](const char* key, const std::string& value) {
      Node n;
      n.type = Node::Type::string;
      n.string = value;
      n.source = plan_.run.source(key);
      put(root, std::string("run.") + key, std::move(n));
    };
    text("name", plan_.name());
    text("dir", std::filesystem::absolute(plan_.run_dir()));
    add("trainer.", plan_.trainer);
    add("resume.", plan_.resume);
    std::map<std::string, Node> lists;
    for (const Selection& s : plan_.selections) {
      Node t;
      t.type = Node::Type::table;
      for (const Values* v : {&s.host, &s.options})
        for (const OptionSpec& o : v->schema())
          if (const Node& n = v->node(o.key); n.type != Node::Type::none && o.type != LH_T_NONE)
            put(t, o.key, n);
      if (!s.groups.empty()) put(t, "group", *table(s.instance).find("group"));
      const auto bracket = s.instance.find('[');
      if (bracket == std::string::npos) put(root, s.instance, t);
      else {
        Node& list = lists[s.instance.substr(0, bracket)];
        list.type = Node::Type::array;
        list.array.push_back(t);
      }
    }
    for (auto& [name, list] : lists) put(root, name, std::move(list));
  }

  Registry registry_;
  Diagnostics& d_;
  Plan plan_;
  std::map<std::string, PluginDescription> described_;
  Schema group_schema_;
};

}  // namespace

const Selection* Plan::find(std::string_view kind) const {
  for (const Selection& s : selections)
    if (s.kind == kind && !s.path.empty()) return &s;
  return nullptr;
}
std::vector<const Selection*> Plan::all(std::string_view kind) const {
  std::vector<const Selection*> out;
  for (const Selection& s : selections)
    if (s.kind == kind) out.push_back(&s);
  return out;
}
std::vector<std::string> Plan::stages() const { return list_of(run["stages"]); }

std::string Plan::name() const {
  if (run.has("name")) return run.text("name");
  const std::string& p = manifest.path;
  if (p == "-") return "run";
  const size_t slash = p.rfind('/') + 1, dot = p.rfind('.');
  return p.substr(slash, dot == p.npos || dot <= slash ? p.npos : dot - slash);
}

std::string Plan::run_dir() const { return run.given("dir") ? run.text("dir") : "runs"; }

ResolveInput input_for(std::string manifest, std::vector<std::string> overrides,
                       std::vector<std::string> plugin_dirs) {
  ResolveInput input;
  input.manifest.path = std::move(manifest);
  input.manifest.overrides = std::move(overrides);
  if (const char* set = std::getenv("LHOST_SET")) input.manifest.lhost_set = set;
  input.manifest.defaults_path = installation().defaults;
  input.plugin_dirs = std::move(plugin_dirs);
  return input;
}

Plan resolve(const ResolveInput& input, bool colour) {
  Diagnostics d;
  Resolver resolver(input, d);
  Plan plan = resolver.resolve();
  const std::string text = d.render(plan.manifest.texts, colour);
  if (!d.empty()) {
    const std::string also =
        resolver.refusals.empty() ? "" : "error: " + join(resolver.refusals, "\nerror: ") + "\n";
    throw Failure(Exit::usage, also + text);
  }
  if (!resolver.refusals.empty())
    throw Failure(Exit::plugin, "error: " + join(resolver.refusals, "\nerror: ") + "\nNothing was started.");
  plan.warnings = text;
  return plan;
}

}  // namespace lhost
