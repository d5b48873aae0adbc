// host/train/checkpointing.cpp - what a checkpoint holds, and how a run goes on from one.
//
//   state_dict/<name>                  parameters, aliases, buffers: as Python's state_dict
//   optimizer/<parameter>/<slot>       optimizer state by parameter name
//   lhost/{counters, rng, groups, schedule, metrics, known, state, policies, ...}
//   lhost/rank_rng/<rank>              the random streams of the ranks behind the first
// A bare state_dict gives weights; a Lightning file or {"state_dict", "optimizer": opt.state_dict()} gives weights and
// optimizer state, by index in the order of the parameters.
#include "base/failure.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace lhost {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (int64_t n : shape) parts.push_back(std::to_string(n));
  return "[" + join(parts, ", ") + "]";
}
std::string dtype_text(lh_dtype d) {
  const char* code = d.code == LH_DT_FLOAT    ? "float"
                     : d.code == LH_DT_BFLOAT ? "bfloat"
                     : d.code == LH_DT_UINT   ? "uint"
                     : d.code == LH_DT_BOOL   ? "bool"
                                              : "int";
  return code + std::to_string(d.bits);
}
constexpr double kLoggerSeconds = 30;
constexpr const char *kWeightsOnly = "weights", *kEverything = "all";  // what rank 0 is about to save
bool same_dtype(lh_dtype a, lh_dtype b) { return a.code == b.code && a.bits == b.bits; }

}  // namespace

CheckpointKeeper::Moment Trainer::moment() {
  return {state_.step.epoch, state_.step.global_step, &state_.metrics, validated_ || !can_validate()};
}

void Trainer::fill(CheckpointTree& tree, bool weights_only) {
  lh_run* run = handle_.get();
  for (uint32_t p = 0; p < params_.size(); ++p)
    tree.put_tensor({"state_dict", std::string(view(params_[p].name))}, engine_.params.tensor(run, p));
  tree.put({"lhost", "format"}, int64_t{1});
  tree.put({"lhost", "version"}, set_.host_version);
  tree.put({"lhost", "manifest"}, set_.manifest);
  if (weights_only) return;

  for (uint32_t p = 0; p < params_.size(); ++p)
    for (uint32_t s = 0; s < slots_.size(); ++s)
      if (lh_tensor* t = engine_->slot(run, p, s))
        tree.put_tensor({"optimizer", std::string(view(params_[p].name)), std::string(view(slots_[s].name))},
                        t);

  const auto counter = [&](const char* name, int64_t v) { tree.put({"lhost", "counters", name}, v); };
  counter("epoch", state_.step.epoch + (epoch_done_ ? 1 : 0));
  counter("batch", epoch_done_ ? 0 : boundary_batch_);
  counter("global_batch", set_.batch_size * topology_.data_count);  // rows of one batch over all ranks
  counter("global_step", state_.step.global_step);
  counter("samples", boundary_samples_);
  fill_random(tree);
  for (size_t g = 0; g < hyper_.size(); ++g)
    tree.put({"lhost", "groups", std::to_string(g), "lr"}, schedule_->base_rates()[g]);
  tree.put({"lhost", "schedule", "total"}, schedule_->total());
  if (!epoch_done_)
    for (const Metrics::Saved& m : state_.metrics.save_epoch()) {
      tree.put({"lhost", "metrics", m.name, "values"}, std::vector<double>{m.value, m.weight});
      tree.put({"lhost", "metrics", m.name, "count"}, m.count);
      tree.put({"lhost", "metrics", m.name, "flags"}, static_cast<int64_t>(m.flags));
      tree.put({"lhost", "metrics", m.name, "reduce"}, static_cast<int64_t>(m.reduce));
    }
  for (const KnownMetric& k : state_.metrics.known()) tree.put({"lhost", "known", k.name}, k.value);
  for (size_t i = 0; i < keepers_.size(); ++i)
    keepers_[i]->save_state(tree, {"lhost", "policies", set_.checkpoints[i].instance});
  fill_states(tree);
}

