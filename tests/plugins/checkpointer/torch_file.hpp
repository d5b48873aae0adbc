// torch_file.hpp - the checkpointer "torch" as tests use it: leaves that own their data, files as strings, and zip files
// made by hand for what neither lhost nor PyTorch would write.
#pragma once
#include <lhost/checkpointer.h>

#include "support/component.hpp"

#include <zlib.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace torch_test {

constexpr lh_dtype kFloat32 = {LH_DT_FLOAT, 32, 1};
constexpr lh_dtype kInt64 = {LH_DT_INT, 64, 1};

using Path = std::vector<std::string>;
using LeafValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;

struct Leaf {
  Path path;
  int32_t kind = LH_LEAF_VALUE;
  LeafValue value;
  lh_dtype dtype{};
  std::vector<int64_t> shape;
  std::string bytes;
  const char* lent = nullptr;  // save this memory instead of `bytes`

  bool operator==(const Leaf& o) const {
    return path == o.path && kind == o.kind && value == o.value && dtype.code == o.dtype.code &&
           dtype.bits == o.dtype.bits && shape == o.shape && bytes == o.bytes;
  }
};

inline void PrintTo(const Leaf& l, std::ostream* out) {
  for (const std::string& key : l.path) *out << '/' << key;
  *out << " kind " << l.kind << " value type " << l.value.index() << " bytes " << l.bytes.size();
}

inline Leaf value(Path path, LeafValue v) {
  return {std::move(path), LH_LEAF_VALUE, std::move(v), {}, {}, {}};
}
inline Leaf tensor(Path path, lh_dtype dtype, std::vector<int64_t> shape, std::string bytes) {
  return {std::move(path), LH_LEAF_TENSOR, {}, dtype, std::move(shape), std::move(bytes)};
}
template <class T>
std::string bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}

// lh_leaf with everything it points to
class Borrowed {
 public:
  explicit Borrowed(const Leaf& l) : leaf_(l) {
    for (const std::string& key : l.path) path_.push_back(lhost_test::str(key));
    if (auto* s = std::get_if<std::vector<std::string>>(&l.value))
      for (const std::string& x : *s) texts_.push_back(lhost_test::str(x));
    view_.size = sizeof view_;
    view_.n_path = static_cast<uint32_t>(path_.size());
    view_.path = path_.data();
    view_.kind = l.kind;
    set_value(l.value);
    view_.view.data = const_cast<char*>(l.lent ? l.lent : l.bytes.data());
    view_.view.device = {LH_DEVICE_CPU, 0};
    view_.view.dtype = l.dtype;
    view_.view.ndim = static_cast<int32_t>(l.shape.size());
    view_.view.shape = const_cast<int64_t*>(leaf_.shape.data());
  }
  Borrowed(const Borrowed&) = delete;
  const lh_leaf& get() const { return view_; }

 private:
  void set_value(const LeafValue& v) {
    lh_value& out = view_.value;
    if (auto* b = std::get_if<bool>(&v)) out.type = LH_T_BOOL, out.u.b = *b;
    if (auto* i = std::get_if<int64_t>(&v)) out.type = LH_T_INT, out.u.i = *i;
    if (auto* f = std::get_if<double>(&v)) out.type = LH_T_FLOAT, out.u.f = *f;
    if (auto* s = std::get_if<std::string>(&v)) out.type = LH_T_STR, out.u.s = lhost_test::str(*s);
    if (auto* l = std::get_if<std::vector<int64_t>>(&v))
      set_list(LH_T_LIST_INT, l->size()), out.u.li = l->data();
    if (auto* l = std::get_if<std::vector<double>>(&v))
      set_list(LH_T_LIST_FLOAT, l->size()), out.u.lf = l->data();
    if (std::get_if<std::vector<std::string>>(&v))
      set_list(LH_T_LIST_STR, texts_.size()), out.u.ls = texts_.data();
  }
  void set_list(int32_t type, size_t n) {
    view_.value.type = type;
    view_.value.n = static_cast<uint32_t>(n);
  }
  const Leaf& leaf_;
  std::vector<lh_str> path_, texts_;
  lh_leaf view_{};
};

