// host/base/files.hpp - files as the host needs them: whole reads, atomic writes, clear errors.
// Every failure is a Failure(Exit::environment) with the path and the system's reason.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lhost {

std::string read_file(const std::string& path);
void make_folders(const std::string& path);

// A file that appears complete or not at all: written under a temporary name in the same folder, flushed to the
// disk, renamed, folder flushed. Without commit() the temporary file is removed. [one thread]
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  void write(const void* data, uint64_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;
  std::string path_, temporary_;
  int fd_ = -1;
};
void write_atomically(const std::string& path, std::string_view text);

// What a killed writer may have left in a folder or below: temporary files of AtomicFile whose process is gone.
void remove_leftovers(const std::string& folder);

}  // namespace lhost
