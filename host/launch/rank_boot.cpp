#include "launch/rank_boot.hpp"

#include "base/failure.hpp"
#include "base/signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lhost {
namespace {

constexpr const char* kRankMark = "LHOST_SUPERVISOR";

// Ranks share the open file and with it its position: read by place.
std::string read_request(int fd) {
  struct stat s {};
  if (fstat(fd, &s) != 0)
    throw Failure(Exit::internal, std::string("a rank without its request: ") + std::strerror(errno));
  std::string bytes(static_cast<size_t>(s.st_size), '\0');
  for (size_t have = 0; have < bytes.size();) {
    const ssize_t n = pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Failure(Exit::internal, "a rank cannot read its request");
    have += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

std::string rank_mark(int64_t supervisor, int pages_fd, int request_fd, int listen_fd) {
  return std::string(kRankMark) + "=" + std::to_string(supervisor) + " " + std::to_string(pages_fd) + " " +
         std::to_string(request_fd) + " " + std::to_string(listen_fd);
}

std::optional<RankBoot> boot_rank() {
  const char* value = std::getenv(kRankMark);
  if (!value) return std::nullopt;
  long long supervisor = 0;
  int pages = -1, request = -1, listen = -1;
  const int read = std::sscanf(value, "%lld %d %d %d", &supervisor, &pages, &request, &listen);  // NOLINT
  if (read != 4)
    throw Failure(Exit::internal,
                  std::string(kRankMark) + "=" + value + " is not what a supervisor of this lhost writes");
  unsetenv(kRankMark);
  // Usually the supervisor is the parent, and the kernel ends this process with it; under `perf stat` and the like it
  // is not.
  const auto pid = static_cast<pid_t>(supervisor);
  if (getppid() != pid && kill(pid, 0) != 0 && errno == ESRCH) _exit(static_cast<int>(Exit::peer));
  for (int fd : {pages, request, listen})
    if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
  second_signal_ends = 0;
  RankBoot boot;
  boot.env = RankEnv::from_variables();
  boot.pages = RankPages::attach(pages, boot.env.local_rank);
  boot.listen_fd = listen;
  boot.request = read_request(request);
  close(request);
  return boot;
}

}  // namespace lhost
