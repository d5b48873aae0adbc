#include "append_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <lhost/sdk/plugin.hpp>
#include <utility>

namespace {

constexpr size_t kBufferSize = 1 << 16;

void make_folder_of(const std::string& path) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, error);
  if (error)
    throw lhost::Error(LH_UNAVAILABLE, folder.string() + ": the folder cannot be made: " + error.message());
}

}  // namespace

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  fd_ = std::exchange(other.fd_, -1);
  written_ = std::exchange(other.written_, 0);
  path_ = std::exchange(other.path_, {});
  buffer_ = std::exchange(other.buffer_, {});
  return *this;
}

AppendFile::~AppendFile() { release(); }

void AppendFile::release() noexcept {
  try {
    close();
  } catch (...) {  // whoever wants to hear of it calls close
  }
}

void AppendFile::fail(const char* doing) const {
  const int e = errno;
  const lh_code code = e == ENOSPC || e == EDQUOT || e == EFBIG || e == EMFILE ? LH_RESOURCE_EXHAUSTED
                       : e == EACCES || e == EPERM || e == EROFS               ? LH_PERMISSION
                                                                               : LH_UNAVAILABLE;
  throw lhost::Error(code, path_ + ": " + doing + ": " + std::strerror(e));
}

void AppendFile::create(const std::string& path) {
  release();
  path_ = path;
  make_folder_of(path);
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0 && errno == EEXIST)
    throw lhost::Error(LH_ALREADY_EXISTS, path +
                                              ": exists already; does another logger of this run write it? "
                                              "Give one of them another name");
  if (fd_ < 0) fail("cannot be made");
  written_ = 0;
}

void AppendFile::reopen(const std::string& path, int64_t keep) {
  release();
  path_ = path;
  make_folder_of(path);
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot be opened");
  const int64_t size = ::lseek(fd_, 0, SEEK_END);
  if (size < 0) fail("cannot be opened");
  written_ = size < keep ? size : keep;
  if (written_ < size && ::ftruncate(fd_, written_) != 0) fail("cannot be cut back to where the run resumes");
  if (::lseek(fd_, written_, SEEK_SET) < 0) fail("cannot be opened");
}

void AppendFile::append(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferSize) flush();
}

void AppendFile::flush() {
  size_t done = 0;
  int error = 0;
  while (done < buffer_.size() && error == 0) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n >= 0) done += static_cast<size_t>(n);
    else if (errno != EINTR) error = errno;
  }
  buffer_.erase(0, done);
  written_ += static_cast<int64_t>(done);
  errno = error;
  if (error != 0) fail("cannot be written");
}

void AppendFile::rename_to(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) fail("cannot be renamed");
  path_ = path;
}

void AppendFile::close() {
  if (fd_ < 0) return;
  const auto shut = [this] {
    buffer_.clear();
    return ::close(std::exchange(fd_, -1));
  };
  try {
    flush();
  } catch (...) {
    shut();
    throw;
  }
  if (shut() != 0) fail("cannot be written");  // a network file system may say only now that it is full
}

std::string checked_name(const std::string& option, const std::string& value) {
  const std::filesystem::path path(value);
  bool inside = !value.empty() && path.is_relative() && value.find('\0') == value.npos;
  for (const auto& part : path) inside = inside && part != "..";
  if (!inside)
    throw lhost::Error(LH_INVALID_ARGUMENT, option + ": found \"" + value +
                                                "\", expected a name below the run's folder: not absolute, "
                                                "without \"..\"");
  return value;
}

std::string read_back(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw lhost::Error(LH_UNAVAILABLE, path + ": cannot be read: " + std::strerror(errno));
  return text;
}

void append_number(std::string& to, double value) {
  if (std::isnan(value)) {
    to += "nan";  // to_chars would show the sign bit
    return;
  }
  char text[32];
  to.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_number(std::string& to, int64_t value) {
  char text[24];
  to.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_seconds(std::string& to, int64_t unix_time_ns) {
  const int64_t us = unix_time_ns / 1000;
  append_number(to, us / 1000000);
  const std::string fraction = std::to_string(1000000 + us % 1000000);
  to.append(fraction, 1).insert(to.size() - 6, 1, '.');
}
