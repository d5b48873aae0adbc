// local.hpp - what the launchers share that make processes on this machine: the world to make, and what a new process
// does before it is a rank.
//   * stdin is /dev/null; stdout and stderr are the given ones.
//   * It dies with its parent (PR_SET_PDEATHSIG): with the thread that started it, which is the one that supervises.
//   * All ranks of a run are one process group of their own: the terminal's Ctrl-C reaches the supervisor alone.
#pragma once
#include "variables.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lhost_launcher {

struct LocalOptions {
  std::optional<int64_t> node_rank, master_port;
  std::string master_addr, job;
  static void describe(lhost::Describe<LocalOptions>& d) {
    d(&LocalOptions::node_rank, "node_rank", "which of the nodes this is; else NODE_RANK").min(0);
    d(&LocalOptions::master_addr, "master_addr", "name or address of node 0; else MASTER_ADDR");
    d(&LocalOptions::master_port, "master_port", "port on node 0; else MASTER_PORT").range(1, 65535);
    d(&LocalOptions::job, "job", "name that the nodes of this run share, and no other run");
  }
};

inline std::string random_job() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw lhost::Error(LH_UNAVAILABLE,
                       std::string("the system gives no random bytes: ") + std::strerror(errno));
  std::string hex;
  for (unsigned char b : bytes) {
    hex += "0123456789abcdef"[b >> 4];
    hex += "0123456789abcdef"[b & 15];
  }
  return hex;
}

// A child's first moments. Between fork and exec only async-signal-safe calls are allowed; so here.
struct Birth {
  pid_t parent = -1, group = 0;  // group 0: a new one
  int out = 1, err = 2;

  bool become_rank() const noexcept {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    if (getppid() != parent) _exit(71);  // it died before prctl could tell
    if (setpgid(0, group) != 0 && setpgid(0, 0) != 0) return false;
    // First out of the way: out may be 2, and err 1. What dup2 makes does not close on exec.
    const int o = fcntl(out, F_DUPFD_CLOEXEC, 3), e = fcntl(err, F_DUPFD_CLOEXEC, 3);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (o < 0 || e < 0 || null < 0) return false;
    return dup2(null, 0) == 0 && dup2(o, 1) == 1 && dup2(e, 2) == 2 && usual_signals();
  }

 private:
  // Handlers belong to the parent. What it was started to ignore (nohup) stays ignored; SIGPIPE and SIGXFSZ a host
  // ignores for itself only. SIGTTOU: a rank in the background may write to a terminal that has `tostop`.
  static bool usual_signals() noexcept {
    for (int s = 1; s < NSIG; ++s) {
      struct sigaction a {};
      if (sigaction(s, nullptr, &a) != 0) continue;
      const bool own = s == SIGPIPE || s == SIGXFSZ;
      if (kept_by_tools(s) || (a.sa_handler == SIG_DFL) || (a.sa_handler == SIG_IGN && !own)) continue;
      a = {};
      a.sa_handler = SIG_DFL;
      sigaction(s, &a, nullptr);
    }
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGTTOU, &ignore, nullptr);
    sigset_t none;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
  }
  // Sanitizers and crash reporters listen to these, in a fork of the process as well; exec resets them.
  static bool kept_by_tools(int s) noexcept {
    return s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGILL || s == SIGABRT || s == SIGTRAP;
  }
};

// No handler of the parent runs in a child that has not reset it yet.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t old_;
};

class LocalLauncher : public lhost::Launcher {
 public:
  explicit LocalLauncher(const LocalOptions& o, const Variables& v = Variables()) : o_(o), v_(v) {}

  void env(const lh_launch_spec& spec, lh_env& out) override {
    const uint32_t size = out.size;
    out = {};
    out.size = size;
    out.num_nodes = spec.num_nodes;
    out.local_world_size = spec.ranks_per_node > 0 ? spec.ranks_per_node : 1;
    out.world_size = out.num_nodes * out.local_world_size;
    out.rank = out.local_rank = -1;
    if (out.num_nodes > 1) several_nodes(out);
    else one_node(out);
    out.master_addr = lhost::str(addr_);
    out.job = lhost::str(job_);
  }

 protected:
  // The first rank of the machine opens the group that the others join.
  pid_t group_for(const lh_rank_start& s) const { return s.env->local_rank == 0 ? 0 : group_; }
  void started(const lh_rank_start& s, pid_t pid) {
    if (s.env->local_rank == 0) group_ = pid;
  }

 private:
  std::optional<int64_t> port() const {
    if (o_.master_port) return o_.master_port;
    const auto p = v_.number("MASTER_PORT");
    if (p) check_port(*p, "MASTER_PORT");
    return p;
  }
  void one_node(lh_env& out) {
    addr_ = "127.0.0.1";
    out.master_port = port().value_or(0);
    if (job_.empty()) job_ = o_.job.empty() ? random_job() : o_.job;
  }
  void several_nodes(lh_env& out) {
    const auto node = o_.node_rank ? o_.node_rank : v_.number("NODE_RANK");
    addr_ = o_.master_addr.empty() ? v_.text("MASTER_ADDR") : o_.master_addr;
    const auto p = port();
    std::string missing;
    const auto want = [&](bool there, const char* what) {
      if (!there) missing += (missing.empty() ? "" : ", ") + std::string(what);
    };
    want(node.has_value(), "launcher.node_rank (or NODE_RANK)");
    want(!addr_.empty(), "launcher.master_addr (or MASTER_ADDR)");
    want(p.has_value(), "launcher.master_port (or MASTER_PORT)");
    if (!missing.empty())
      refuse("trainer.num_nodes = " + std::to_string(out.num_nodes) + " needs " + missing +
             "; give them, on each node its own node_rank, or start the ranks with torchrun, srun or mpirun");
    if (*node < 0 || *node >= out.num_nodes)
      refuse("found node_rank " + std::to_string(*node) + ", expected 0 to " +
             std::to_string(out.num_nodes - 1) +
             " since trainer.num_nodes = " + std::to_string(out.num_nodes));
    out.node_rank = *node;
    out.master_port = *p;
    job_ = o_.job.empty() ? addr_ + ":" + std::to_string(*p) : o_.job;
  }

  LocalOptions o_;
  Variables v_;
  std::string addr_, job_;
  pid_t group_ = 0;
};

}  // namespace lhost_launcher
