// pickle_writer.hpp - writes a pickle (protocol 2) of dicts, plain values, lists and tensors that Python's
// torch.load(weights_only=True) reads. Calls nest as the values do. Throws lhost::Error for what a pickle cannot hold.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace torch_file {

class PickleWriter {
 public:
  PickleWriter();
  void begin_dict();  // then key, value, key, value ...
  void end_dict();
  void begin_list();
  void end_list();
  void none();
  void boolean(bool b);
  void integer(int64_t n);
  void real(double d);
  void text(std::string_view utf8);
  // A contiguous tensor that fills the storage whose record is data/<key>.
  void tensor(std::string_view storage_class, uint64_t key, const std::vector<int64_t>& shape);
  std::string finish();

 private:
  void global(std::string_view module, std::string_view name);
  void common(const std::string& operations);  // what stands in the pickle often is written once
  void numbers(const std::vector<int64_t>& tuple);

  std::string out_;
  std::unordered_map<std::string, uint8_t> memo_;
};

}  // namespace torch_file
