// exec - makes each rank as a fresh process: nothing of this one is in it, neither threads nor an opened device.
#include "../common/local.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>

using namespace lhost_launcher;

namespace {

std::vector<std::string> texts(const lh_str* list, uint64_t n) {
  std::vector<std::string> out;
  for (uint64_t i = 0; i < n; ++i) out.emplace_back(lhost::view(list[i]));
  return out;
}
std::vector<char*> pointers(std::vector<std::string>& list) {
  std::vector<char*> out;
  for (std::string& s : list) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

// This process's own environment, with what is given in place of variables of the same name.
std::vector<std::string> merged(std::vector<std::string> given) {
  std::vector<std::string> out = std::move(given);
  const size_t own = out.size();
  for (char** e = environ; *e; ++e) {
    const std::string_view name(*e, std::string_view(*e).find('=') + 1);
    bool replaced = false;
    for (size_t i = 0; i < own; ++i) replaced |= out[i].compare(0, name.size(), name) == 0;
    if (!replaced) out.emplace_back(*e);
  }
  return out;
}

void close_all_on_exec(int limit) noexcept {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) == 0) return;
#endif
  for (int fd = 3; fd < limit; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);  // Linux before 5.11
}

struct ErrorPipe {  // closes on exec: who reads its end learns that the program runs, or why it does not
  int read_end = -1, write_end = -1;
  ErrorPipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw lhost::Error(LH_RESOURCE_EXHAUSTED, std::string("cannot make a pipe: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  ~ErrorPipe() {
    close(read_end);
    if (write_end >= 0) close(write_end);
  }
  ErrorPipe(const ErrorPipe&) = delete;
  int error() {
    close(write_end);
    write_end = -1;
    int e = 0;
    ssize_t n;
    do n = read(read_end, &e, sizeof e);
    while (n < 0 && errno == EINTR);
    return n == sizeof e ? e : 0;
  }
};

}  // namespace

struct Exec : LocalLauncher {
  static constexpr const char* summary = "makes the ranks of this machine, each as a fresh process";
  using LocalLauncher::LocalLauncher;

  int32_t detect(const lh_launch_spec& spec, std::string& why) override {
    if (spec.num_nodes == 1 && spec.ranks_per_node <= 1) {
      why = "one rank, as a process of its own";
      return 5;
    }
    why = "several ranks, and nobody else has started them";
    return 10;
  }

  int64_t start(const lh_rank_start& s) override {
    if (s.n_argv == 0) refuse("a rank without a program; expected argv");
    auto arguments = texts(s.argv, s.n_argv), environment = merged(texts(s.environment, s.n_environment));
    const auto argv = pointers(arguments), envp = pointers(environment);
    const Birth birth{getpid(), group_for(s), s.out_fd, s.err_fd};
    const auto limit = static_cast<int>(sysconf(_SC_OPEN_MAX));
    ErrorPipe errors;
    pid_t pid;
    {
      const SignalsBlocked blocked;
      pid = fork();
      if (pid == 0) {
        close_all_on_exec(limit);
        bool kept = birth.become_rank();
        for (uint64_t i = 0; i < s.n_keep; ++i) kept = kept && fcntl(s.keep[i], F_SETFD, 0) == 0;
        if (kept) execve(argv[0], argv.data(), envp.data());
        const int e = errno;
        const ssize_t told = write(errors.write_end, &e, sizeof e);
        (void)told;
        _exit(127);
      }
    }
    if (pid < 0)
      throw lhost::Error(LH_RESOURCE_EXHAUSTED,
                         std::string("cannot make a process: ") + std::strerror(errno));
    if (const int e = errors.error()) {
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
      throw lhost::Error(e == ENOENT ? LH_NOT_FOUND : LH_UNAVAILABLE,
                         "cannot execute " + arguments[0] + ": " + std::strerror(e));
    }
    started(s, pid);
    return pid;
  }
};
LHOST_LAUNCHER(Exec, LocalOptions, "exec", "1.0.0")
