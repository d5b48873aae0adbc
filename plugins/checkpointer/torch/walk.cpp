#include "walk.hpp"

#include "file.hpp"
#include "tensor.hpp"

#include <lhost/sdk/plugin.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace torch_file {
namespace {

using Kind = Value::Kind;

constexpr uint64_t kItemCost = 16;

bool all_are(const Value& list, Kind kind) {
  return std::all_of(list.items.begin(), list.items.end(), [&](const Value* v) { return v->kind == kind; });
}

// A key as part of a path; keys that are neither text nor numbers are named by their place.
std::string path_key(const Value& key, size_t place) {
  switch (key.kind) {
    case Kind::text:
      return std::string(key.text);
    case Kind::integer:
      return std::to_string(key.integer);
    case Kind::boolean:
      return key.integer ? "True" : "False";
    default:
      return "#" + std::to_string(place);
  }
}

template <class T, class F>
std::vector<T> gather(const Value& list, F item) {
  std::vector<T> out;
  for (const Value* v : list.items) out.push_back(item(*v));
  return out;
}

}  // namespace

void Walk::run(const Value& root, const lh_leaf_visitor* visitor) {
  visitor_ = visitor;
  visit(root);
}

void Walk::visit(const Value& v) {
  lh_value out{};
  switch (v.kind) {
    case Kind::dict:
      return visit_dict(v);
    case Kind::list:
    case Kind::tuple:
      return visit_list(v);
    case Kind::tensor:
      return visit_tensor(v);
    case Kind::global:
      return deliver_unknown(v.text);
    case Kind::storage:
      return deliver_unknown("a storage without a tensor");
    case Kind::unknown:
      return deliver_unknown(v.text);
    case Kind::none:
      out.type = LH_T_NONE;
      break;
    case Kind::boolean:
      out.type = LH_T_BOOL, out.u.b = v.integer != 0;
      break;
    case Kind::integer:
      out.type = LH_T_INT, out.u.i = v.integer;
      break;
    case Kind::real:
      out.type = LH_T_FLOAT, out.u.f = v.real;
      break;
    case Kind::text:
      out.type = LH_T_STR, out.u.s = lhost::str(v.text);
      break;
  }
  deliver_value(out);
}

void Walk::spend(uint64_t bytes) {
  if (bytes > text_left_)
    throw lhost::Error(LH_RESOURCE_EXHAUSTED,
                       "the file names the same items again and again, far more than its size "
                       "allows for; save the objects that they share only once");
  text_left_ -= bytes;
}

void Walk::enter(std::string_view key, const Value& v) {
  if (path_.size() >= kMostLevels)
    throw lhost::Error(LH_UNIMPLEMENTED,
                       "the file nests dicts and lists more than " + std::to_string(kMostLevels) +
                           " levels deep, or one of them holds itself; a checkpoint has few levels");
  path_.push_back(lhost::str(key));
  path_bytes_ += key.size();
  visit(v);
  path_bytes_ -= key.size();
  path_.pop_back();
}

void Walk::visit_dict(const Value& v) {
  std::unordered_map<std::string, size_t> places;
  std::vector<std::pair<std::string_view, const Value*>> entries;
  for (size_t i = 0; i < v.items.size(); i += 2) {
    spend(kItemCost + v.items[i]->text.size());
    const auto [place, is_new] = places.emplace(path_key(*v.items[i], i / 2), entries.size());
    if (is_new) entries.emplace_back(place->first, v.items[i + 1]);
    else entries[place->second].second = v.items[i + 1];  // of a key set twice the last counts, as in Python
  }
  for (const auto& [key, item] : entries) enter(key, *item);
}

template <class F>
void Walk::deliver_list(int32_t type, size_t n, F set) {
  if (n > UINT32_MAX) throw lhost::Error(LH_UNIMPLEMENTED, "a list of more than 2^32 items");
  lh_value value{};
  value.type = type;
  value.n = static_cast<uint32_t>(n);
  set(value);
  deliver_value(value);
}

void Walk::visit_list(const Value& v) {
  spend(kItemCost * v.items.size());
  const size_t n = v.items.size();
  if (all_are(v, Kind::integer)) {
    const auto list = gather<int64_t>(v, [](const Value& x) { return x.integer; });
    deliver_list(LH_T_LIST_INT, n, [&](lh_value& out) { out.u.li = list.data(); });
  } else if (all_are(v, Kind::real)) {
    const auto list = gather<double>(v, [](const Value& x) { return x.real; });
    deliver_list(LH_T_LIST_FLOAT, n, [&](lh_value& out) { out.u.lf = list.data(); });
  } else if (all_are(v, Kind::text)) {
    for (const Value* x : v.items) spend(x->text.size());
    const auto list = gather<lh_str>(v, [](const Value& x) { return lhost::str(x.text); });
    deliver_list(LH_T_LIST_STR, n, [&](lh_value& out) { out.u.ls = list.data(); });
  } else {
    for (size_t i = 0; i < n; ++i) enter(std::to_string(i), *v.items[i]);
  }
}

void Walk::visit_tensor(const Value& v) {
  std::optional<Tensor> t = resolve(v, zip_);
  if (!t) return deliver_unknown("a tensor of a type that lhost does not know");
  std::vector<char> copy;
  if (!t->usable_in_place) {
    if (t->bytes > copies_left_)
      throw lhost::Error(LH_RESOURCE_EXHAUSTED,
                         "the tensors of the file are views of one another that would take far "
                         "more memory than the file; save tensor.clone() instead of views");
    copies_left_ -= t->bytes;
    if (visitor_) {
      copy.resize(t->bytes);
      copy_contiguous(*t, copy.data());
      t->data = copy.data();
    }
  }
  std::vector<int64_t> strides = contiguous_strides(t->shape);
  lh_leaf leaf{};
  leaf.kind = LH_LEAF_TENSOR;
  leaf.view.data = const_cast<char*>(t->data);
  leaf.view.device = {LH_DEVICE_CPU, 0};
  leaf.view.ndim = static_cast<int32_t>(t->shape.size());
  leaf.view.dtype = t->dtype;
  leaf.view.shape = t->shape.data();
  leaf.view.strides = strides.data();
  deliver(leaf);
}

void Walk::deliver_value(const lh_value& value) {
  if (value.type == LH_T_STR) spend(value.u.s.len);
  lh_leaf leaf{};
  leaf.kind = LH_LEAF_VALUE;
  leaf.value = value;
  deliver(leaf);
}

void Walk::deliver_unknown(std::string_view what) {
  lh_leaf leaf{};
  leaf.kind = LH_LEAF_UNKNOWN;
  leaf.value.type = LH_T_STR;
  leaf.value.u.s = lhost::str(what);
  deliver(leaf);
}

void Walk::deliver(lh_leaf leaf) {
  spend(path_bytes_);
  leaf.size = sizeof leaf;
  leaf.n_path = static_cast<uint32_t>(path_.size());
  leaf.path = path_.data();
  if (visitor_) lhost::check(visitor_->leaf(visitor_->ctx, &leaf));
}

}  // namespace torch_file
