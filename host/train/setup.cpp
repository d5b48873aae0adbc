// host/train/setup.cpp - from components to a run that can start: ranks, device, data, layout, groups, loggers.
#include "base/failure.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <regex>

namespace lhost {

void Trainer::set_up() {
  state_.metrics.set_ranks(&ranks_);
  state_.sync_batchnorm = set_.sync_batchnorm && !ranks_.alone();
  make_votes();
  lh_device device{};
  check(c_.accelerator->open(c_.accelerator.self(), device_index(), &device));
  policy_.size = sizeof policy_;
  check(c_.precision->policy(c_.precision.self(), &policy_));
  describe_data();
  lay_out_model();
  const bool fits = std::find(set_.stages.begin(), set_.stages.end(), kFit) != set_.stages.end();
  if (fits) make_groups();
  CheckpointTree tree(engine_);
  if (!resume_file_.empty()) {
    tree.load(c_.checkpointers.at(0), resume_file_);
    if (fits) restore(tree);
    else restore_weights(tree);
  }
  if (fits) {
    make_schedule();
    if (restored_) restore_progress(tree);
  }
  for (size_t i = 0; i < c_.checkpointers.size(); ++i)
    if (keepers_.size() > i && restored_)
      keepers_[i]->load_state(tree, {"lhost", "policies", set_.checkpoints[i].instance});
  if (!owns_folder_ && ranks_.first())
    write_atomically(run_folder_ + "/manifest.resolved.toml", set_.manifest);
  owns_folder_ = true;
  if (!ranks_.first() && restored_rng_.empty()) check(engine_->seed(handle_.get(), rank_seed()));
  subscribe();
  open_loggers(restored_ ? &tree : nullptr);
  compile();
  if (fits) loss_metric_ = state_.metrics.declare("loss", LH_ON_STEP | LH_PROG_BAR, LH_MEAN);
  print_header();
}

void Trainer::make_votes() {
  const int64_t shape[] = {kVotes};
  check(engine_.tensor.empty(handle_.get(), {LH_DEVICE_CPU, 0}, {LH_DT_FLOAT, 64, 1}, shape, 1,
                             LH_EMPTY_ZEROED, &votes_tensor_));
  lh_view v{};
  check(engine_.tensor.view(votes_tensor_, &v));
  votes_ = reinterpret_cast<double*>(static_cast<char*>(v.data) + v.byte_offset);
}

uint32_t Trainer::device_index() const {
  const auto rank = static_cast<size_t>(state_.env.local_rank);
  return static_cast<uint32_t>(rank < set_.devices.size() ? set_.devices[rank] : state_.env.local_rank);
}

// The model is built from the run's seed on every rank; from there on each has a stream of its own (splitmix64).
uint64_t Trainer::rank_seed() const {
  uint64_t z = set_.seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(ranks_.rank());
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// ---- data

// What a data component answered, before it is used as sizes of memory.
void Trainer::check_split(int32_t split) const {
  const lh_split& info = splits_[split].info;
  std::string fault;
  if (info.samples < 0) fault = "has " + std::to_string(info.samples) + " samples";
  else if (info.samples > 0 && info.n_fields == 0) fault = "has no field";
  for (uint32_t f = 0; info.samples > 0 && f < info.n_fields; ++f) {
    const lh_field& field = info.fields[f];
    const std::string name(view(field.name));
    if (name.empty()) fault = "has a field without a name";
    if (field.ndim < 0 || field.dtype.bits % 8 != 0 || field.dtype.bits == 0)
      fault = "has the field \"" + name + "\" without a usable type";
    for (int32_t d = 0; d < field.ndim; ++d)
      if (field.shape[d] <= 0)
        fault = "has the field \"" + name + "\" with a size of " + std::to_string(field.shape[d]);
    for (uint32_t g = 0; g < f; ++g)
      if (view(info.fields[g].name) == name) fault = "has two fields \"" + name + "\"";
  }
  if (!fault.empty())
    throw Failure(Exit::plugin, "the data component \"" + c_.data.identity().name +
                                    "\" says that its split \"" + split_name(split) + "\" " + fault +
                                    "; this is a fault of the plugin");
}

void Trainer::describe_data() {
  bool wanted[4] = {};
  for (int32_t stage : set_.stages) wanted[stage] = true;  // stage and split have the same numbers
  wanted[LH_SPLIT_VAL] |= wanted[LH_SPLIT_TRAIN];
  const bool cut = set_.split_train || set_.split_val;
  for (int32_t split = 0; split < 4; ++split) {
    SplitData& d = splits_[split];
    d.source = split;
    d.info.size = sizeof d.info;
    const bool needs_train = split == LH_SPLIT_TRAIN && cut && wanted[LH_SPLIT_VAL];
    if (wanted[split] || needs_train) check(c_.data->describe(c_.data.self(), split, &d.info));
    check_split(split);
    d.samples.resize(static_cast<size_t>(d.info.samples));
    for (size_t i = 0; i < d.samples.size(); ++i) d.samples[i] = static_cast<int64_t>(i);
  }
  if (cut && wanted[LH_SPLIT_VAL]) {
    SplitData &train = splits_[LH_SPLIT_TRAIN], &val = splits_[LH_SPLIT_VAL];
    if (val.info.samples > 0)
      throw Failure(Exit::usage, "data.split: the data has a validation split of its own (" +
                                     grouped(val.info.samples) +
                                     " samples); remove data.split, or the validation files");
    SplitIndices parts = split_samples(train.info.samples, set_.split_train, set_.split_val);
    train.samples = std::move(parts.train);
    val.samples = std::move(parts.val);
    val.info = train.info;
    val.source = LH_SPLIT_TRAIN;
  }
  for (int32_t stage : set_.stages)
    if (stage_batches(stage) == 0)
      throw Failure(Exit::failed, std::string("the data has no batch for the stage \"") + stage_name(stage) +
                                      "\": " + grouped(static_cast<int64_t>(splits_[stage].samples.size())) +
                                      " samples in the split \"" + split_name(stage) + "\", batch size " +
                                      std::to_string(set_.batch_size));
}

FeedOptions Trainer::feed_options(int32_t split) const {
  FeedOptions o;
  o.split = splits_[split].source;
  o.batch_size = set_.batch_size;
  o.drop_last = split == LH_SPLIT_TRAIN && set_.drop_last;  // evaluation sees every sample
  o.threads = set_.data_threads;
  o.rank = topology_.data_rank;
  o.ranks = topology_.data_count;
  o.input = policy_.input;
  return o;
}

int64_t Trainer::stage_batches(int32_t split) const {
  const int64_t all =
      Feed::count_batches(static_cast<int64_t>(splits_[split].samples.size()), feed_options(split));
  const Limit& limit = set_.limits[split];
  if (!limit.is_share) return std::min(all, limit.batches);
  const auto batches = static_cast<int64_t>(static_cast<double>(all) * limit.share + 1e-9);
  if (batches == 0 && all > 0 && limit.share > 0)
    throw Failure(Exit::usage, "trainer.limit_" + std::string(split_name(split)) +
                                   "_batches: " + exact(limit.share) + " of " + std::to_string(all) +
                                   " batches is none; the smallest share is " +
                                   exact(std::ceil(1e4 / static_cast<double>(all)) / 1e4));
  return batches;
}

Feed& Trainer::feed(int32_t split) {
  SplitData& d = splits_[split];
  if (!d.feed)
    d.feed = std::make_unique<Feed>(c_.data, engine_, handle_.get(), feed_options(split), d.info.fields,
                                    d.info.n_fields);
  return *d.feed;
}

// ---- model

void Trainer::lay_out_model() {
  lh_run* run = handle_.get();
  check(engine_->adopt_model(run, &c_.model.table(), c_.model.self(), &policy_));
  params_.resize(engine_.params.count(run));
  for (uint32_t i = 0; i < params_.size(); ++i) {
    params_[i].size = sizeof(lh_param_info);
    check(engine_.params.info(run, i, &params_[i]));
  }
  check_same_everywhere();  // before the first exchange of the strategy
  lh_setup setup{sizeof(lh_setup), 0, &state_.env, &ranks_.table(), ranks_.self(), set_.accumulate,
                 votes_tensor_};
  topology_ = {sizeof(lh_topology), 0, state_.env.rank, state_.env.world_size};
  const lh_strategy_v0& s = c_.strategy.table();
  lh_strategy* self = c_.strategy.self();
  check(s.setup(self, run, &setup, &topology_));
  if (topology_.data_count < 1 || topology_.data_rank < 0 || topology_.data_rank >= topology_.data_count)
    throw Failure(Exit::plugin, "the strategy \"" + c_.strategy.identity().name +
                                    "\" gives this rank share " + std::to_string(topology_.data_rank) +
                                    " of " + std::to_string(topology_.data_count) +
                                    " of the data; this is a fault of the plugin");
  if (s.plan) {
    const lh_plan_v0* table = nullptr;
    lh_plan* plan = engine_->plan(run, &table);
    check(s.plan(self, plan, table));
  }
  check(engine_->layout(run));
  if (s.params_ready) {
    for (uint32_t u = 0; u < engine_.params.unit_count(run); ++u) check(s.params_ready(self, u));
    check(s.params_ready(self, LH_UNIT_ALL));
  }
  const lh_unit_events events{self, s.grad_ready, s.units};
  const lh_unit_calls* calls = nullptr;
  check(engine_->set_events(run, &events, &calls));
  if (c_.model->attach) check(c_.model->attach(c_.model.self(), calls));

  for (int32_t stage : set_.stages) {
    const bool missing = (stage == kValidate && !c_.model->validation_step) ||
                         (stage == kTest && !c_.model->test_step) ||
                         (stage == kPredict && !c_.model->predict_step);
    if (missing)
      throw Failure(Exit::usage, "run.stages: the model \"" + c_.model.identity().name +
                                     "\" has no step for the stage \"" + stage_name(stage) + "\"");
  }
}

void Trainer::make_groups() {
  members_.assign(set_.groups.size(), {});
  std::vector<std::string> names;
  std::vector<std::regex> patterns;
  for (const GroupSettings& g : set_.groups) patterns.emplace_back(g.match, std::regex::ECMAScript);
  for (uint32_t p = 0; p < params_.size(); ++p) {
    if (params_[p].flags != LH_P_TRAINABLE) continue;
    const std::string name(view(params_[p].name));
    names.push_back(name);
    size_t group = 0;
    for (size_t g = set_.groups.size(); g-- > 1;)
      if (std::regex_search(name, patterns[g])) group = g;  // downwards: the first match wins
    members_[group].push_back(p);
  }
  if (names.empty()) throw Failure(Exit::failed, "the model has no trainable parameter");
  for (size_t g = 1; g < members_.size(); ++g)
    if (members_[g].empty())
      throw Failure(Exit::usage,
                    "optimizer.group[" + std::to_string(g - 1) + "].match: \"" + set_.groups[g].match +
                        "\" fits no parameter, or earlier groups took them all; the parameters are " +
                        join(names, ", "));
  std::vector<lh_group_spec> specs;
  hyper_.clear();
  for (const GroupSettings& g : set_.groups) hyper_.push_back(g.hyper);
  for (size_t g = 0; g < members_.size(); ++g) {
    state_.group_names.push_back(set_.groups[g].name);
    specs.push_back({str(set_.groups[g].name), members_[g].data(), members_[g].size(), hyper_[g].data()});
  }
  lr_index_ = static_cast<size_t>(std::find(set_.hyper_names.begin(), set_.hyper_names.end(), "lr") -
                                  set_.hyper_names.begin());
  if (lr_index_ == set_.hyper_names.size())
    throw Failure(Exit::plugin, "the optimizer \"" + c_.optimizer.identity().name +
                                    "\" declares no hyper-parameter \"lr\"; this is a fault of the plugin");
  for (auto& h : hyper_) state_.group_rates.push_back(&h[lr_index_]);
  const lh_slot* slots = nullptr;
  const uint64_t n = c_.optimizer->slots ? c_.optimizer->slots(c_.optimizer.self(), &slots) : 0;
  slots_.assign(slots, slots + n);
  check(engine_->optimizer_groups(handle_.get(), specs.data(), specs.size(), slots_.data(), slots_.size()));
}

void Trainer::make_schedule() {
  epoch_batches_ = stage_batches(LH_SPLIT_TRAIN);
  if (!set_.max_epochs && set_.max_steps < 0 && ranks_.first())
    log(Level::warning,
        "trainer.max_epochs is not set: training ends after 1000 epochs; set it, -1 means no limit");
  state_.info.max_epochs = set_.max_epochs.value_or(set_.max_steps < 0 ? 1000 : -1);
  state_.info.max_steps = set_.max_steps;
  const int64_t steps_per_epoch = (epoch_batches_ + set_.accumulate - 1) / set_.accumulate;
  int64_t total = -1;
  if (set_.schedule.by_step) {
    if (state_.info.max_epochs >= 0) total = state_.info.max_epochs * steps_per_epoch;
    if (set_.max_steps >= 0 && (total < 0 || set_.max_steps < total)) total = set_.max_steps;
  } else {
    total = state_.info.max_epochs;
    if (total < 0 && set_.max_steps >= 0) total = (set_.max_steps + steps_per_epoch - 1) / steps_per_epoch;
  }
  std::vector<double> base;
  for (const auto& h : hyper_) base.push_back(h[lr_index_]);
  schedule_ = std::make_unique<Schedule>(c_.scheduler, set_.schedule, total, base);
  schedule_->check();
  for (const CheckpointPolicy& p : set_.checkpoints)
    if (p.monitor.rfind("val_", 0) == 0 && !can_validate())
      throw Failure(Exit::usage,
                    p.instance + ".monitor: \"" + p.monitor +
                        "\" comes from validation, and this run has none: " +
                        (c_.model->validation_step ? "there is no validation data, or limit_val_batches is 0"
                                                   : "the model has no validation_step") +
                        "; add it, or monitor another metric");
  for (size_t i = 0; ranks_.first() && i < c_.checkpointers.size(); ++i) {
    const Checkpointer& c = c_.checkpointers[i];
    keepers_.push_back(std::make_unique<CheckpointKeeper>(
        set_.checkpoints[i], run_folder_, std::string(view(c->suffix(c.self()))),
        [this, i](const std::string& path, bool weights_only) { write_checkpoint(i, path, weights_only); }));
  }
}

// ---- loggers, header

void Trainer::open_loggers(const CheckpointTree* resumed) {
  lh_run_info info{sizeof(lh_run_info), resumed ? uint32_t{LH_RUN_RESUMED} : 0u,
                   str(set_.name),      str(run_folder_),
                   str(set_.manifest),  str(set_.host_version),
                   state_.env.rank,     state_.env.world_size};
  std::vector<lh_pair> pairs;
  for (const auto& [key, value] : set_.hyper_parameters) pairs.push_back({str(key), str(value)});
  log_writer_.open(info, pairs, [&](size_t i) {
    if (resumed) resumed->load_state({"lhost", "state", c_.loggers[i].identity().instance}, c_.loggers[i]);
  });
  if (!c_.profiler) return;
  lh_status status = c_.profiler->start(c_.profiler.self(), &info, &profile_mask_);
  if (!status) return;
  if (set_.profiler_stops) raise(status);
  const PluginError e = take(status);
  log(Level::warning, e.component + ": " + e.message + "; the run goes on without it (on_error = \"warn\")");
  profile_mask_ = 0;
}

void Trainer::print_header() const {
  Terminal& t = Terminal::get();
  int64_t numel = 0, tensors = 0;
  double bytes = 0;
  for (const lh_param_info& p : params_) {
    if (p.flags & (LH_P_BUFFER | LH_P_ALIAS)) continue;
    numel += p.numel;
    bytes += static_cast<double>(p.numel) * p.dtype.bits / 8;
    ++tensors;
  }
  t.print("lhost " + set_.host_version + "  " + set_.name + "  " + c_.accelerator.identity().name + " x" +
          std::to_string(state_.env.world_size) + "  " + c_.strategy.identity().name + "  " +
          c_.precision.identity().name + "  seed " + std::to_string(set_.seed));
  const auto padded = [](const std::string& s) {
    return s + std::string(s.size() < 10 ? 10 - s.size() : 0, ' ');
  };
  t.print("model " + padded(c_.model.identity().name) + " " + grouped(numel) + " parameters, " +
          std::to_string(tensors) + " tensors, " + human_bytes(bytes));
  std::vector<std::string> parts;
  for (int32_t split = 0; split < 4; ++split)
    if (!splits_[split].samples.empty())
      parts.push_back(grouped(static_cast<int64_t>(splits_[split].samples.size())) + " " + split_name(split));
  t.print("data  " + padded(c_.data.identity().name) + " " + join(parts, ", "));
  t.print("into  " + shown(run_folder_));
  if (restored_)
    t.print("from  " + shown(resume_file_) + " (epoch " + std::to_string(state_.step.epoch) + ", step " +
            std::to_string(state_.step.global_step) + ")");
  else if (!resume_file_.empty()) t.print("from  " + shown(resume_file_) + " (weights)");
}

}  // namespace lhost
