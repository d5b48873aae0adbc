// host/manifest/together.cpp - settings that contradict one another, or that would have no effect.
#include "manifest/host_keys.hpp"

namespace lhost {
namespace {

bool ends_in(const std::string& s, std::string_view end) {
  return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}
bool named_after_loss(const std::string& s) { return ends_in(s, "loss") || ends_in(s, "err"); }
bool named_after_accuracy(const std::string& s) { return ends_in(s, "acc"); }

void min_below_max(const Values& trainer, const std::string& what, Diagnostics& out) {
  const std::string least = "min_" + what, most = "max_" + what;
  if (!trainer.has(least) || !trainer.has(most) || trainer.integer(most) == -1) return;
  if (trainer.integer(least) <= trainer.integer(most)) return;
  out.add(trainer.source(least), "trainer." + least,
          "found " + std::to_string(trainer.integer(least)) + ", expected at most " + most + " = " +
              std::to_string(trainer.integer(most)));
}

// Every { of a file name has its }, with a name between.
std::string filename_problem(const std::string& name) {
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '}') return "a \"}\" without its \"{\"";
    if (name[i] != '{') continue;
    const size_t end = name.find_first_of("{}", i + 1);
    if (end == name.npos || name[end] == '{') return "a \"{\" without its \"}\"";
    if (end == i + 1 || name[i + 1] == ':') return "braces without the name of a metric";
    i = end;
  }
  return "";
}

void check_policy(const Values& v, const std::string& place, Diagnostics& out) {
  auto add = [&](const char* key, std::string why) {
    out.add(v.source(key), place + "." + key, std::move(why));
  };
  const std::string monitor = v.text("monitor");
  if (v.has("mode") && !v.has("monitor"))
    add("mode", "has no meaning without a monitor; add monitor = \"val_loss\"");
  if (v.has("monitor") && !v.has("mode") && !named_after_loss(monitor) && !named_after_accuracy(monitor)) {
    add("monitor",
        "is a low or a high " + in_quotes(monitor) + " better? add mode = \"min\" or mode = \"max\"");
  }
  if (v.has("every_n_epochs") && v.has("every_n_steps")) {
    add("every_n_steps", "given together with every_n_epochs; remove one of the two");
  }
  if (v.given("save_top_k") && v.integer("save_top_k") > 1 && !v.has("monitor")) {
    add("save_top_k", "found " + std::to_string(v.integer("save_top_k")) +
                          " without a monitor, expected -1, 0 or 1; add monitor = \"val_loss\"");
  }
  const std::string problem = filename_problem(v.text("filename"));
  if (!problem.empty())
    add("filename", "found " + problem + ", expected a name such as \"{epoch}-{val_loss:.2f}\"");
}

bool writes_files(const Values& policy) { return policy.integer("save_top_k") != 0; }

}  // namespace

void check_together(const Values& run, const Values& trainer, Diagnostics& out) {
  const std::string name = run.text("name");
  if (name == "." || name == ".." || name.find('/') != name.npos) {
    out.add(run.source("name"), "run.name",
            "found " + in_quotes(name) + ", expected a folder's name without \"/\"; the place is run.dir");
  }
  min_below_max(trainer, "epochs", out);
  min_below_max(trainer, "steps", out);
  if (trainer.given("gradient_clip_algorithm") && !trainer.has("gradient_clip_val")) {
    out.add(trainer.source("gradient_clip_algorithm"), "trainer.gradient_clip_algorithm",
            "has no effect without gradient_clip_val; add it or remove this one");
  }
}

void check_data(const Values& data, Diagnostics& out) {
  if (!data.has("split.train") || !data.has("split.val")) return;
  const double sum = data.number("split.train") + data.number("split.val");
  if (sum <= 1 + 1e-12) return;
  const Source at = data.given("split.val") ? data.source("split.val") : data.source("split.train");
  out.add(at, "data.split.val",
          "split.train and split.val together are " + to_toml(data.node("split.train")) + " + " +
              to_toml(data.node("split.val")) + ", expected at most 1");
}

void check_checkpoints(const std::vector<const Values*>& policies, Diagnostics& out) {
  for (size_t i = 0; i < policies.size(); ++i) {
    const Values& v = *policies[i];
    const std::string place = "checkpoint[" + std::to_string(i) + "]";
    check_policy(v, place, out);
    for (size_t j = 0; j < i; ++j) {
      const Values& other = *policies[j];
      if (!writes_files(v) || !writes_files(other)) continue;
      if (v.text("dir") != other.text("dir") || v.text("filename") != other.text("filename")) continue;
      const char* key = v.given("filename") ? "filename" : v.given("dir") ? "dir" : "filename";
      out.add(v.source(key), place + "." + key,
              "would overwrite the files of checkpoint[" + std::to_string(j) +
                  "]; give them another filename or dir");
      break;
    }
  }
}

bool monitor_wants_max(const Values& checkpoint) {
  return checkpoint.has("mode") ? checkpoint.text("mode") == "max"
                                : named_after_accuracy(checkpoint.text("monitor"));
}

}  // namespace lhost
