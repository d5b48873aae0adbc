// zip_writer.hpp - writes a zip file of stored records into an lh_sink, front to back, nothing kept but the directory.
// Each record's data starts at a multiple of 64 bytes, as in PyTorch's own files, so that a mapped file serves as
// tensor memory. No time stamps: the same records give the same bytes. One writer, one thread.
#pragma once
#include <lhost/checkpointer.h>

#include <cstdint>
#include <string>
#include <vector>

namespace torch_file {

class ZipWriter {
 public:
  explicit ZipWriter(const lh_sink& sink) : sink_(sink) {}
  // `data` is read twice (checksum, then bytes) and not kept. Throws the sink's status.
  void add(const std::string& name, lh_bytes data);
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t offset, size;
    uint32_t crc;
  };
  void write(const void* data, uint64_t size);

  const lh_sink& sink_;
  uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace torch_file
