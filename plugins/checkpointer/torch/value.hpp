// value.hpp - what a pickle says, as a graph of plain values: no objects, no code. A document owns its values; texts lie
// in the file or in the document. Items are shared and may form cycles: whoever walks them counts.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch_file {

struct Value {
  enum class Kind : uint8_t {
    none,
    boolean,  // integer
    integer,
    real,
    text,
    list,  // also sets
    tuple,
    dict,     // items: key, value, key, value
    global,   // text: "torch.float32"
    storage,  // items: what the pickle says of it, unchecked
    tensor,   // items: the arguments of _rebuild_tensor_v2, unchecked
    unknown   // text: what it is, for messages
  };
  Kind kind = Kind::unknown;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;
  std::vector<Value*> items;
};

class Document {
 public:
  Value* make(Value::Kind kind) {
    Value& v = values_.emplace_back();
    v.kind = kind;
    return &v;
  }
  Value* make_text(Value::Kind kind, std::string_view lent) {
    Value* v = make(kind);
    v->text = lent;
    return v;
  }
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  const Value* root = nullptr;

 private:
  std::deque<Value> values_;  // addresses stay
  std::deque<std::string> texts_;
};

}  // namespace torch_file