inline Leaf owned(const lh_leaf& l) {
  using lhost_test::text;
  Leaf out;
  for (uint32_t i = 0; i < l.n_path; ++i) out.path.push_back(text(l.path[i]));
  out.kind = l.kind;
  const lh_value& v = l.value;
  if (l.kind == LH_LEAF_VALUE) {
    if (v.type == LH_T_BOOL) out.value = v.u.b != 0;
    if (v.type == LH_T_INT) out.value = v.u.i;
    if (v.type == LH_T_FLOAT) out.value = v.u.f;
    if (v.type == LH_T_STR) out.value = text(v.u.s);
    if (v.type == LH_T_LIST_INT) out.value = std::vector<int64_t>(v.u.li, v.u.li + v.n);
    if (v.type == LH_T_LIST_FLOAT) out.value = std::vector<double>(v.u.lf, v.u.lf + v.n);
    if (v.type == LH_T_LIST_STR) {
      std::vector<std::string> list;
      for (uint32_t i = 0; i < v.n; ++i) list.push_back(text(v.u.ls[i]));
      out.value = std::move(list);
    }
  } else if (l.kind == LH_LEAF_TENSOR) {
    out.dtype = l.view.dtype;
    out.shape.assign(l.view.shape, l.view.shape + l.view.ndim);
    size_t bytes = l.view.dtype.bits / 8u;
    for (size_t d = out.shape.size(); d-- > 0;) {
      EXPECT_TRUE(out.shape[d] <= 1 || bytes == 0 ||
                  l.view.strides[d] * (l.view.dtype.bits / 8) == static_cast<int64_t>(bytes));
      bytes *= static_cast<size_t>(out.shape[d]);
    }
    out.bytes.assign(static_cast<const char*>(l.view.data), bytes);
  }
  return out;
}

inline lhost_test::Component<lh_checkpointer, lh_checkpointer_v0>& torch_format() {
  static lhost_test::Component<lh_checkpointer, lh_checkpointer_v0> c("checkpointer", "torch");
  return c;
}

inline lh_status save_to(const std::vector<Leaf>& leaves, const lh_sink& sink) {
  std::vector<std::unique_ptr<Borrowed>> kept;
  std::vector<lh_leaf> list;
  for (const Leaf& l : leaves) list.push_back(kept.emplace_back(std::make_unique<Borrowed>(l))->get());
  return torch_format()->save(torch_format().self, list.data(), list.size(), &sink);
}
inline std::string save(const std::vector<Leaf>& leaves) {
  std::string file;
  const lh_sink sink = {sizeof(lh_sink), 0, &file, [](void* ctx, lh_bytes b) -> lh_status {
                          static_cast<std::string*>(ctx)->append(static_cast<const char*>(b.ptr), b.len);
                          return nullptr;
                        }};
  lhost_test::call(save_to(leaves, sink));
  return file;
}
inline std::string save_failure(const std::vector<Leaf>& leaves) {
  uint64_t written = 0;
  const lh_sink sink = {sizeof(lh_sink), 0, &written, [](void* ctx, lh_bytes b) -> lh_status {
                          *static_cast<uint64_t*>(ctx) += b.len;
                          return nullptr;
                        }};
  std::string message = lhost_test::failure(save_to(leaves, sink));
  EXPECT_EQ(written, 0u) << "bytes went out before the leaves were checked";
  return message;
}

