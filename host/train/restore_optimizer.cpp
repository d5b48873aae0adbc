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

namespace {

// Where a file of Python's has the optimizer: torch's own, then Lightning's. Empty: the file is not Python's.
TreePath python_optimizer(const CheckpointTree& tree) {
  for (const TreePath& candidate : {TreePath{"optimizer"}, TreePath{"optimizer_states", "0"}}) {
    TreePath groups = candidate;
    groups.emplace_back("param_groups");
    if (tree.has_below(groups)) return candidate;
  }
  return {};
}

// Has all state below `base` that is like the parameter its shape?
bool fits(const CheckpointTree& tree, const TreePath& base, const std::vector<lh_slot>& slots,
          const lh_param_info& p) {
  return std::all_of(slots.begin(), slots.end(), [&](const lh_slot& slot) {
    TreePath path = base;
    path.emplace_back(view(slot.name));
    const TreeLeaf* leaf = tree.find(path);
    return !leaf || leaf->kind != LH_LEAF_TENSOR || slot.shape != LH_SLOT_LIKE_PARAM ||
           std::equal(leaf->shape.begin(), leaf->shape.end(), p.shape, p.shape + p.ndim);
  });
}

}  // namespace

void Trainer::restore_optimizer(const CheckpointTree& tree) {
  TreePath python = python_optimizer(tree);
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
    if (!fits(tree, base, slots_, params_[p])) {
      if (set_.resume_strict)
        throw Failure(Exit::failed,
                      resume_file_ + ": the optimizer's state of " + std::string(view(params_[p].name)) +
                          " has another shape than the parameter; does that optimizer hold its parameters "
                          "in another order? Expected is the model's, the base group first");
      ++left_out;
      continue;
    }
    std::vector<lh_tensor*> uncounted;  // numbers that the file lacks
    const size_t before = restored;
    for (uint32_t s = 0; s < slots_.size(); ++s) {
      TreePath path = base;
      path.emplace_back(view(slots_[s].name));
      lh_tensor* dst = engine_->slot(handle_.get(), p, s);
      if (!dst) continue;
      const TreeLeaf* leaf = tree.find(path);
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
  const std::string optimizer = "the optimizer \"" + c_.optimizer.identity().name + "\": ";
  if (missing)
    log(Level::warning, resume_file_ + " does not hold all state of " + optimizer + std::to_string(missing) +
                            " tensors start anew");
  else if (restored == 0 && left_out == 0 && !slots_.empty() && tree.has_below({"lhost", "counters"}))
    log(Level::warning, resume_file_ + " holds no state of " + optimizer + "it starts anew");
  if (left_out)
    log(Level::warning, "the optimizer's state of " + std::to_string(left_out) +
                            " parameters does not fit the model and starts anew (strict = false)");
}

}  // namespace lhost
