// host/cli/plan.cpp - lhost plan: resolve and explain, start nothing. Builds the model to tell its size.
#include "assembly/execute.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "cli/resolve_input.hpp"
#include "train/run_state.hpp"

#include <algorithm>

namespace lhost {
namespace {

std::string pad(const std::string& s, size_t n) {
  return s + std::string(s.size() < n ? n - s.size() : 0, ' ');
}

void print_components(const Plan& plan) {
  for (const Selection& s : plan.selections)
    Terminal::get().print(pad(s.instance, 15) + pad(s.name, 16) + pad(s.version, 8) + pad(s.origin, 13) +
                          s.path);
}

std::string origin_text(const Plan& plan, const Source& s) {
  switch (s.origin) {
    case Origin::component_default:
      return "default";
    case Origin::defaults_file:
      return "defaults.toml";
    case Origin::command_line:
      return "command line";
    case Origin::environment:
      return "LHOST_SET";
    case Origin::file:
      break;
  }
  if (s.text < 0) return "default";
  return plan.manifest.texts[static_cast<size_t>(s.text)].name + ":" + std::to_string(s.line);
}

void print_values(const Plan& plan, const Node& n, const std::string& prefix) {
  if (n.is_table()) {
    for (const Node::Entry& e : n.table)
      print_values(plan, e.value, prefix.empty() ? e.key : prefix + "." + e.key);
  } else if (n.type == Node::Type::array && n.is_array_of_tables() && !n.array.empty()) {
    for (size_t i = 0; i < n.array.size(); ++i)
      print_values(plan, n.array[i], prefix + "[" + std::to_string(i) + "]");
  } else {
    Terminal::get().print(pad(prefix + " = " + to_toml(n), 58) + "  " +
                          dim(origin_text(plan, n.source), Terminal::get().colour()));
  }
}

// The model is built, laid out by nobody, and dropped.
void print_model(const Plan& plan) {
  const Settings settings = settings_of(plan);
  const Engine engine = start_engine("");
  RunHandle handle(engine, engine_config(settings));
  const Precision precision(create_component(*plan.find("precision"), handle.get()));
  const Model model(create_component(*plan.find("model"), handle.get()));
  lh_policy policy{};
  policy.size = sizeof policy;
  check(precision->policy(precision.self(), &policy));
  check(engine->adopt_model(handle.get(), &model.table(), model.self(), &policy));
  int64_t trainable = 0, frozen = 0;
  double bytes = 0, buffers = 0, slots = 0;
  for (uint32_t i = 0; i < engine.params.count(handle.get()); ++i) {
    lh_param_info p{};
    p.size = sizeof p;
    check(engine.params.info(handle.get(), i, &p));
    if (p.flags & LH_P_ALIAS) continue;
    const double size = static_cast<double>(p.numel) * p.dtype.bits / 8;
    if (p.flags & LH_P_BUFFER) buffers += size;
    else (p.flags & LH_P_TRAINABLE ? trainable : frozen) += p.numel, bytes += size;
  }
  if (const Selection* o = plan.find("optimizer")) {
    const Optimizer optimizer(create_component(*o, handle.get()));
    const lh_slot* list = nullptr;
    const uint64_t n = optimizer->slots ? optimizer->slots(optimizer.self(), &list) : 0;
    for (uint64_t i = 0; i < n; ++i)
      if (list[i].shape == LH_SLOT_LIKE_PARAM)
        slots += bytes * static_cast<double>(trainable) /
                 static_cast<double>(std::max<int64_t>(1, trainable + frozen));
  }
  Terminal::get().print("parameters     " + grouped(trainable) + " trainable" +
                        (frozen ? ", " + grouped(frozen) + " frozen" : "") + "; " + human_bytes(bytes) +
                        " parameters, " + human_bytes(bytes) + " gradients, " + human_bytes(slots) +
                        " optimizer, " + human_bytes(buffers) + " buffers");
}

}  // namespace

int plan_command(const RunCommand& c) {
  const Plan plan = resolve(resolve_input(c), Terminal::get().error_colour());
  if (!plan.warnings.empty()) Terminal::get().error(plan.warnings);
  print_components(plan);
  print_model(plan);
  std::vector<std::string> files;
  for (const Selection* s : plan.all("checkpointer"))
    files.push_back(s->host.text("dir") + "/" + s->host.text("filename") +
                    (s->host.integer("save_top_k") < 0
                         ? " (all)"
                         : " (" + std::to_string(s->host.integer("save_top_k")) + " kept)") +
                    (s->host.integer("save_last") ? ", last" : ""));
  Terminal::get().print("checkpoints    " + (files.empty() ? std::string("none") : join(files, "; ")));
  Terminal::get().print("into           " + plan.run_dir() + "/" + plan.name() + "/version_N");
  Terminal::get().print("");
  print_values(plan, plan.resolved, "");
  return 0;
}

}  // namespace lhost