// The random streams of all ranks. With several ranks all of them are here at the same time, but after a failure.
void Trainer::fill_random(CheckpointTree& tree) {
  lh_tensor* rng = nullptr;
  check(engine_->rng_save(handle_.get(), &rng));
  tree.put_tensor({"lhost", "rng"}, rng);
  lh_view v{};
  lh_status s = engine_.tensor.view(rng, &v);
  const std::string bytes =
      s ? "" : std::string(static_cast<char*>(v.data) + v.byte_offset, static_cast<size_t>(v.shape[0]));
  engine_.tensor.release(rng);
  check(s);
  if (ranks_.alone() || saving_alone_) return;
  const std::vector<std::string> all = ranks_.gather(bytes);
  for (size_t r = 1; r < all.size(); ++r) {
    lh_tensor* copy = nullptr;
    const auto n = static_cast<int64_t>(all[r].size());
    check(engine_.tensor.empty(handle_.get(), {LH_DEVICE_CPU, 0}, {LH_DT_UINT, 8, 1}, &n, 1, 0, &copy));
    s = engine_.tensor.view(copy, &v);
    if (!s) std::memcpy(static_cast<char*>(v.data) + v.byte_offset, all[r].data(), all[r].size());
    tree.put_tensor({"lhost", "rank_rng", std::to_string(r)}, copy);
    engine_.tensor.release(copy);
    check(s);
  }
}

void Trainer::fill_states(CheckpointTree& tree) {
  const auto state = [&](const auto& c) {
    if (c) tree.save_state({"lhost", "state", c.identity().instance}, c);
  };
  state(c_.data), state(c_.model), state(c_.strategy), state(c_.precision), state(c_.optimizer),
      state(c_.scheduler);
  for (const Callback& c : c_.callbacks) state(c);
  // Loggers answer on their own thread. One that does not in time is left out; it may still write into `logged` later,
  // which therefore outlives this call.
  const auto logged = std::make_shared<CheckpointTree>(engine_);
  const auto save = [this, logged](size_t i) -> lh_status {
    try {
      logged->save_state({"lhost", "state", c_.loggers[i].identity().instance}, c_.loggers[i]);
      return nullptr;
    } catch (const ComponentFailure& f) {
      return make_status(f.code, f.component, f.where, f.what());
    }
  };
  if (log_writer_.visit(save, kLoggerSeconds)) tree.absorb(std::move(*logged));
  else log(Level::warning, "a logger did not come back in time: its position is not in this checkpoint");
}

bool Trainer::may_save_at(int64_t global_step) const {
  return std::any_of(set_.checkpoints.begin(), set_.checkpoints.end(), [&](const CheckpointPolicy& p) {
    return p.every_n_steps && global_step % *p.every_n_steps == 0;
  });
}

// Rank 0 says before each file what it takes, and at the end that there are no more. The others wait for it however
// long its disk needs.
void Trainer::save_point(const std::function<void(CheckpointKeeper&)>& visit) {
  if (set_.checkpoints.empty()) return;
  if (ranks_.first()) {
    watch_.page.set_phase(RankPhase::saving);
    for (auto& k : keepers_) visit(*k);
    watch_.page.set_phase(RankPhase::running);
    ranks_.broadcast("");
    return;
  }
  for (;;) {
    const std::string what = ranks_.broadcast("", /*patient=*/true);
    if (what.empty()) return;
    CheckpointTree unused(engine_);
    fill(unused, what == kWeightsOnly);
  }
}

void Trainer::write_checkpoint(size_t policy, const std::string& path, bool weights_only) {
  if (!saving_alone_) ranks_.broadcast(weights_only ? kWeightsOnly : kEverything);
  if (profile_mask_ >> LH_SPAN_CHECKPOINT & 1) profile(LH_SPAN_CHECKPOINT, true);
  CheckpointTree tree(engine_);
  fill(tree, weights_only);
  tree.save(c_.checkpointers[policy], path);
  result_.last_path = path;
  write_index();  // before any older file is removed: what the index names is always there
  if (profile_mask_ >> LH_SPAN_CHECKPOINT & 1) profile(LH_SPAN_CHECKPOINT, false);
  constexpr int32_t event = LH_EVENT(LH_STAGE_FIT, LH_ON_CHECKPOINT);
  if (!heard(event)) return;
  state_.checkpoint = path;
  emit(event);
  state_.checkpoint.clear();
}

