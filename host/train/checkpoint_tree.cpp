#include "train/checkpoint_tree.hpp"

#include "base/failure.hpp"
#include "base/files.hpp"

#include <algorithm>
#include <set>

namespace lhost {
namespace {

std::string key_of(const TreePath& path) {
  std::string key;
  for (const std::string& p : path) key += p + '\x1f';  // no key of ours holds this separator
  return key;
}
uint64_t size_of(const std::vector<int64_t>& shape, lh_dtype d) {
  uint64_t n = d.bits / 8u;
  for (int64_t x : shape) n *= static_cast<uint64_t>(x);
  return n;
}

}  // namespace

CheckpointTree::~CheckpointTree() {
  for (const auto& l : leaves_) engine_.tensor.release(l->handle);
}

lh_value TreeLeaf::value(std::vector<lh_str>& strings) const {
  lh_value v{};
  v.type = type;
  switch (type) {
    case LH_T_BOOL:
      v.u.b = i != 0;
      break;
    case LH_T_INT:
      v.u.i = i;
      break;
    case LH_T_FLOAT:
      v.u.f = f;
      break;
    case LH_T_STR:
      v.u.s = str(s);
      break;
    case LH_T_LIST_INT:
      v.u.li = li.data(), v.n = static_cast<uint32_t>(li.size());
      break;
    case LH_T_LIST_FLOAT:
      v.u.lf = lf.data(), v.n = static_cast<uint32_t>(lf.size());
      break;
    case LH_T_LIST_STR:
      for (const std::string& x : ls) strings.push_back(str(x));
      v.u.ls = strings.data(), v.n = static_cast<uint32_t>(ls.size());
      break;
    default:
      break;
  }
  return v;
}

lh_view TreeLeaf::view() const {
  lh_view v{};
  v.data = const_cast<void*>(data);
  v.device = {LH_DEVICE_CPU, 0};
  v.ndim = static_cast<int32_t>(shape.size());
  v.dtype = dtype;
  v.shape = const_cast<int64_t*>(shape.data());
  return v;  // strides NULL: contiguous, as DLPack allows
}

TreeLeaf& CheckpointTree::add(TreePath path) {
  index_[key_of(path)] = leaves_.size();
  leaves_.push_back(std::make_unique<TreeLeaf>());
  leaves_.back()->path = std::move(path);
  return *leaves_.back();
}
void CheckpointTree::put(TreePath p, bool v) {
  TreeLeaf& l = add(std::move(p));
  l.type = LH_T_BOOL;
  l.i = v;
}
void CheckpointTree::put(TreePath p, int64_t v) {
  TreeLeaf& l = add(std::move(p));
  l.type = LH_T_INT;
  l.i = v;
}
void CheckpointTree::put(TreePath p, double v) {
  TreeLeaf& l = add(std::move(p));
  l.type = LH_T_FLOAT;
  l.f = v;
}
void CheckpointTree::put(TreePath p, std::string v) {
  TreeLeaf& l = add(std::move(p));
  l.type = LH_T_STR;
  l.s = std::move(v);
}
void CheckpointTree::put(TreePath p, std::vector<double> v) {
  TreeLeaf& l = add(std::move(p));
  l.type = LH_T_LIST_FLOAT;
  l.lf = std::move(v);
}
void CheckpointTree::put_value(TreePath p, const lh_value& v) {
  TreeLeaf& l = add(std::move(p));
  l.type = v.type;
  switch (v.type) {
    case LH_T_BOOL:
      l.i = v.u.b != 0;
      break;
    case LH_T_INT:
      l.i = v.u.i;
      break;
    case LH_T_FLOAT:
      l.f = v.u.f;
      break;
    case LH_T_STR:
      l.s = lhost::view(v.u.s);
      break;
    case LH_T_LIST_INT:
      l.li.assign(v.u.li, v.u.li + v.n);
      break;
    case LH_T_LIST_FLOAT:
      l.lf.assign(v.u.lf, v.u.lf + v.n);
      break;
    case LH_T_LIST_STR:
      for (uint32_t i = 0; i < v.n; ++i) l.ls.emplace_back(lhost::view(v.u.ls[i]));
      break;
    default:
      l.type = LH_T_NONE;
  }
}

void CheckpointTree::put_tensor(TreePath p, lh_tensor* t) {
  TreeLeaf& l = add(std::move(p));
  l.kind = LH_LEAF_TENSOR;
  check(engine_->to_host(t, &l.handle));
  lh_view v{};
  check(engine_.tensor.view(l.handle, &v));
  l.dtype = v.dtype;
  l.shape.assign(v.shape, v.shape + v.ndim);
  l.data = static_cast<const char*>(v.data) + v.byte_offset;
}

void CheckpointTree::absorb(CheckpointTree&& other) {
  for (auto& l : other.leaves_) {
    index_[key_of(l->path)] = leaves_.size();
    leaves_.push_back(std::move(l));
  }
  other.leaves_.clear();
  other.index_.clear();
}

const TreeLeaf* CheckpointTree::find(const TreePath& path) const {
  const auto i = index_.find(key_of(path));
  return i == index_.end() ? nullptr : leaves_[i->second].get();
}
int64_t CheckpointTree::integer(const TreePath& p, int64_t otherwise) const {
  const TreeLeaf* l = find(p);
  return l && l->kind == LH_LEAF_VALUE && (l->type == LH_T_INT || l->type == LH_T_BOOL) ? l->i : otherwise;
}
double CheckpointTree::number(const TreePath& p, double otherwise) const {
  const TreeLeaf* l = find(p);
  if (!l || l->kind != LH_LEAF_VALUE) return otherwise;
  return l->type == LH_T_FLOAT ? l->f : l->type == LH_T_INT ? static_cast<double>(l->i) : otherwise;
}
std::string CheckpointTree::text(const TreePath& p, const std::string& otherwise) const {
  const TreeLeaf* l = find(p);
  return l && l->kind == LH_LEAF_VALUE && l->type == LH_T_STR ? l->s : otherwise;
}

std::vector<const TreeLeaf*> CheckpointTree::below(const TreePath& prefix) const {
  std::vector<const TreeLeaf*> found;
  for (const auto& l : leaves_)
    if (l->path.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), l->path.begin()))
      found.push_back(l.get());
  return found;
}
bool CheckpointTree::has_below(const TreePath& prefix) const { return !below(prefix).empty(); }
std::vector<std::string> CheckpointTree::children(const TreePath& prefix) const {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const TreeLeaf* l : below(prefix))
    if (seen.insert(l->path[prefix.size()]).second) keys.push_back(l->path[prefix.size()]);
  return keys;
}

