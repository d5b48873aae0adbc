// host/train/checkpoint_tree.hpp - the content of a checkpoint as a tree of values and tensors, between the run and a
// checkpointer. Owns what it holds.
#pragma once
#include "kinds/component.hpp"
#include "train/engine.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lhost {

using TreePath = std::vector<std::string>;

struct TreeLeaf {
  TreePath path;
  int32_t kind = LH_LEAF_VALUE;
  // VALUE: what the type says; strings and lists live here
  int32_t type = LH_T_NONE;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> li;
  std::vector<double> lf;
  std::vector<std::string> ls;
  // TENSOR
  lh_dtype dtype{};
  std::vector<int64_t> shape;
  const void* data = nullptr;  // in `bytes`, in the file, or in `handle`
  std::vector<char> bytes;
  lh_tensor* handle = nullptr;  // released with the tree

  lh_value value(std::vector<lh_str>& strings) const;
  lh_view view() const;  // contiguous, host memory
};

class CheckpointTree {
 public:
  explicit CheckpointTree(const Engine& engine) : engine_(engine) {}
  ~CheckpointTree();
  CheckpointTree(const CheckpointTree&) = delete;

  void put(TreePath, bool);
  void put(TreePath, int64_t);
  void put(TreePath, double);
  void put(TreePath, std::string);
  void put(TreePath, std::vector<double>);
  void put_value(TreePath, const lh_value&);  // copied
  void put_tensor(TreePath,
                  lh_tensor* borrowed);  // brought to host memory; shares it when it is there already

  void absorb(CheckpointTree&& other);  // its leaves come behind ours

  const TreeLeaf* find(const TreePath&) const;
  int64_t integer(const TreePath&, int64_t otherwise) const;
  double number(const TreePath&, double otherwise) const;
  std::string text(const TreePath&, const std::string& otherwise) const;
  bool has_below(const TreePath& prefix) const;
  std::vector<const TreeLeaf*> below(const TreePath& prefix) const;  // in the order of the file
  std::vector<std::string> children(const TreePath& prefix) const;   // next keys, each once, in order

  // Written under a temporary name and renamed (base/files.hpp).
  void save(const Checkpointer&, const std::string& path) const;
  void load(const Checkpointer&, const std::string& path);

  const Engine& engine() const { return engine_; }

  // A part of the tree as state of a component.
  template <class Component>
  void save_state(const TreePath& prefix, const Component& c);
  template <class Component>
  void load_state(const TreePath& prefix, const Component& c) const;

 private:
  TreeLeaf& add(TreePath);
  const Engine& engine_;
  std::vector<std::unique_ptr<TreeLeaf>> leaves_;
  std::unordered_map<std::string, size_t> index_;
  std::string file_;  // its bytes, which tensors may point into
};

// Context of lh_state_out and lh_state_in while a component's state is taken or given.
struct StateContext {
  CheckpointTree* out;
  const CheckpointTree* in;
  TreePath prefix;
  std::vector<std::vector<lh_str>> strings;  // lists lent to load_state
};
lh_state_out state_out(StateContext&);
lh_state_in state_in(StateContext&);

template <class Component>
void CheckpointTree::save_state(const TreePath& prefix, const Component& c) {
  if (!c || !c->save_state) return;
  StateContext context{this, nullptr, prefix, {}};
  const lh_state_out s = lhost::state_out(context);
  check(c->save_state(c.self(), &s));
}
template <class Component>
void CheckpointTree::load_state(const TreePath& prefix, const Component& c) const {
  if (!c || !c->load_state || !has_below(prefix)) return;
  StateContext context{nullptr, this, prefix, {}};
  const lh_state_in s = lhost::state_in(context);
  check(c->load_state(c.self(), &s));
}

}  // namespace lhost
