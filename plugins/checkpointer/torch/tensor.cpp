#include "tensor.hpp"

#include "bytes.hpp"
#include "dtype.hpp"

#include <lhost/sdk/plugin.hpp>

#include <algorithm>

namespace torch_file {
namespace {

using Kind = Value::Kind;

constexpr size_t kMostDimensions = 64;

int64_t count(const Value& v, const char* what) {
  if (v.kind != Kind::integer || v.integer < 0)
    damaged(std::string("a tensor's ") + what + " is not a number >= 0");
  return v.integer;
}

std::vector<int64_t> counts(const Value& v, const char* what) {
  if (v.kind != Kind::tuple || v.items.size() > kMostDimensions)
    damaged(std::string("a tensor's ") + what + " is not a tuple of at most 64 numbers");
  std::vector<int64_t> out;
  for (const Value* n : v.items) out.push_back(count(*n, what));
  return out;
}

struct Storage {
  std::string_view bytes;
  std::string record;
  lh_dtype dtype;
  uint64_t item;
};

// ("storage", class, key, device, number of elements)
std::optional<Storage> find_storage(const Value& v, const ZipReader& zip) {
  if (v.kind != Kind::storage) damaged("a tensor has no storage");
  const StorageClass* c = find_storage_class(v.items[1]->text);
  if (!c) return std::nullopt;
  const std::string name = "data/" + std::string(v.items[2]->text.substr(0, 1000));
  const std::string shown = printable(zip.full_name(name));
  const auto bytes = zip.find(name);
  if (!bytes) damaged("record " + shown + " is missing");
  const uint64_t item = c->dtype.bits / 8;
  const auto n = static_cast<uint64_t>(count(*v.items[4], "storage size"));
  if (n > bytes->size() / item || n * item != bytes->size())
    damaged("record " + shown + " has " + std::to_string(bytes->size()) + " bytes, expected " +
            std::to_string(n) + " elements of " + std::to_string(item));
  return Storage{*bytes, shown, c->dtype, item};
}

// Offset of the last element that the view touches, or nullopt on overflow.
std::optional<uint64_t> last_element(const Tensor& t, uint64_t offset) {
  for (size_t i = 0; i < t.shape.size(); ++i) {
    uint64_t reach = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(t.shape[i] - 1), static_cast<uint64_t>(t.strides[i]),
                               &reach) ||
        __builtin_add_overflow(offset, reach, &offset))
      return std::nullopt;
  }
  return offset;
}

bool is_contiguous(const Tensor& t) {
  const std::vector<int64_t> expected = contiguous_strides(t.shape);
  for (size_t i = 0; i < t.shape.size(); ++i)
    if (t.shape[i] != 1 && t.strides[i] != expected[i]) return false;
  return true;
}

// A conjugated or negated view, whose bytes are not its values.
bool has_lazy_arithmetic(const Value& tensor) {
  return tensor.items.size() == 7 && !tensor.items[6]->items.empty();
}

}  // namespace

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i)
    strides[i - 2] = static_cast<int64_t>(static_cast<uint64_t>(strides[i - 1]) *
                                          static_cast<uint64_t>(std::max<int64_t>(shape[i - 1], 1)));
  return strides;
}

// (storage, offset, sizes, strides, requires_grad, hooks[, metadata])
std::optional<Tensor> resolve(const Value& tensor, const ZipReader& zip) {
  const std::optional<Storage> storage = find_storage(*tensor.items[0], zip);
  if (!storage || has_lazy_arithmetic(tensor)) return std::nullopt;
  Tensor t;
  t.dtype = storage->dtype;
  t.shape = counts(*tensor.items[2], "shape");
  t.strides = counts(*tensor.items[3], "strides");
  if (t.shape.size() != t.strides.size()) damaged("a tensor has as many strides as no shape has");
  const auto offset = static_cast<uint64_t>(count(*tensor.items[1], "offset"));

  t.elements = 1;
  bool overflow = false, empty = false;
  for (const int64_t n : t.shape) {
    empty = empty || n == 0;
    overflow = __builtin_mul_overflow(t.elements, static_cast<uint64_t>(n), &t.elements) || overflow;
  }
  if (empty) {
    t.elements = 0;
    t.data = storage->bytes.data();
    t.usable_in_place = true;
    return t;
  }
  const std::optional<uint64_t> last = last_element(t, offset);
  if (!last || *last >= storage->bytes.size() / storage->item)
    damaged("a tensor reaches past the end of its record " + storage->record);
  if (overflow || __builtin_mul_overflow(t.elements, storage->item, &t.bytes))
    damaged("a tensor of record " + storage->record + " has more elements than memory can hold");
  t.data = storage->bytes.data() + offset * storage->item;
  t.usable_in_place = is_contiguous(t) && reinterpret_cast<uintptr_t>(t.data) % storage->item == 0;
  return t;
}

void copy_contiguous(const Tensor& t, char* out) {
  const size_t item = t.dtype.bits / 8;
  std::vector<int64_t> index(t.shape.size(), 0);
  int64_t at = 0;
  for (uint64_t n = 0; n < t.elements; ++n, out += item) {
    std::memcpy(out, t.data + static_cast<uint64_t>(at) * item, item);
    for (size_t d = t.shape.size(); d-- > 0;) {
      at += t.strides[d];
      if (++index[d] < t.shape[d]) break;
      at -= t.strides[d] * t.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace torch_file
