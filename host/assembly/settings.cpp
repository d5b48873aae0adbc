// host/assembly/settings.cpp - the checked values of a plan as the plain settings that host/train reads.
#include "assembly/execute.hpp"

#include "manifest/host_keys.hpp"

#include <algorithm>

namespace lhost {
namespace {

Limit limit_of(const lh_value& v) {
  if (v.n == 1) return {true, v.u.f, 0};
  return {false, 0, v.u.i};
}
template <class T>
std::optional<T> optional(const Values& v, const char* key, T (Values::*get)(std::string_view) const) {
  return v.has(key) ? std::optional<T>((v.*get)(key)) : std::nullopt;
}

void read_trainer(const Values& t, Settings& s) {
  s.max_epochs = optional(t, "max_epochs", &Values::integer);
  if (t.has("min_epochs")) s.min_epochs = t.integer("min_epochs");
  s.max_steps = t.integer("max_steps");
  if (t.has("min_steps")) s.min_steps = t.integer("min_steps");
  const char* keys[] = {"limit_train_batches", "limit_val_batches", "limit_test_batches",
                        "limit_predict_batches"};
  for (int i = 0; i < 4; ++i) s.limits[i] = limit_of(t[keys[i]]);
  s.accumulate = t.integer("accumulate_grad_batches");
  if (t.has("gradient_clip_val")) s.clip = t.number("gradient_clip_val");
  s.clip_by_value = t.text("gradient_clip_algorithm") == "value";
  s.log_every = t.integer("log_every_n_steps");
  s.val_every_epochs = t.integer("check_val_every_n_epoch");
  s.sanity_batches = t.integer("num_sanity_val_steps");
  s.threads = static_cast<int32_t>(t.integer("threads"));
  s.devices.assign(t["devices"].u.li, t["devices"].u.li + t["devices"].n);
  s.num_nodes = t.integer("num_nodes");
  s.sync_batchnorm = t.flag("sync_batchnorm");
  s.flush_denormal = t.flag("flush_denormal");
}

void read_data(const Values& d, Settings& s) {
  s.batch_size = d.integer("batch_size");
  s.shuffle = d.flag("shuffle");
  s.drop_last = d.flag("drop_last");
  s.split_train = optional(d, "split.train", &Values::number);
  s.split_val = optional(d, "split.val", &Values::number);
  s.data_threads = static_cast<int32_t>(d.integer("threads"));
}

void read_optimizer(const Selection& o, Settings& s) {
  GroupSettings base;
  for (size_t i : o.hyper) {
    const std::string& key = o.options.schema()[i].key;
    s.hyper_names.push_back(key);
    base.hyper.push_back(o.options.number(key));
    if (key == "lr") base.lr_from_command_line = o.options.source(key).origin == Origin::command_line;
  }
  s.groups.push_back(base);
  for (size_t g = 0; g < o.groups.size(); ++g) {
    GroupSettings group = base;
    group.match = o.groups[g].text("match");
    group.name = o.groups[g].has("name") ? o.groups[g].text("name") : "group" + std::to_string(g);
    for (size_t h = 0; h < s.hyper_names.size(); ++h)
      if (o.group_hyper[g].has(s.hyper_names[h])) group.hyper[h] = o.group_hyper[g].number(s.hyper_names[h]);
    s.groups.push_back(group);
  }
}

CheckpointPolicy policy_of(const Selection& c) {
  const Values& v = c.host;
  CheckpointPolicy p;
  p.instance = c.instance;
  p.dir = v.text("dir");
  p.filename = v.text("filename");
  if (v.has("monitor")) {
    p.monitor = v.text("monitor");
    p.larger_is_better = monitor_wants_max(v);
  }
  p.save_top_k = v.integer("save_top_k");
  p.save_last = static_cast<CheckpointPolicy::Last>(v.integer("save_last"));
  p.every_n_epochs = optional(v, "every_n_epochs", &Values::integer);
  p.every_n_steps = optional(v, "every_n_steps", &Values::integer);
  p.weights_only = v.flag("save_weights_only");
  p.on_exception = v.flag("save_on_exception");
  p.on_signal = v.flag("save_on_signal");
  return p;
}

void flatten(const Node& n, const std::string& prefix,
             std::vector<std::pair<std::string, std::string>>& out) {
  if (n.is_table()) {
    for (const Node::Entry& e : n.table) flatten(e.value, prefix.empty() ? e.key : prefix + "." + e.key, out);
  } else if (n.type == Node::Type::array && n.is_array_of_tables() && !n.array.empty()) {
    for (size_t i = 0; i < n.array.size(); ++i)
      flatten(n.array[i], prefix + "[" + std::to_string(i) + "]", out);
  } else {
    out.emplace_back(prefix, to_toml(n));
  }
}

}  // namespace

Settings settings_of(const Plan& plan) {
  Settings s;
  s.name = plan.name();
  s.dir = plan.run_dir();
  s.seed = static_cast<uint64_t>(plan.run.integer("seed"));
  const char* names[] = {"fit", "validate", "test", "predict"};
  for (const std::string& stage : plan.stages())
    s.stages.push_back(static_cast<int32_t>(std::find(names, names + 4, stage) - names));
  s.max_restarts = plan.run.integer("max_restarts");
  read_trainer(plan.trainer, s);
  if (const Selection* c = plan.find("collective")) {
    s.timeout_s = static_cast<double>(c->host.integer("timeout")) / 1e9;
    s.connect_timeout_s = static_cast<double>(c->host.integer("connect_timeout")) / 1e9;
    s.check_collectives = c->host.flag("check");
  }
  read_data(plan.find("data")->host, s);
  if (const Selection* o = plan.find("optimizer")) read_optimizer(*o, s);
  if (const Selection* c = plan.find("scheduler")) {
    const lh_value& w = c->host["warmup"];
    if (w.n == 1) s.schedule.warmup_share = w.u.f;
    else s.schedule.warmup_ticks = w.u.i;
    s.schedule.by_step = c->host.text("interval") == "step";
    s.schedule.frequency = c->host.integer("frequency");
  }
  for (const Selection* c : plan.all("checkpointer")) s.checkpoints.push_back(policy_of(*c));
  for (const Selection* l : plan.all("logger")) s.logger_stops.push_back(l->host.text("on_error") == "stop");
  for (const Selection* c : plan.all("callback"))
    s.callback_warns.push_back(c->host.text("on_error") == "warn");
  if (const Selection* p = plan.find("profiler")) s.profiler_stops = p->host.text("on_error") == "stop";
  if (plan.resume.has("from")) s.resume = plan.resume.text("from");
  s.resume_strict = plan.resume.flag("strict");
  s.manifest = to_toml_document(plan.resolved);
  flatten(plan.resolved, "", s.hyper_parameters);
  s.host_version = LHOST_VERSION;
  return s;
}

}  // namespace lhost
