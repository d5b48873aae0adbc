#include "pickle_writer.hpp"

#include "bytes.hpp"
#include "tensor.hpp"

#include <lhost/sdk/plugin.hpp>

namespace torch_file {
namespace {

void append_text(std::string& out, std::string_view s) {
  out += 'X';
  put<uint32_t>(out, static_cast<uint32_t>(s.size()));
  out += s;
}

}  // namespace

PickleWriter::PickleWriter() : out_("\x80\x02") {}

void PickleWriter::begin_dict() { out_ += "}("; }
void PickleWriter::end_dict() { out_ += 'u'; }
void PickleWriter::begin_list() { out_ += "]("; }
void PickleWriter::end_list() { out_ += 'e'; }
void PickleWriter::none() { out_ += 'N'; }
void PickleWriter::boolean(bool b) { out_ += b ? '\x88' : '\x89'; }

void PickleWriter::integer(int64_t n) {
  if (n >= 0 && n <= UINT8_MAX) {
    out_ += 'K';
    return put(out_, static_cast<uint8_t>(n));
  }
  if (n >= INT32_MIN && n <= INT32_MAX) {
    out_ += 'J';
    return put(out_, static_cast<int32_t>(n));
  }
  out_ += "\x8a\x08";  // LONG1 of eight bytes, two's complement
  put(out_, n);
}

void PickleWriter::real(double d) {
  uint64_t bits = 0;
  std::memcpy(&bits, &d, sizeof bits);
  out_ += 'G';
  put(out_, __builtin_bswap64(bits));
}

void PickleWriter::text(std::string_view s) {
  if (s.size() > UINT32_MAX) throw lhost::Error(LH_UNIMPLEMENTED, "a text of more than 4 GiB");
  if (!is_utf8(s)) throw lhost::Error(LH_INVALID_ARGUMENT, "the text \"" + printable(s) + "\" is not UTF-8");
  append_text(out_, s);
}

void PickleWriter::common(const std::string& operations) {
  const auto [known, is_new] = memo_.emplace(operations, static_cast<uint8_t>(memo_.size()));
  if (is_new) out_ += operations;
  out_ += is_new ? 'q' : 'h';
  out_ += static_cast<char>(known->second);
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  common("c" + std::string(module) + "\n" + std::string(name) + "\n");
}

void PickleWriter::numbers(const std::vector<int64_t>& tuple) {
  out_ += '(';
  for (const int64_t n : tuple) integer(n);
  out_ += 't';
}

// _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)
void PickleWriter::tensor(std::string_view storage_class, uint64_t key, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t n : shape) elements *= n;
  global("torch._utils", "_rebuild_tensor_v2");
  out_ += "((";
  std::string word;
  append_text(word, "storage");
  common(word);
  global("torch", storage_class);
  append_text(out_, std::to_string(key));
  word.clear();
  append_text(word, "cpu");
  common(word);
  integer(elements);
  out_ += "tQ";  // the storage is a persistent id: ("storage", class, key, device, elements)
  integer(0);
  numbers(shape);
  numbers(contiguous_strides(shape));
  boolean(false);
  global("collections", "OrderedDict");
  out_ += ")RtR";
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace torch_file
