// host/train/restore_optimizer.cpp - the optimizer's state from a checkpoint of ours (by parameter name) or of Python
// (by number, as torch.optim.Optimizer.state_dict counts: group after group).
#include "base/failure.hpp"
#include "base/log.hpp"
#include "train/trainer.hpp"

#include <algorithm>

namespace lhost {

// The number that Python gave to each parameter of the model; -1: it has no state. One group holds the parameters in the
// order of the model, with or without the frozen ones; several groups must be those of this manifest.
std::vector<int64_t> Trainer::python_numbers(const CheckpointTree& tree, const TreePath& groups) const {
  std::vector<size_t> sizes;
  for (const std::string& g : tree.children(groups)) {
    TreePath path = groups;
    path.insert(path.end(), {g, "params"});
    const TreeLeaf* list = tree.find(path);
    if (list && list->type == LH_T_LIST_INT) sizes.push_back(list->li.size());
  }
  std::vector<uint32_t> all, trainable;
  for (uint32_t p = 0; p < params_.size(); ++p) {
    if (params_[p].flags & (LH_P_BUFFER | LH_P_ALIAS)) continue;
    all.push_back(p);
    if (params_[p].flags == LH_P_TRAINABLE) trainable.push_back(p);
  }
  using Lists = std::vector<std::vector<uint32_t>>;
  Lists ours;
  std::copy_if(members_.begin(), members_.end(), std::back_inserter(ours),
               [](const auto& m) { return !m.empty(); });
  const auto same_sizes = [&](const Lists& lists) {
    return std::equal(sizes.begin(), sizes.end(), lists.begin(), lists.end(),
                      [](size_t n, const auto& m) { return n == m.size(); });
  };
  Lists order;
  for (const Lists& candidate : {Lists{trainable}, Lists{all}, ours})
    if (order.empty() && same_sizes(candidate)) order = candidate;
  if (order.empty()) {
    std::string found, expected;
    for (size_t n : sizes) found += (found.empty() ? "" : ", ") + std::to_string(n);
    for (const auto& m : ours) expected += (expected.empty() ? "" : ", ") + std::to_string(m.size());
    throw Failure(Exit::failed, resume_file_ + ": its optimizer has groups of " + found +
                                    " parameters, this run's has groups of " + expected +
                                    "; use the same groups ([[optimizer.group]]), or save the weights alone");
  }
  std::vector<int64_t> numbers(params_.size(), -1);
  int64_t next = 0;
  for (const auto& group : order)
    for (uint32_t p : group) numbers[p] = next++;
  return numbers;
}

void Trainer::restore_optimizer(const CheckpointTree& tree) {
  TreePath python;
  for (const TreePath& candidate : {TreePath{"optimizer"}, TreePath{"optimizer_states", "0"}}) {
    TreePath groups = candidate;
    groups.emplace_back("param_groups");
    if (tree.has_below(groups)) python = candidate;
  }
  std::vector<int64_t> numbers;
  if (!python.empty()) {
    TreePath groups = python;
    groups.emplace_back("param_groups");
    numbers = python_numbers(tree, groups);
    python.emplace_back("state");
  }
  float scalar = 0;
  const auto number = [&scalar](double x) -> lh_view {
    scalar = static_cast<float>(x);
    return {&scalar, {LH_DEVICE_CPU, 0}, 0, {LH_DT_FLOAT, 32, 1}, nullptr, nullptr, 0};
  };
  const auto assign = [&](lh_tensor* dst, const lh_view& v) { check(engine_->assign(dst, &v)); };
  size_t restored = 0, left_out = 0, missing = 0;
  for (uint32_t p = 0; p < params_.size(); ++p) {
    if (params_[p].flags != LH_P_TRAINABLE) continue;
    TreePath base = python;
    if (python.empty()) base = {"optimizer", std::string(view(params_[p].name))};
    else base.push_back(std::to_string(numbers[p]));
    std::vector<lh_tensor*> uncounted;  // numbers that the file lacks
    const size_t before = restored;
    for (uint32_t s = 0; s < slots_.size(); ++s) {
      TreePath path = base;
      path.emplace_back(view(slots_[s].name));
      lh_tensor* dst = engine_->slot(handle_.get(), p, s);
      if (!dst) continue;
      const TreeLeaf* leaf = tree.find(path);
      const std::vector<int64_t> shape(params_[p].shape, params_[p].shape + params_[p].ndim);
      const bool other_shape = leaf && leaf->kind == LH_LEAF_TENSOR &&
                               slots_[s].shape == LH_SLOT_LIKE_PARAM && leaf->shape != shape;
      if (other_shape && !set_.resume_strict) {
        ++left_out;
        continue;
      }
      if (other_shape)
        throw Failure(Exit::failed,
                      resume_file_ + ": the optimizer's " + path.back() + " of " +
                          std::string(view(params_[p].name)) +
                          " has another shape than the parameter; does that optimizer hold its parameters "
                          "in another order? Expected is the model's, the base group first");
      if (leaf && leaf->kind == LH_LEAF_TENSOR) assign(dst, leaf->view()), ++restored;
      else if (leaf && leaf->type == LH_T_INT) assign(dst, number(static_cast<double>(leaf->i))), ++restored;
      else if (leaf && leaf->type == LH_T_FLOAT) assign(dst, number(leaf->f)), ++restored;
      else if (slots_[s].shape == LH_SLOT_SCALAR) uncounted.push_back(dst);
      else if (tree.has_below(base)) ++missing;
    }
    // Python's SGD counts no steps: that there is a momentum says that the next step is not the first.
    if (restored > before)
      for (lh_tensor* count : uncounted) assign(count, number(1));
  }
  if (missing)
    log(Level::warning, resume_file_ + " does not hold all state of the optimizer \"" +
                            c_.optimizer.identity().name + "\": " + std::to_string(missing) +
                            " tensors start anew");
  if (left_out)
    log(Level::warning,
        std::to_string(left_out) +
            " tensors of the optimizer's state do not fit the model and start anew (strict = false)");
  if (restored == 0 && missing == 0 && !slots_.empty() && tree.has_below({"lhost", "counters"}))
    log(Level::warning, resume_file_ + " holds no state of the optimizer \"" + c_.optimizer.identity().name +
                            "\": it starts anew");
}

}  // namespace lhost