void CheckpointTree::save(const Checkpointer& c, const std::string& path) const {
  std::vector<std::vector<lh_str>> paths(leaves_.size()), strings(leaves_.size());
  std::vector<lh_leaf> list;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const TreeLeaf& l = *leaves_[i];
    for (const std::string& p : l.path) paths[i].push_back(str(p));
    lh_leaf out{sizeof(lh_leaf), static_cast<uint32_t>(paths[i].size()), paths[i].data(), l.kind, 0, {}, {}};
    if (l.kind == LH_LEAF_TENSOR) out.view = l.view();
    else out.value = l.value(strings[i]);
    list.push_back(out);
  }
  AtomicFile file(path);
  std::string disk_error;
  struct Context {
    AtomicFile& file;
    std::string& error;
  } context{file, disk_error};
  const lh_sink sink = {sizeof(lh_sink), 0, &context, [](void* ctx, lh_bytes b) -> lh_status {
                          auto& x = *static_cast<Context*>(ctx);
                          try {
                            x.file.write(b.ptr, b.len);
                            return nullptr;
                          } catch (const Failure& f) {
                            x.error = f.what();
                            return make_status(LH_RESOURCE_EXHAUSTED, "host", "write", f.what());
                          }
                        }};
  lh_status status = c->save(c.self(), list.data(), list.size(), &sink);
  if (status && !disk_error.empty()) {
    take(status);
    throw Failure(Exit::environment, disk_error);
  }
  check(status);
  file.commit();
}

