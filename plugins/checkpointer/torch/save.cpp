#include "bytes.hpp"
#include "dtype.hpp"
#include "file.hpp"
#include "pickle_writer.hpp"
#include "tensor.hpp"
#include "zip_writer.hpp"

#include <lhost/sdk/plugin.hpp>

#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

namespace torch_file {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw lhost::Error(LH_INVALID_ARGUMENT, what); }

std::string path_text(const lh_leaf& leaf) {
  std::string out;
  for (uint32_t i = 0; i < leaf.n_path; ++i) out += (i ? "." : "") + printable(lhost::view(leaf.path[i]));
  return "\"" + out + "\"";
}

// The leaves as nested dicts, in the order in which their keys first appear.
struct Node {
  std::string_view key;
  const lh_leaf* leaf = nullptr;  // else a dict
  std::vector<Node*> children;
  std::unordered_map<std::string_view, Node*> by_key;
};

class Tree {
 public:
  Tree(const lh_leaf* leaves, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) add(leaves[i]);
  }
  const Node& root() const { return nodes_.front(); }

 private:
  void add(const lh_leaf& leaf) {
    if (leaf.n_path == 0)
      refuse("a leaf has no path; a checkpoint is a dict, so each needs one key at least");
    if (leaf.n_path > kMostLevels)
      refuse(path_text(leaf) + " is " + std::to_string(leaf.n_path) + " levels deep, expected at most " +
             std::to_string(kMostLevels));
    Node* at = &nodes_.front();
    for (uint32_t i = 0; i < leaf.n_path; ++i) {
      if (at->leaf)
        refuse(path_text(leaf) + " goes on below a path that is a leaf itself; rename one of the two");
      at = child(*at, lhost::view(leaf.path[i]));
    }
    if (at->leaf) refuse(path_text(leaf) + " is there twice");
    if (!at->children.empty())
      refuse(path_text(leaf) + " is a leaf, but other paths go on below it; rename it");
    at->leaf = &leaf;
  }

  Node* child(Node& parent, std::string_view key) {
    Node*& known = parent.by_key[key];
    if (!known) {
      known = &nodes_.emplace_back();
      known->key = key;
      parent.children.push_back(known);
    }
    return known;
  }

  std::deque<Node> nodes_{1};  // addresses stay
};

class Writer {
 public:
  void node(const Node& node);
  std::string finish() { return pickle_.finish(); }
  const std::vector<lh_bytes>& storages() const { return storages_; }

 private:
  void value(const lh_leaf& leaf);
  void tensor(const lh_leaf& leaf);

  template <class F>
  void list(uint32_t n, F item) {
    pickle_.begin_list();
    for (uint32_t i = 0; i < n; ++i) item(i);
    pickle_.end_list();
  }

  PickleWriter pickle_;
  std::vector<lh_bytes> storages_;
  std::map<std::tuple<const char*, std::string_view, std::vector<int64_t>>, uint64_t> tied_;
};

void Writer::node(const Node& n) {
  if (n.leaf) return n.leaf->kind == LH_LEAF_TENSOR ? tensor(*n.leaf) : value(*n.leaf);
  pickle_.begin_dict();
  for (const Node* child : n.children) {
    pickle_.text(child->key);
    node(*child);
  }
  pickle_.end_dict();
}

void Writer::value(const lh_leaf& leaf) {
  const lh_value& v = leaf.value;
  const int32_t type = leaf.kind == LH_LEAF_VALUE ? v.type : -1;
  switch (type) {
    case LH_T_NONE:
      return pickle_.none();
    case LH_T_BOOL:
      return pickle_.boolean(v.u.b != 0);
    case LH_T_INT:
      return pickle_.integer(v.u.i);
    case LH_T_FLOAT:
      return pickle_.real(v.u.f);
    case LH_T_STR:
      return pickle_.text(lhost::view(v.u.s));
    case LH_T_LIST_INT:
      return list(v.n, [&](uint32_t i) { pickle_.integer(v.u.li[i]); });
    case LH_T_LIST_FLOAT:
      return list(v.n, [&](uint32_t i) { pickle_.real(v.u.lf[i]); });
    case LH_T_LIST_STR:
      return list(v.n, [&](uint32_t i) { pickle_.text(lhost::view(v.u.ls[i])); });
    default:
      refuse(path_text(leaf) + " has kind " + std::to_string(leaf.kind) + " and type " +
             std::to_string(v.type) +
             "; a torch file takes tensors and NONE, BOOL, INT, FLOAT, STR and lists of the last three");
  }
}

void Writer::tensor(const lh_leaf& leaf) {
  const lh_view& v = leaf.view;
  const StorageClass* c = find_storage_class(v.dtype);
  if (!c)
    refuse(path_text(leaf) + " has element type (" + std::to_string(v.dtype.code) + ", " +
           std::to_string(v.dtype.bits) + " bits, " + std::to_string(v.dtype.lanes) +
           " lanes), which PyTorch's checkpoints do not have");
  if (v.device.type != LH_DEVICE_CPU) refuse(path_text(leaf) + " is not in host memory; copy it there first");
  const std::vector<int64_t> shape(v.shape, v.shape + v.ndim);
  uint64_t bytes = c->dtype.bits / 8;
  for (const int64_t n : shape)
    if (n < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes) || bytes > INT64_MAX)
      refuse(path_text(leaf) + " has a shape that no memory holds");
  const std::vector<int64_t> strides = contiguous_strides(shape);
  for (size_t i = 0; bytes && v.strides && i < shape.size(); ++i)
    if (shape[i] != 1 && v.strides[i] != strides[i])
      refuse(path_text(leaf) + " is not contiguous; copy it first");
  if (bytes && !v.data) refuse(path_text(leaf) + " has no data");

  const char* data = static_cast<const char*>(v.data) + (bytes ? v.byte_offset : 0);
  uint64_t key = storages_.size();
  if (bytes) key = tied_.emplace(std::make_tuple(data, c->name, shape), key).first->second;
  if (key == storages_.size()) storages_.push_back(lh_bytes{data, bytes});
  pickle_.tensor(c->name, key, shape);
}

}  // namespace

void save(const lh_leaf* leaves, uint64_t n, const lh_sink& sink) {
  const Tree tree(leaves, n);
  Writer writer;
  writer.node(tree.root());
  const std::string pickle = writer.finish();
  const std::string archive = "archive/";
  const auto text = [](std::string_view s) { return lh_bytes{s.data(), s.size()}; };
  ZipWriter zip(sink);
  zip.add(archive + "data.pkl", text(pickle));
  zip.add(archive + "byteorder", text("little"));
  zip.add(archive + "version", text("3\n"));
  for (size_t i = 0; i < writer.storages().size(); ++i)
    zip.add(archive + "data/" + std::to_string(i), writer.storages()[i]);
  zip.finish();
}

}  // namespace torch_file
