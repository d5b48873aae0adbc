#include "idx_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <lhost/sdk/plugin.hpp>

namespace {

[[noreturn]] void fail(lh_code code, const std::string& path, const std::string& what) {
  throw lhost::Error(code, path + ": " + what);
}

[[noreturn]] void fail_errno(const std::string& path, const char* doing) {
  const int e = errno;
  const lh_code code = e == ENOENT || e == ENOTDIR ? LH_NOT_FOUND
                       : e == EACCES || e == EPERM ? LH_PERMISSION
                                                   : LH_UNAVAILABLE;
  fail(code, path, std::string(doing) + ": " + std::strerror(e));
}

// gzread reads plain files unchanged.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    const int fd =
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO without a writer must not hang
    if (fd < 0) fail_errno(path, "cannot be opened");
    struct stat st {};
    const bool known = ::fstat(fd, &st) == 0;
    if (known && S_ISREG(st.st_mode) && st.st_size > 0) file_ = gzdopen(fd, "rb");
    if (file_) {
      stored_ = static_cast<uint64_t>(st.st_size);
      gzbuffer(file_, 1 << 17);
      return;
    }
    ::close(fd);
    if (S_ISDIR(st.st_mode)) fail(LH_INVALID_ARGUMENT, path, "is a folder, expected an idx file");
    if (!S_ISREG(st.st_mode)) fail(LH_INVALID_ARGUMENT, path, "is not a regular file, expected an idx file");
    if (st.st_size == 0) fail(LH_DATA_LOSS, path, "is empty, expected an idx file");
    fail(LH_RESOURCE_EXHAUSTED, path, "cannot be read: out of memory");
  }
  ~Reader() { gzclose_r(file_); }
  Reader(const Reader&) = delete;

  // Up to n bytes; fewer only at the end of sound data.
  uint64_t read(uint8_t* to, uint64_t n) {
    uint64_t done = 0;
    while (done < n) {
      const int got = gzread(file_, to + done, static_cast<unsigned>(std::min<uint64_t>(n - done, 1 << 26)));
      if (got > 0) done += static_cast<uint64_t>(got);
      if (got <= 0) break;
    }
    if (done < n) check();
    return done;
  }
  uint64_t stored() const { return stored_; }

 private:
  void check() {
    int code = Z_OK;
    std::string text = gzerror(file_, &code);
    if (code == Z_ERRNO) fail_errno(path_, "cannot be read");
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code == Z_BUF_ERROR)
      fail(LH_DATA_LOSS, path_,
           "the gzip data is cut short at " + std::to_string(stored_) +
               " bytes; the file was not copied or downloaded completely");
    if (code != Z_OK && code != Z_STREAM_END)
      fail(LH_DATA_LOSS, path_, "the gzip data is damaged (" + text.substr(text.rfind(": ") + 2) + ")");
  }
  const std::string path_;
  gzFile file_ = nullptr;
  uint64_t stored_ = 0;
};

std::string hex(const uint8_t* bytes, size_t n) {
  static const char digits[] = "0123456789abcdef";
  std::string s;
  for (size_t i = 0; i < n; ++i) {
    if (i) s += ' ';
    s += digits[bytes[i] >> 4];
    s += digits[bytes[i] & 15];
  }
  return s;
}

const char* element_type(uint8_t code) {
  switch (code) {
    case 0x08:
      return "unsigned byte";
    case 0x09:
      return "signed byte";
    case 0x0b:
      return "16-bit integer";
    case 0x0c:
      return "32-bit integer";
    case 0x0d:
      return "32-bit float";
    case 0x0e:
      return "64-bit float";
    default:
      return nullptr;
  }
}

std::vector<int64_t> read_header(Reader& in, const std::string& path) {
  uint8_t magic[4] = {};
  const uint64_t got = in.read(magic, 4);
  const bool idx = got == 4 && magic[0] == 0 && magic[1] == 0 && element_type(magic[2]) && magic[3] > 0;
  if (!idx)
    fail(LH_INVALID_ARGUMENT, path,
         "is not an idx file: it starts with the bytes " + hex(magic, got) +
             ", expected 00 00 08 and the number of dimensions");
  if (magic[2] != 0x08)
    fail(LH_INVALID_ARGUMENT, path,
         std::string("has elements of the type ") + element_type(magic[2]) + " (0x" + hex(magic + 2, 1) +
             "); only unsigned byte (0x08) is read");
  std::vector<uint8_t> raw(4u * magic[3]);
  const uint64_t have = in.read(raw.data(), raw.size());
  if (have < raw.size())
    fail(LH_DATA_LOSS, path,
         "is cut short inside the header: " + std::to_string(magic[3]) + " dimensions take " +
             std::to_string(4 + raw.size()) + " bytes, found " + std::to_string(4 + have));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < raw.size(); i += 4)
    shape.push_back(int64_t{raw[i]} << 24 | raw[i + 1] << 16 | raw[i + 2] << 8 | raw[i + 3]);
  return shape;
}

std::string product_text(const std::vector<int64_t>& shape) {
  std::string s;
  for (const int64_t d : shape) s += (s.empty() ? "" : " x ") + std::to_string(d);
  return s;
}

}  // namespace

IdxFile read_idx(const std::string& path) {
  Reader in(path);
  IdxFile file;
  file.shape = read_header(in, path);
  const std::string promised = "the header promises " + product_text(file.shape) + " values";
  // deflate packs at most 1032 : 1, so a damaged header is found out before memory is asked for
  const uint64_t most = in.stored() * 1032;
  uint64_t size = 1;
  for (const int64_t d : file.shape) {
    if (d == 0) fail(LH_INVALID_ARGUMENT, path, promised + ": there is no sample in it");
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(d), &size) || size > most)
      fail(LH_DATA_LOSS, path,
           promised + ", more than a file of " + std::to_string(in.stored()) +
               " bytes can hold; it is damaged or not an idx file");
  }
  file.values.resize(size);
  const uint64_t got = in.read(file.values.data(), size);
  if (got < size)
    fail(LH_DATA_LOSS, path,
         "is cut short: " + promised + " (" + std::to_string(size) + " bytes), found " + std::to_string(got));
  uint8_t more = 0;
  if (in.read(&more, 1) != 0)
    fail(LH_DATA_LOSS, path, promised + " (" + std::to_string(size) + " bytes), but more bytes follow");
  return file;
}
