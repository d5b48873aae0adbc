// host/manifest/host_keys.cpp - see host_keys.hpp.
#include "manifest/host_keys.hpp"

namespace lhost {
namespace {

OptionSpec key(const char* name, int32_t type, const char* doc, const char* def = "", const char* min = "",
               const char* max = "") {
  OptionSpec spec;
  spec.key = name;
  spec.type = type;
  spec.doc = doc;
  spec.def = def;
  spec.min = min;
  spec.max = max;
  return spec;
}
OptionSpec text(const char* name, const char* doc, const char* def = "") {
  OptionSpec spec = key(name, LH_T_STR, doc, def);
  spec.min_len = 1;
  return spec;
}
OptionSpec choice(const char* name, const char* doc, std::vector<std::string> choices, const char* def = "") {
  OptionSpec spec = key(name, LH_T_ENUM, doc, def);
  spec.choices = std::move(choices);
  return spec;
}
OptionSpec table(const char* name, const char* doc) { return key(name, LH_T_NONE, doc); }

Schema on_error(const char* def) {
  return {choice("on_error", "what a failure of this component does to the run", {"warn", "stop"}, def)};
}

OptionSpec stages() {
  OptionSpec spec = key("stages", LH_T_LIST_STR, "what to do, in this order", "[\"fit\"]");
  spec.choices = {"fit", "validate", "test", "predict"};
  spec.min_len = 1;
  return spec;
}

OptionSpec match() {
  OptionSpec spec = key("match", T_REGEX, "parameters whose name holds a match belong to this group");
  spec.flags = LH_O_REQUIRED;
  return spec;
}

Schema make_trainer() {
  return {
      key("max_epochs", LH_T_INT, "epochs to train; -1: no limit", "", "-1"),
      key("min_epochs", LH_T_INT, "no stop before as many epochs", "", "0"),
      key("max_steps", LH_T_INT, "optimizer steps to make; -1: no limit", "-1", "-1"),
      key("min_steps", LH_T_INT, "no stop before as many optimizer steps", "", "0"),
      key("limit_train_batches", T_LIMIT, "batches of a training epoch, as number or share", "1.0"),
      key("limit_val_batches", T_LIMIT, "batches of a validation, as number or share", "1.0"),
      key("limit_test_batches", T_LIMIT, "batches of the test, as number or share", "1.0"),
      key("limit_predict_batches", T_LIMIT, "batches of the prediction, as number or share", "1.0"),
      key("accumulate_grad_batches", LH_T_INT, "batches of one optimizer step", "1", "1"),
      key("gradient_clip_val", LH_T_FLOAT, "greatest norm (or value) of the gradients", "", ">0"),
      choice("gradient_clip_algorithm", "clip by the norm of all or by value", {"norm", "value"}, "\"norm\""),
      key("log_every_n_steps", LH_T_INT, "steps between two records; 0: none in training", "50", "0"),
      key("check_val_every_n_epoch", LH_T_INT, "epochs between two validations", "1", "1"),
      key("num_sanity_val_steps", LH_T_INT, "validation batches tried before training; -1: all", "2", "-1"),
      key("devices", T_DEVICES, "how many devices of this machine, or which", "\"auto\""),
      key("num_nodes", LH_T_INT, "machines of the run", "1", "1"),
      key("threads", LH_T_INT, "threads of one tensor operation; 0: all cores this process may use", "0", "0",
          "1024"),
      key("sync_batchnorm", LH_T_BOOL, "batch norm over the batches of all ranks", "false"),
      key("flush_denormal", LH_T_BOOL, "denormal numbers count as zero", "true"),
  };
}

Schema make_collective() {
  return {
      key("timeout", LH_T_DURATION, "how long an operation waits for the other ranks", "\"10m\"", "\"1ms\""),
      key("connect_timeout", LH_T_DURATION, "how long the ranks wait for one another at the start", "\"5m\"",
          "\"1ms\""),
      key("check", LH_T_BOOL, "compare every call over the ranks; slow, for debugging", "false"),
  };
}

Schema make_checkpoint() {
  return {
      text("dir", "folder of the files, in the run's folder", "\"checkpoints\""),
      text("filename", "name of a file, with {epoch}, {step} and metrics", "\"{epoch}-{step}\""),
      text("monitor", "metric that says which files are best"),
      choice("mode", "is a low or a high value better", {"min", "max"}),
      key("save_top_k", LH_T_INT, "how many of the best to keep; -1: all, 0: none", "1", "-1"),
      key("save_last", T_SAVE_LAST, "also keep the latest as last.ckpt", "false"),
      key("every_n_epochs", LH_T_INT, "epochs between two files", "", "1"),
      key("every_n_steps", LH_T_INT, "optimizer steps between two files", "", "1"),
      key("save_weights_only", LH_T_BOOL, "no state for resuming", "false"),
      key("save_on_exception", LH_T_BOOL, "also when the run fails", "false"),
      key("save_on_signal", LH_T_BOOL, "also when the run is interrupted", "true"),
  };
}

std::vector<std::string> names(const Schema& schema) {
  std::vector<std::string> list;
  for (const OptionSpec& spec : schema) list.push_back(spec.key);
  return list;
}

}  // namespace

const Schema& root_keys() {
  static const Schema schema = [] {
    Schema s = {key("schema", LH_T_INT, "version of the manifest's format", "1", "1", "1"),
                table("extends", "manifests that this one builds on"),
                table("run", "name, place and stages of the run"), table("trainer", "the loop"),
                table("resume", "where to go on")};
    for (const KindTable& t : kind_tables()) s.push_back(table(t.table, t.kind));
    return s;
  }();
  return schema;
}

const Schema& run_keys() {
  static const Schema schema = {
      text("name", "the run's name; default: the manifest's name without .toml"),
      key("dir", LH_T_PATH, "folder of all runs", "\"runs\""),
      key("seed", LH_T_INT, "seed of every random stream", "42", "0"),
      key("max_restarts", LH_T_INT, "starts after a failure, each from the last checkpoint", "0", "0"),
      stages(),
  };
  return schema;
}

const Schema& trainer_keys() {
  static const Schema schema = make_trainer();
  return schema;
}

const Schema& resume_keys() {
  static const Schema schema = {
      text("from", "\"last\", \"best\" or a checkpoint"),
      key("strict", LH_T_BOOL, "refuse a checkpoint with missing or unexpected entries", "true"),
  };
  return schema;
}

const Schema& selection_keys() {
  static const Schema schema = {
      text("use", "the component, by name"),
      key("plugin", LH_T_PATH, "the plugin that has it; default: searched by name"),
      text("version", "the version it must have"),
      text("name", "what records call it"),
  };
  return schema;
}

const Schema& data_keys() {
  static const Schema schema = {
      key("batch_size", LH_T_INT, "samples of one batch on one device", "32", "1", "1000000000"),
      key("shuffle", LH_T_BOOL, "new order of the training samples in each epoch", "true"),
      key("drop_last", LH_T_BOOL, "leave out a last batch that is not full", "false"),
      key("split.train", LH_T_SHARE, "share of the training part to train on"),
      key("split.val", LH_T_SHARE, "share of the training part to validate on"),
      key("threads", LH_T_INT, "threads that load batches; 0: the training thread does", "0", "0", "256"),
  };
  return schema;
}

const Schema& scheduler_keys() {
  static const Schema schema = {
      key("warmup", T_WARMUP, "linear rise at the start, in ticks or as a share of all", "0"),
      choice("interval", "when the schedule goes on", {"epoch", "step"}, "\"epoch\""),
      key("frequency", LH_T_INT, "intervals of one tick", "1", "1"),
  };
  return schema;
}

const Schema& checkpoint_keys() {
  static const Schema schema = make_checkpoint();
  return schema;
}

const Schema& group_keys() {
  static const Schema schema = {match(), text("name", "the group's name in records")};
  return schema;
}

const std::vector<KindTable>& kind_tables() {
  static const std::vector<KindTable> tables = {{"accelerator", "accelerator", false},
                                                {"launcher", "launcher", false},
                                                {"collective", "collective", false},
                                                {"strategy", "strategy", false},
                                                {"precision", "precision", false},
                                                {"model", "model", false},
                                                {"data", "data", false},
                                                {"optimizer", "optimizer", false},
                                                {"scheduler", "scheduler", false},
                                                {"callback", "callback", true},
                                                {"logger", "logger", true},
                                                {"profiler", "profiler", false},
                                                {"checkpointer", "checkpoint", true}};
  return tables;
}

const Schema& host_part(std::string_view kind) {
  static const Schema nothing,
      collective = make_collective(), optimizer = {table("group", "parameter groups")},
      logger = on_error("\"warn\""), callback = on_error("\"stop\""), profiler = on_error("\"warn\"");
  if (kind == "collective") return collective;
  if (kind == "data") return data_keys();
  if (kind == "scheduler") return scheduler_keys();
  if (kind == "checkpointer") return checkpoint_keys();
  if (kind == "optimizer") return optimizer;
  if (kind == "logger") return logger;
  if (kind == "callback") return callback;
  if (kind == "profiler") return profiler;
  return nothing;
}

KnownKeys host_known_keys() {
  KnownKeys known = {{"", names(root_keys())},
                     {"run", names(run_keys())},
                     {"trainer", names(trainer_keys())},
                     {"resume", names(resume_keys())},
                     {"optimizer.group", names(group_keys())}};
  for (const KindTable& t : kind_tables()) {
    std::vector<std::string>& keys = known[t.table] = names(host_part(t.kind));
    for (const std::string& k : names(selection_keys())) keys.push_back(k);
  }
  return known;
}

}  // namespace lhost
