// zip_reader.hpp - finds the records of a zip file that lies in memory. Any content is safe: everything is checked
// against the file's size, and every stored record's checksum is verified once, on construction (unless the file was
// written without checksums). Views lend the file's bytes. Throws lhost::Error.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace torch_file {

[[noreturn]] void damaged(const std::string& what);  // throws LH_DATA_LOSS with a way out

class ZipReader {
 public:
  explicit ZipReader(std::string_view file);
  // By the name inside the archive's folder: "data.pkl", "data/0". Throws for a record that is not stored as it is.
  std::optional<std::string_view> find(const std::string& name) const;
  bool has_folder(std::string_view folder) const;  // "code/"
  std::string full_name(const std::string& name) const { return prefix_ + name; }

 private:
  struct Record {
    std::string_view bytes;
    bool is_plain;  // neither compressed nor encrypted
  };
  struct Directory {
    uint64_t offset, size, entries;
  };
  Directory find_directory() const;
  void read_directory(const Directory& d);
  uint64_t read_entry(uint64_t at, uint64_t end);  // returns the next entry's place
  std::string_view record(const std::string& name, uint64_t header, uint64_t size) const;

  std::string_view file_;
  std::string prefix_;  // "archive/"
  uint64_t total_ = 0;
  bool has_checksums_ = true;
  std::unordered_map<std::string, Record> records_;  // by full name
};

}  // namespace torch_file
