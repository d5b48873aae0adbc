#include "pickle_reader.hpp"

#include <initializer_list>

namespace torch_file {
namespace {

using Kind = Value::Kind;

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (std::string_view n : names)
    if (n == name) return true;
  return false;
}

// The result that is data, or null. Arguments are handed on, not copied: a hostile pickle repeats a call on one large
// argument at five bytes a time.
Value* data_of(Document& d, std::string_view f, const std::vector<Value*>& a) {
  const Kind first = a.empty() ? Kind::unknown : a[0]->kind;
  if (is_any_of(f, {"collections.OrderedDict", "collections.defaultdict", "collections.Counter"}))
    return first == Kind::dict ? a[0] : d.make(Kind::dict);
  if (is_any_of(f, {"builtins.set", "builtins.frozenset", "__builtin__.set", "__builtin__.frozenset"}))
    return first == Kind::list ? a[0] : nullptr;
  if (f == "torch.Size") return first == Kind::tuple ? a[0] : nullptr;
  if (is_any_of(f, {"torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"}))
    return first == Kind::tensor ? a[0] : nullptr;
  if (f == "torch._utils._rebuild_tensor_v2" && (a.size() == 6 || a.size() == 7)) {
    Value* tensor = d.make(Kind::tensor);
    tensor->items = a;
    return tensor;
  }
  return nullptr;
}

}  // namespace

Value* call(Document& document, const Value& function, const Value& arguments) {
  const Value* f = &function;
  const Value* a = &arguments;
  // (rebuild function, type, its arguments, state): a parameter or tensor with attributes of its own
  if (f->text == "torch._tensor._rebuild_from_type_v2" && a->kind == Kind::tuple && a->items.size() == 4) {
    f = a->items[0];
    a = a->items[2];
  }
  if (f->kind == Kind::global && a->kind == Kind::tuple)
    if (Value* data = data_of(document, f->text, a->items)) return data;
  return document.make_text(Kind::unknown, f->text.empty() ? "an object" : f->text);
}

}  // namespace torch_file
