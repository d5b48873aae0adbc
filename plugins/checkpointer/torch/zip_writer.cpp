#include "zip_writer.hpp"

#include "bytes.hpp"
#include "zip_format.hpp"

#include <zlib.h>
#include <lhost/sdk/plugin.hpp>

#include <algorithm>

namespace torch_file {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint16_t kPaddingExtra = 'F' | 'B' << 8;  // PyTorch's own id for the same purpose
constexpr uint16_t kDosDate1980 = 0x21;             // zero is no valid date
constexpr uint16_t kVersion = 20, kVersionZip64 = 45;

uint32_t low32(uint64_t n) { return static_cast<uint32_t>(std::min<uint64_t>(n, kNoNumber32)); }
uint16_t low16(uint64_t n) { return static_cast<uint16_t>(std::min<uint64_t>(n, kNoNumber16)); }
bool is_large(uint64_t n) { return n >= kNoNumber32; }

// What local and central header have in common, after signature and versions.
void put_common(std::string& out, uint32_t crc, uint64_t size, const std::string& name, size_t extra_size) {
  put<uint16_t>(out, 0);  // flags
  put<uint16_t>(out, 0);  // method: stored
  put<uint16_t>(out, 0);  // time
  put<uint16_t>(out, kDosDate1980);
  put<uint32_t>(out, crc);
  put<uint32_t>(out, low32(size));
  put<uint32_t>(out, low32(size));
  put<uint16_t>(out, static_cast<uint16_t>(name.size()));
  put<uint16_t>(out, static_cast<uint16_t>(extra_size));
}

}  // namespace

void ZipWriter::write(const void* data, uint64_t size) {
  if (size) lhost::check(sink_.write(sink_.ctx, lh_bytes{data, size}));
  position_ += size;
}

void ZipWriter::add(const std::string& name, lh_bytes data) {
  const Entry e{name, position_, data.len,
                static_cast<uint32_t>(crc32_z(0, static_cast<const Bytef*>(data.ptr), data.len))};
  std::string extra;
  if (is_large(e.size)) {
    put<uint16_t>(extra, kZip64Extra);
    put<uint16_t>(extra, 16);
    put<uint64_t>(extra, e.size);
    put<uint64_t>(extra, e.size);
  }
  const uint64_t unpadded = position_ + kLocalSize + name.size() + extra.size() + 4;
  const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  put<uint16_t>(extra, kPaddingExtra);
  put<uint16_t>(extra, static_cast<uint16_t>(padding));
  extra.append(padding, 'Z');

  std::string header;
  put<uint32_t>(header, kLocalSignature);
  put<uint16_t>(header, is_large(e.size) ? kVersionZip64 : kVersion);
  put_common(header, e.crc, e.size, name, extra.size());
  header += name + extra;
  write(header.data(), header.size());
  write(data.ptr, data.len);
  entries_.push_back(e);
}

void ZipWriter::finish() {
  std::string out;
  for (const Entry& e : entries_) {
    std::string large;
    if (is_large(e.size)) put<uint64_t>(large, e.size), put<uint64_t>(large, e.size);
    if (is_large(e.offset)) put<uint64_t>(large, e.offset);
    const uint16_t version = large.empty() ? kVersion : kVersionZip64;
    put<uint32_t>(out, kCentralSignature);
    put<uint16_t>(out, version);
    put<uint16_t>(out, version);
    put_common(out, e.crc, e.size, e.name, large.empty() ? 0 : large.size() + 4);
    put<uint16_t>(out, 0);  // comment
    put<uint16_t>(out, 0);  // disk
    put<uint16_t>(out, 0);  // internal attributes
    put<uint32_t>(out, 0);  // external attributes
    put<uint32_t>(out, low32(e.offset));
    out += e.name;
    if (large.empty()) continue;
    put<uint16_t>(out, kZip64Extra);
    put<uint16_t>(out, static_cast<uint16_t>(large.size()));
    out += large;
  }
  const uint64_t start = position_, size = out.size(), n = entries_.size();
  if (is_large(start) || is_large(size) || n >= kNoNumber16) {
    put<uint32_t>(out, kEnd64Signature);
    put<uint64_t>(out, kEnd64Size - 12);
    put<uint16_t>(out, kVersionZip64);
    put<uint16_t>(out, kVersionZip64);
    put<uint64_t>(out, 0);  // this disk, disk of the directory
    put<uint64_t>(out, n);
    put<uint64_t>(out, n);
    put<uint64_t>(out, size);
    put<uint64_t>(out, start);
    put<uint32_t>(out, kLocatorSignature);
    put<uint32_t>(out, 0);
    put<uint64_t>(out, start + size);
    put<uint32_t>(out, 1);
  }
  put<uint32_t>(out, kEndSignature);
  put<uint32_t>(out, 0);  // this disk, disk of the directory
  put<uint16_t>(out, low16(n));
  put<uint16_t>(out, low16(n));
  put<uint32_t>(out, low32(size));
  put<uint32_t>(out, low32(start));
  put<uint16_t>(out, 0);  // comment
  write(out.data(), out.size());
}

}  // namespace torch_file