// Throws lhost_test::StatusError.
inline std::vector<Leaf> load(const std::string& file) {
  const std::vector<char> exact(file.begin(),
                                file.end());  // no byte after the last, so that a sanitizer sees more
  std::vector<Leaf> leaves;
  const lh_leaf_visitor visitor = {sizeof(lh_leaf_visitor), 0, &leaves,
                                   [](void* ctx, const lh_leaf* l) -> lh_status {
                                     static_cast<std::vector<Leaf>*>(ctx)->push_back(owned(*l));
                                     return nullptr;
                                   }};
  lhost_test::call(torch_format()->load(torch_format().self, {exact.data(), exact.size()}, &visitor));
  return leaves;
}

struct Refusal {
  lh_code code = LH_OK;
  std::string message;
};
// No leaf may have been delivered before the error.
inline Refusal load_failure(const std::string& file) {
  uint64_t delivered = 0;
  const lh_leaf_visitor visitor = {sizeof(lh_leaf_visitor), 0, &delivered,
                                   [](void* ctx, const lh_leaf*) -> lh_status {
                                     ++*static_cast<uint64_t*>(ctx);
                                     return nullptr;
                                   }};
  lh_status s = torch_format()->load(torch_format().self, {file.data(), file.size()}, &visitor);
  if (!s) return {};
  EXPECT_EQ(delivered, 0u) << "leaves were delivered before the file was checked";
  Refusal r{s->code, s->message};
  delete s;
  return r;
}

// --- zip files made by hand ------------------------------------------------------------------------------------

struct HandRecord {
  std::string name, data;
  uint16_t method = 0;
};
inline std::string zip(const std::vector<HandRecord>& records) {
  std::string out, directory;
  const auto number = [](std::string& s, auto n) { s.append(reinterpret_cast<const char*>(&n), sizeof n); };
  const auto header = [&](std::string& s, const HandRecord& r) {
    number(s, uint16_t{0}), number(s, r.method), number(s, uint32_t{0});  // flags, method, time and date
    number(s,
           static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(r.data.data()), r.data.size())));
    number(s, static_cast<uint32_t>(r.data.size())), number(s, static_cast<uint32_t>(r.data.size()));
    number(s, static_cast<uint16_t>(r.name.size())), number(s, uint16_t{0});
  };
  for (const HandRecord& r : records) {
    directory += std::string("PK\1\2\24\0\24\0", 8);
    header(directory, r);
    directory += std::string(10, '\0');
    number(directory, static_cast<uint32_t>(out.size()));
    directory += r.name;
    out += std::string("PK\3\4\24\0", 6);
    header(out, r);
    out += r.name + r.data;
  }
  const auto start = static_cast<uint32_t>(out.size());
  const auto n = static_cast<uint16_t>(records.size());
  out += directory + std::string("PK\5\6\0\0\0\0", 8);
  number(out, n), number(out, n), number(out, static_cast<uint32_t>(directory.size())), number(out, start);
  return out + std::string(2, '\0');
}
// A checkpoint whose pickle is given without protocol and STOP; data/0 is `storage`.
inline std::string checkpoint(const std::string& operations, const std::string& storage = "") {
  return zip({{"a/data.pkl", "\x80\x02" + operations + "."}, {"a/data/0", storage}});
}
inline std::string pickled_text(const std::string& s) {
  const auto n = static_cast<uint32_t>(s.size());
  return "X" + std::string(reinterpret_cast<const char*>(&n), 4) + s;
}
inline std::string pickled_int(int32_t n) { return "J" + std::string(reinterpret_cast<const char*>(&n), 4); }
inline std::string pickled_ints(const std::vector<int32_t>& tuple) {
  std::string out = "(";
  for (const int32_t n : tuple) out += pickled_int(n);
  return out + "t";
}
// A float32 tensor on data/0, as torch.save writes it.
inline std::string pickled_tensor(int32_t stored, int32_t offset, const std::vector<int32_t>& shape,
                                  const std::vector<int32_t>& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") + "ctorch\nFloatStorage\n" +
         pickled_text("0") + pickled_text("cpu") + pickled_int(stored) + "tQ" + pickled_int(offset) +
         pickled_ints(shape) + pickled_ints(strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}

}  // namespace torch_test
