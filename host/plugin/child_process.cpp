#include "plugin/child_process.hpp"

#include "base/failure.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace lhost {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kKeptErrors = 4096;

[[noreturn]] void cannot(const std::string& what, int error) {
  throw Failure(Exit::environment, "cannot " + what + ": " + std::strerror(error));
}

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) cannot("make a pipe", errno);
    read_end = ends[0];
    write_end = ends[1];
    fcntl(read_end, F_SETFL, O_NONBLOCK);
  }
  Pipe(const Pipe&) = delete;
  ~Pipe() {
    close(read_end);
    close_write_end();
  }
  void close_write_end() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  SpawnSettings(int out, int err) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, err, 2);
    posix_spawnattr_init(&attributes);
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ})
      sigaddset(&usual, s);  // a host may have changed them
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& t : texts) list.push_back(t.data());
  list.push_back(nullptr);
  return list;
}

pid_t spawn(std::vector<std::string> arguments, int out, int err) {
  std::vector<std::string> environment;
  for (const char* name : {"PATH", "HOME", "LHOST_LIBTORCH", "GLIBC_TUNABLES"})
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  const SpawnSettings settings(out, err);
  pid_t child = -1;
  const int error = posix_spawn(&child, arguments[0].c_str(), &settings.files, &settings.attributes,
                                pointers(arguments).data(), pointers(environment).data());
  if (error) cannot("start " + arguments[0], error);
  return child;
}

enum class Stream { open, ended };

Stream drain(int fd, std::string& into) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) into.append(buffer, static_cast<size_t>(n));
    else if (n < 0 && errno == EINTR) continue;
    else return n < 0 && errno == EAGAIN ? Stream::open : Stream::ended;
  }
}

void take_lines(std::string& buffer, std::vector<std::string>& lines) {
  for (size_t end; (end = buffer.find('\n')) != buffer.npos;) {
    lines.push_back(buffer.substr(0, end));
    buffer.erase(0, end + 1);
  }
}

void keep_end(std::string& s) {
  if (s.size() > kKeptErrors) s.erase(0, s.size() - kKeptErrors);
}

bool ended(pid_t child, int& status, Clock::time_point deadline) {
  for (;;) {
    const pid_t r = waitpid(child, &status, WNOHANG);
    if (r == child || (r < 0 && errno != EINTR)) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments, size_t expected_lines,
                      std::chrono::milliseconds limit) {
  Pipe out, err;
  const pid_t child = spawn(arguments, out.write_end, err.write_end);
  out.close_write_end();
  err.close_write_end();
  ChildResult result;
  std::string buffer;
  auto deadline = Clock::now() + limit;
  pollfd streams[2] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}};
  while (result.lines.size() < expected_lines && streams[0].fd >= 0 && Clock::now() < deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    poll(streams, 2, static_cast<int>(left.count()) + 1);
    const size_t before = result.lines.size();
    if (drain(out.read_end, buffer) == Stream::ended) streams[0].fd = -1;
    take_lines(buffer, result.lines);
    if (drain(err.read_end, result.errors) == Stream::ended) streams[1].fd = -1;
    keep_end(result.errors);
    if (result.lines.size() > before) deadline = Clock::now() + limit;
  }
  const bool complete = result.lines.size() >= expected_lines;
  if (complete || !ended(child, result.wait_status, deadline)) {
    result.timed_out = !complete;
    kill(-child, SIGKILL);
    ended(child, result.wait_status, Clock::time_point::max());
  } else {
    kill(-child, SIGKILL);  // what it may have started
  }
  drain(err.read_end, result.errors);
  keep_end(result.errors);
  return result;
}

}  // namespace lhost
