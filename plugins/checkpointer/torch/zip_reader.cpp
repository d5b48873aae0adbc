#include "zip_reader.hpp"

#include "bytes.hpp"
#include "zip_format.hpp"

#include <zlib.h>
#include <lhost/sdk/plugin.hpp>

#include <cstdio>

namespace torch_file {
[[noreturn]] void damaged(const std::string& what) {
  throw lhost::Error(LH_DATA_LOSS, "damaged: " + what + "; use another copy or an earlier checkpoint");
}

namespace {

std::string hex(uint32_t n) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", n);
  return text;
}

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Replaces the numbers that say "see zip64", in the order that the format fixes.
void read_zip64(std::string_view extra, const std::string& name, uint64_t& size, uint64_t& stored,
                uint64_t& header) {
  while (extra.size() >= 4) {
    const auto id = get<uint16_t>(extra.data());
    const auto length = get<uint16_t>(extra.data() + 2);
    extra.remove_prefix(4);
    if (length > extra.size()) break;
    std::string_view field = extra.substr(0, length);
    extra.remove_prefix(length);
    if (id != kZip64Extra) continue;
    for (uint64_t* number : {&size, &stored, &header}) {
      if (*number != kNoNumber32) continue;
      if (field.size() < 8) damaged("the sizes of record " + name + " are missing");
      *number = get<uint64_t>(field.data());
      field.remove_prefix(8);
    }
    return;
  }
}

}  // namespace

ZipReader::ZipReader(std::string_view file) : file_(file) { read_directory(find_directory()); }

std::optional<std::string_view> ZipReader::find(const std::string& name) const {
  const auto i = records_.find(prefix_ + name);
  if (i == records_.end()) return std::nullopt;
  if (!i->second.is_plain)
    throw lhost::Error(LH_UNIMPLEMENTED,
                       "record " + printable(i->first) +
                           " is compressed or encrypted, which torch.save never does; unpack the "
                           "file and pack it again with `zip -0`");
  return i->second.bytes;
}

bool ZipReader::has_folder(std::string_view folder) const {
  const std::string start = prefix_ + std::string(folder);
  for (const auto& [name, unused] : records_)
    if (name.compare(0, start.size(), start) == 0) return true;
  return false;
}

ZipReader::Directory ZipReader::find_directory() const {
  const uint64_t furthest = kEndSize + kNoNumber16;  // the longest comment
  for (uint64_t back = kEndSize; back <= furthest && back <= file_.size(); ++back) {
    const uint64_t at = file_.size() - back;
    const char* end = file_.data() + at;
    if (get<uint32_t>(end) != kEndSignature || get<uint16_t>(end + 20) != back - kEndSize) continue;
    Directory d{get<uint32_t>(end + 16), get<uint32_t>(end + 12), get<uint16_t>(end + 10)};
    if (at < kLocatorSize || get<uint32_t>(end - kLocatorSize) != kLocatorSignature) return d;
    const auto at64 = get<uint64_t>(end - kLocatorSize + 8);
    if (at < kLocatorSize + kEnd64Size || at64 > at - kLocatorSize - kEnd64Size ||
        get<uint32_t>(file_.data() + at64) != kEnd64Signature)
      damaged("the zip64 end of the directory is not where the file says");
    const char* end64 = file_.data() + at64;
    return {get<uint64_t>(end64 + 48), get<uint64_t>(end64 + 40), get<uint64_t>(end64 + 32)};
  }
  throw lhost::Error(LH_DATA_LOSS, "cut short: the directory at the end of the zip file is missing (" +
                                       std::to_string(file_.size()) +
                                       " bytes are there); use another copy or an earlier checkpoint");
}

void ZipReader::read_directory(const Directory& d) {
  if (d.offset > file_.size() || d.size > file_.size() - d.offset)
    damaged("the directory is said to lie at byte " + std::to_string(d.offset) + ", " +
            std::to_string(d.size) + " bytes long, in a file of " + std::to_string(file_.size()));
  uint64_t at = d.offset;
  const uint64_t end = d.offset + d.size;
  for (uint64_t i = 0; i < d.entries; ++i) at = read_entry(at, end);
  if (at != end) damaged("the directory is longer than its " + std::to_string(d.entries) + " entries");
}

uint64_t ZipReader::read_entry(uint64_t at, uint64_t end) {
  if (end - at < kCentralSize || get<uint32_t>(file_.data() + at) != kCentralSignature)
    damaged("the directory has no entry at byte " + std::to_string(at));
  const char* entry = file_.data() + at;
  const auto flags = get<uint16_t>(entry + 8), method = get<uint16_t>(entry + 10);
  const auto expected = get<uint32_t>(entry + 16);
  uint64_t stored = get<uint32_t>(entry + 20), size = get<uint32_t>(entry + 24),
           header = get<uint32_t>(entry + 42);
  const uint64_t n_name = get<uint16_t>(entry + 28), n_extra = get<uint16_t>(entry + 30);
  const uint64_t length = kCentralSize + n_name + n_extra + get<uint16_t>(entry + 32);
  if (length > end - at) damaged("the directory's entry at byte " + std::to_string(at) + " is cut off");
  const std::string name(entry + kCentralSize, n_name);
  const std::string shown = printable(name);
  read_zip64({entry + kCentralSize + n_name, n_extra}, shown, size, stored, header);

  const bool is_plain = method == 0 && (flags & 1) == 0;
  if (is_plain && stored != size) damaged("record " + shown + " has two sizes");
  const std::string_view bytes = record(name, header, stored);
  // Records of a sound file do not overlap, so checking them all costs at most one pass over the file.
  total_ += stored;
  if (total_ > file_.size()) damaged("the records are larger than the file");
  if (records_.empty()) {
    prefix_ = name.substr(0, name.find('/') + 1);
    has_checksums_ = expected != 0;  // PyTorch writes zeros after set_crc32_options(False)
  }
  const uint32_t found = has_checksums_ && is_plain ? checksum(bytes) : expected;
  if (found != expected)
    damaged("record " + shown + " has checksum " + hex(found) + ", expected " + hex(expected));
  if (!records_.emplace(name, Record{bytes, is_plain}).second) damaged("record " + shown + " is there twice");
  return at + length;
}

std::string_view ZipReader::record(const std::string& name, uint64_t header, uint64_t size) const {
  const std::string shown = printable(name);
  if (header > file_.size() || file_.size() - header < kLocalSize)
    damaged("record " + shown + " lies past the end");
  const char* local = file_.data() + header;
  const uint64_t n_name = get<uint16_t>(local + 26), n_extra = get<uint16_t>(local + 28);
  const uint64_t room = file_.size() - header - kLocalSize;
  if (get<uint32_t>(local) != kLocalSignature || n_name > room ||
      file_.substr(header + kLocalSize, n_name) != name)
    damaged("record " + shown + " does not start where the directory says");
  if (n_name + n_extra > room || size > room - n_name - n_extra) damaged("record " + shown + " is cut off");
  return file_.substr(header + kLocalSize + n_name + n_extra, size);
}

}  // namespace torch_file
