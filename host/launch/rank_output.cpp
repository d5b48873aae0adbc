#include "launch/rank_output.hpp"

#include "base/failure.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace lhost {
namespace {

constexpr size_t kLongestLine = 16384;
constexpr int64_t kKeptTail = 4096;
constexpr int kRoundsOfPipe = 32;  // more than a pipe holds

[[noreturn]] void no_rank_log(const std::string& path, int error) {
  throw Failure(Exit::environment, "cannot write " + path + ": " + std::strerror(error));
}

}  // namespace

RankOutput::RankOutput(int64_t rank, const std::string& folder, bool tail) : rank_(rank) {
  if (rank == 0 || folder.empty()) return;
  path_ = folder + "/rank_" + std::to_string(rank) + ".log";
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) no_rank_log(path_, errno);
  start_ = lseek(file_, 0, SEEK_END);
  to_rank_ = file_;
  if (!tail) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    close(file_);
    no_rank_log(path_, error);
  }
  pipe_ = ends[0];
  to_rank_ = ends[1];
  fcntl(pipe_, F_SETFL, O_NONBLOCK);  // this end alone: the rank waits when nobody reads
}

RankOutput::RankOutput(RankOutput&& o) noexcept
    : rank_(o.rank_),
      start_(o.start_),
      path_(std::move(o.path_)),
      partial_(std::move(o.partial_)),
      file_(std::exchange(o.file_, -1)),
      to_rank_(std::exchange(o.to_rank_, -1)),
      pipe_(std::exchange(o.pipe_, -1)) {}

RankOutput::~RankOutput() {
  started();
  if (pipe_ >= 0) close(pipe_);
  if (file_ >= 0) close(file_);
}

void RankOutput::started() {
  if (to_rank_ >= 0 && to_rank_ != file_) close(to_rank_);
  to_rank_ = -1;
}

void RankOutput::show(std::string_view line) const {
  Terminal::get().print("[rank " + std::to_string(rank_) + "] " + std::string(line));
}

void RankOutput::pump() {
  char buffer[65536];
  while (pipe_ >= 0) {
    const ssize_t n = read(pipe_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      close(pipe_);
      pipe_ = -1;
      return;
    }
    const std::string_view bytes(buffer, static_cast<size_t>(n));
    const ssize_t written = write(file_, buffer, static_cast<size_t>(n));
    (void)written;  // a full disk must not end a run because of a log
    partial_ += bytes;
    size_t from = 0;
    for (size_t end; (end = partial_.find('\n', from)) != partial_.npos; from = end + 1)
      show(std::string_view(partial_).substr(from, end - from));
    partial_.erase(0, from);
    if (partial_.size() > kLongestLine) show(std::exchange(partial_, {}));
    if (bytes.size() < sizeof buffer) return;  // others have something to say, too
  }
}

// What the rank started may keep the pipe open: not until its end, but until it is empty.
void RankOutput::finish() {
  for (int round = 0; pipe_ >= 0 && round < kRoundsOfPipe; ++round) pump();
  if (!partial_.empty()) show(std::exchange(partial_, {}));
}

std::string RankOutput::last_lines(size_t n) const {
  if (file_ < 0) return {};
  const int64_t end = lseek(file_, 0, SEEK_END), from = std::max(start_, end - kKeptTail);
  std::string text(static_cast<size_t>(std::max<int64_t>(0, end - from)), '\0');
  const ssize_t got = pread(file_, text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::vector<std::string> lines = split(text, '\n');
  if (lines.size() > n) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(n));
  return join(lines, "\n");
}

}  // namespace lhost
