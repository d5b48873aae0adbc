#include "base/files.hpp"

#include "base/failure.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <vector>

namespace lhost {
namespace {

constexpr std::string_view kMark = ".lhost-tmp-";

[[noreturn]] void fail_on(const std::string& doing, const std::string& path, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT) hint = "; free some space, or set [run] dir to another disk";
  if (error == EACCES || error == EPERM || error == EROFS) hint = "; check the permissions, or set [run] dir";
  throw Failure(Exit::environment, "cannot " + doing + " " + path + ": " + std::strerror(error) + hint);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

std::string read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_on("read", path, errno);
  struct stat st {};
  if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
    close(fd);
    fail_on("read", path, EISDIR);
  }
  std::string text(static_cast<size_t>(st.st_size > 0 ? st.st_size : 0), '\0');
  size_t have = 0;
  for (;;) {
    if (have == text.size()) text.resize(have + 4096);
    const ssize_t n = read(fd, text.data() + have, text.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(fd);
      fail_on("read", path, error);
    }
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  close(fd);
  text.resize(have);
  return text;
}

void make_folders(const std::string& path) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (ec) fail_on("make the folder", path, ec.value());
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  temporary_ = path_ + std::string(kMark) + std::to_string(getpid());
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_on("write", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const { fail_on(doing, path_, errno); }

void AtomicFile::write(const void* data, uint64_t size) {
  const auto* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd_, p, std::min<uint64_t>(size, 1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    p += n;
    size -= static_cast<uint64_t>(n);
  }
}

void AtomicFile::commit() {
  if (fsync(fd_) != 0) fail("write");
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    fail_on("write", path_, error);
  }
  const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // the file is there; only the durability of its name is not certain
  fsync(folder);
  close(folder);
}

void write_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void remove_leftovers(const std::string& folder) {
  std::error_code ec;
  std::vector<std::filesystem::path> dead;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename();
    const auto at = name.rfind(kMark);
    if (at == name.npos) continue;
    const auto pid = static_cast<pid_t>(std::atol(name.c_str() + at + kMark.size()));
    if (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH))
      dead.push_back(entry.path());  // its writer is gone
  }
  for (const auto& path : dead) std::filesystem::remove(path, ec);
}

}  // namespace lhost