// <run folder>/checkpoints.json: what `--resume last` and `--resume best` mean.
void Trainer::write_index() const {
  const auto relative = [&](const std::string& path) {
    return path.rfind(run_folder_ + "/", 0) == 0 ? path.substr(run_folder_.size() + 1) : path;
  };
  nlohmann::ordered_json index = {{"last", relative(result_.last_path)}, {"best", nullptr}};
  for (const auto& k : keepers_)
    if (const auto best = k->best(); best && (index["best"].is_null() || !k->policy().monitor.empty())) {
      index["best"] = best->file;
      if (!k->policy().monitor.empty()) break;
    }
  if (index["best"].is_null()) index.erase("best");
  write_atomically(run_folder_ + "/checkpoints.json",
                   index.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

// ---- going on

void Trainer::restore(const CheckpointTree& tree) {
  restore_weights(tree);
  restore_optimizer(tree);
  restored_ = tree.has_below({"lhost", "counters"});
  if (!restored_)
    log(Level::warning,
        resume_file_ + " holds weights only: counters, data position and random numbers start anew");
}

// Another number of ranks, or another batch size: the place in the epoch is kept in samples.
void Trainer::restore_position(const CheckpointTree& tree) {
  lh_step& step = state_.step;
  const int64_t now = set_.batch_size * topology_.data_count;
  const int64_t then = tree.integer({"lhost", "counters", "global_batch"}, now);
  if (then == now || step.batch == 0) return;
  const int64_t rows = step.batch * then;
  if (rows % now != 0)
    throw Failure(Exit::usage,
                  resume_file_ + " was written after " + grouped(rows) +
                      " samples of an epoch, in batches of " + std::to_string(then) +
                      " over all ranks; batches of " + std::to_string(now) +
                      " do not meet that place. Choose ranks x batch_size that divides it, or go on "
                      "from a checkpoint of an epoch's end");
  step.batch = boundary_batch_ = rows / now;
  if (ranks_.first())
    log(Level::warning, "the epoch goes on after " + grouped(rows) + " samples: batch " +
                            std::to_string(step.batch) + " of " + std::to_string(epoch_batches_) +
                            " now, with " + std::to_string(now) + " instead of " + std::to_string(then) +
                            " samples in each");
}

// Everything is compared before anything is touched.
void Trainer::restore_weights(const CheckpointTree& tree) {
  const TreePath prefix = tree.has_below({"state_dict"}) ? TreePath{"state_dict"} : TreePath{};
  std::vector<std::string> problems;
  std::vector<const TreeLeaf*> found(params_.size(), nullptr);
  std::vector<std::string> known;
  for (uint32_t p = 0; p < params_.size(); ++p) {
    TreePath path = prefix;
    path.emplace_back(view(params_[p].name));
    known.push_back(path.back());
    const TreeLeaf* leaf = tree.find(path);
    const std::vector<int64_t> shape(params_[p].shape, params_[p].shape + params_[p].ndim);
    if (!leaf || leaf->kind != LH_LEAF_TENSOR) problems.push_back("missing     " + known.back());
    else if (leaf->shape != shape)
      problems.push_back("mismatched  " + known.back() + ": the file has " + shape_text(leaf->shape) +
                         ", the model " + shape_text(shape));
    else if (set_.resume_strict && !same_dtype(leaf->dtype, params_[p].dtype))
      problems.push_back("mismatched  " + known.back() + ": the file has " + dtype_text(leaf->dtype) +
                         ", the model " + dtype_text(params_[p].dtype));
    else found[p] = leaf;
  }
  for (const TreeLeaf* leaf : tree.below(prefix))
    if (leaf->kind == LH_LEAF_TENSOR && leaf->path.size() == prefix.size() + 1 &&
        std::find(known.begin(), known.end(), leaf->path.back()) == known.end())
      problems.push_back("unexpected  " + leaf->path.back());
  const bool nothing = std::all_of(found.begin(), found.end(), [](auto* f) { return !f; });
  if (!problems.empty() && (set_.resume_strict || nothing)) {
    if (problems.size() > 12) problems.resize(12), problems.push_back("...");
    throw Failure(Exit::failed, resume_file_ + " does not fit the model:\n  " + join(problems, "\n  ") +
                                    "\nNothing was loaded. [resume] strict = false takes what fits.");
  }
  for (const std::string& p : problems) log(Level::warning, resume_file_ + ": " + p);
  for (uint32_t p = 0; p < params_.size(); ++p) {
    if (!found[p] || params_[p].flags & LH_P_ALIAS) continue;
    const lh_view v = found[p]->view();
    check(engine_->assign(engine_.params.tensor(handle_.get(), p), &v));
  }
}

void Trainer::restore_progress(const CheckpointTree& tree) {
  restore_counters(tree);
  const TreePath stream = ranks_.first() ? TreePath{"lhost", "rng"}
                                         : TreePath{"lhost", "rank_rng", std::to_string(ranks_.rank())};
  if (const TreeLeaf* rng = tree.find(stream); rng && rng->kind == LH_LEAF_TENSOR && rng->shape.size() == 1)
    restored_rng_.assign(static_cast<const char*>(rng->data),
                         static_cast<const char*>(rng->data) + rng->shape[0]);
  restore_rates(tree);
  restore_metrics(tree);
  const auto state = [&](const auto& c) {
    if (c) tree.load_state({"lhost", "state", c.identity().instance}, c);
  };
  state(c_.data), state(c_.model), state(c_.strategy), state(c_.precision), state(c_.optimizer),
      state(c_.scheduler);
  for (const Callback& c : c_.callbacks) state(c);
}

void Trainer::restore_counters(const CheckpointTree& tree) {
  const auto counter = [&](const char* name) { return tree.integer({"lhost", "counters", name}, 0); };
  lh_step& step = state_.step;
  step.epoch = counter("epoch");
  step.batch = boundary_batch_ = counter("batch");
  step.global_step = counter("global_step");
  step.samples = boundary_samples_ = counter("samples");
  if (step.epoch < 0 || step.batch < 0 || step.global_step < 0 || step.samples < 0)
    throw Failure(Exit::failed,
                  resume_file_ + " holds negative counters: it was not written by lhost, or is damaged");
  restore_position(tree);
  mid_epoch_ = step.batch > 0;
  const int64_t max_epochs = state_.info.max_epochs;
  if ((max_epochs >= 0 && step.epoch + (mid_epoch_ ? 1 : 0) > max_epochs) ||
      (set_.max_steps >= 0 && step.global_step > set_.max_steps))
    throw Failure(Exit::usage, resume_file_ + " (epoch " + std::to_string(step.epoch) + ", step " +
                                   std::to_string(step.global_step) +
                                   ") is beyond trainer.max_epochs = " + std::to_string(max_epochs) +
                                   ", max_steps = " + std::to_string(set_.max_steps) +
                                   "; set more, or resume from an earlier file");
  if (step.batch > epoch_batches_)
    throw Failure(Exit::usage, resume_file_ + " was written after batch " + std::to_string(step.batch) +
                                   " of an epoch that now has " + std::to_string(epoch_batches_) +
                                   " batches; use the same data, batch size and limits as that run");
}

void Trainer::restore_rates(const CheckpointTree& tree) {
  for (size_t g = 0; g < hyper_.size(); ++g) {
    const double now = schedule_->base_rates()[g];
    const double then = tree.number({"lhost", "groups", std::to_string(g), "lr"}, now);
    if (then == now || set_.groups[g].lr_from_command_line) continue;
    log(Level::warning, "the checkpoint's learning rate " + exact(then) +
                            " is used instead of the manifest's " + exact(now) +
                            "; optimizer.lr=" + exact(now) + " on the command line changes it");
    schedule_->base_rates()[g] = then;
  }
  if (const int64_t total = tree.integer({"lhost", "schedule", "total"}, schedule_->total());
      total != schedule_->total() && c_.scheduler) {
    log(Level::warning, "the schedule keeps the length it was started with, " + std::to_string(total) +
                            " instead of " + std::to_string(schedule_->total()) +
                            " ticks; for a longer one start a new run from these weights");
    schedule_->keep_total(total);
  }
}

void Trainer::restore_metrics(const CheckpointTree& tree) {
  std::vector<Metrics::Saved> saved;
  for (const std::string& name : tree.children({"lhost", "metrics"})) {
    const TreeLeaf* values = tree.find({"lhost", "metrics", name, "values"});
    const auto integer = [&](const char* key) { return tree.integer({"lhost", "metrics", name, key}, 0); };
    if (values && values->lf.size() == 2)
      saved.push_back({name, static_cast<uint32_t>(integer("flags")), static_cast<int32_t>(integer("reduce")),
                       values->lf[0], values->lf[1], integer("count")});
  }
  if (ranks_.first()) state_.metrics.load_epoch(saved);  // they are those of all ranks
  for (const std::string& name : tree.children({"lhost", "known"}))
    state_.metrics.restore_known(name, tree.number({"lhost", "known", name}, 0), 0);
}

// For test and predict after fit: the best checkpoint, without a monitor the last one. Rank 0 knows which.
std::string Trainer::load_saved_weights() {
  std::string file, label, policy;
  for (size_t i = 0; i < keepers_.size() && file.empty(); ++i) {
    const auto best = keepers_[i]->best();
    if (!best) continue;
    file = run_folder_ + "/" + best->file;
    policy = std::to_string(i);
    label = keepers_[i]->policy().monitor.empty()            ? "last checkpoint"
            : std::isnan(best->value.value_or(std::nan(""))) ? "a checkpoint, none is best"
                                                             : "best checkpoint";
  }
  file = ranks_.broadcast(file);
  if (file.empty()) return "";
  policy = ranks_.broadcast(policy);
  CheckpointTree tree(engine_);
  tree.load(c_.checkpointers[std::stoul(policy)], file);
  restore_weights(tree);
  return ranks_.broadcast(label);
}

}  // namespace lhost
