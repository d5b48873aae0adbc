// spawn - makes each rank as a fork of this process, in which everything is loaded already. A fork has only the thread
// that called it: locks that other threads held are locked for ever, OpenMP's team is gone. Hence one thread, no more.
#include "../common/local.hpp"

#include <dirent.h>

#include <cstdio>

using namespace lhost_launcher;

namespace {

int threads_of_this_process() {
  DIR* folder = opendir("/proc/self/task");
  if (!folder) return 1;  // no /proc: nothing can be said
  int n = 0;
  while (const dirent* e = readdir(folder)) n += e->d_name[0] != '.';
  closedir(folder);
  return n;
}

void add_to_environment(const lh_rank_start& s) {
  for (uint64_t i = 0; i < s.n_environment; ++i) {
    const std::string v(lhost::view(s.environment[i]));
    const size_t equals = v.find('=');
    if (equals != v.npos) setenv(v.substr(0, equals).c_str(), v.c_str() + equals + 1, 1);
  }
}

}  // namespace

struct Spawn : LocalLauncher {
  static constexpr const char* summary = "makes the ranks of this machine as forks of this process";
  using LocalLauncher::LocalLauncher;

  // detect stays 0: chosen by name or by a strategy.
  int64_t start(const lh_rank_start& s) override {
    if (!s.main) refuse("a rank without a function; expected main, or the launcher exec for a program");
    if (const int n = threads_of_this_process(); n > 1)
      throw lhost::Error(
          LH_FAILED_PRECONDITION,
          "found " + std::to_string(n) +
              " threads in this process, expected one: a fork would hang on what the others hold; set "
              "launcher.use = \"exec\", or find the plugin that starts a thread when it is loaded");
    const Birth birth{getpid(), group_for(s), s.out_fd, s.err_fd};
    std::fflush(nullptr);  // else both processes write what is buffered
    pid_t pid;
    {
      const SignalsBlocked blocked;
      pid = fork();
      if (pid == 0) {
        if (!birth.become_rank()) _exit(70);
        add_to_environment(s);
        const int32_t code = s.main(s.context);
        std::fflush(nullptr);
        _exit(code);
      }
    }
    if (pid < 0)
      throw lhost::Error(LH_RESOURCE_EXHAUSTED,
                         std::string("cannot make a process: ") + std::strerror(errno));
    setpgid(pid, birth.group);  // as the child does: whoever is first
    started(s, pid);
    return pid;
  }
};
LHOST_FORKING_LAUNCHER(Spawn, LocalOptions, "spawn", "1.0.0")