namespace {

struct LoadContext {
  CheckpointTree* tree;
  const std::string* file;
  TreeLeaf& (*add)(CheckpointTree&, TreePath);
};

void copy_leaf(const LoadContext& context, const lh_leaf* in) {
  auto& [tree, file, add] = context;
  TreePath path;
  for (uint32_t i = 0; i < in->n_path; ++i) path.emplace_back(view(in->path[i]));
  if (in->kind == LH_LEAF_VALUE) return tree->put_value(std::move(path), in->value);
  TreeLeaf& l = add(*tree, std::move(path));
  l.kind = in->kind;
  if (in->kind != LH_LEAF_TENSOR) return;
  l.dtype = in->view.dtype;
  l.shape.assign(in->view.shape, in->view.shape + in->view.ndim);
  const char* data = static_cast<const char*>(in->view.data) + in->view.byte_offset;
  const uint64_t size = size_of(l.shape, l.dtype);
  if (data >= file->data() && data + size <= file->data() + file->size()) {
    l.data = data;  // the tree keeps the file's bytes
  } else {
    l.bytes.assign(data, data + size);
    l.data = l.bytes.data();
  }
}

}  // namespace

void CheckpointTree::load(const Checkpointer& c, const std::string& path) {
  file_ = read_file(path);
  LoadContext context{this, &file_,
                      [](CheckpointTree& t, TreePath p) -> TreeLeaf& { return t.add(std::move(p)); }};
  const lh_leaf_visitor visitor = {sizeof(lh_leaf_visitor), 0, &context, [](void* ctx, const lh_leaf* in) {
                                     return answer("leaf",
                                                   [&] { copy_leaf(*static_cast<LoadContext*>(ctx), in); });
                                   }};
  if (lh_status s = c->load(c.self(), {file_.data(), file_.size()}, &visitor)) {
    PluginError e = take(s);
    e.message = path + ": " + e.message;
    throw ComponentFailure(e);
  }
}

// ---- state of components

namespace {

TreePath path_in(const StateContext& c, lh_str name) {
  TreePath path = c.prefix;
  path.emplace_back(view(name));
  return path;
}

}  // namespace

lh_state_out state_out(StateContext& context) {
  lh_state_out s{sizeof(lh_state_out), 0, &context, nullptr, nullptr};
  s.put = [](void* ctx, lh_str name, const lh_value* v) {
    auto& c = *static_cast<StateContext*>(ctx);
    return answer("put", [&] { c.out->put_value(path_in(c, name), *v); });
  };
  s.put_tensor = [](void* ctx, lh_str name, lh_tensor* t, const lh_placement*) {
    auto& c = *static_cast<StateContext*>(ctx);
    return answer("put_tensor", [&] { c.out->put_tensor(path_in(c, name), t); });
  };
  return s;
}

lh_state_in state_in(StateContext& context) {
  lh_state_in s{sizeof(lh_state_in), 0, &context, nullptr, nullptr};
  s.get = [](void* ctx, lh_str name, lh_value* out) {
    auto& c = *static_cast<StateContext*>(ctx);
    return answer("get", [&] {
      *out = {};
      const TreeLeaf* l = c.in->find(path_in(c, name));
      if (l && l->kind == LH_LEAF_VALUE) *out = l->value(c.strings.emplace_back());
    });
  };
  s.get_tensor = [](void* ctx, lh_str name, lh_tensor* dst, const lh_placement*) {
    auto& c = *static_cast<StateContext*>(ctx);
    return answer("get_tensor", [&] {
      const TreeLeaf* l = c.in->find(path_in(c, name));
      if (!l || l->kind != LH_LEAF_TENSOR)
        return make_status(LH_NOT_FOUND, "checkpoint", "get_tensor",
                           "the file has no tensor " + std::string(view(name)));
      const lh_view v = l->view();
      return c.in->engine()->assign(dst, &v);
    });
  };
  return s;
}

}  // namespace lhost
