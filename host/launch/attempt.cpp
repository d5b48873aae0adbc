#include "launch/attempt.hpp"

#include "base/failure.hpp"
#include "base/signals.hpp"
#include "base/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace lhost {
namespace {

constexpr size_t kShownLogLines = 6;

int request_in_memory(const std::string& bytes) {
  const int fd = memfd_create("lhost-request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  bool good = fd >= 0;
  for (size_t at = 0; good && at < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) at += static_cast<size_t>(n);
  }
  // Ranks share it: none may change what the next one reads.
  if (good && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
    return fd;
  const int error = errno;
  if (fd >= 0) close(fd);
  throw Failure(Exit::environment,
                std::string("cannot keep the ranks' request in memory: ") + std::strerror(error));
}

std::string this_host() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "this machine";
}

std::string shown_path(const std::string& path) {
  std::error_code ec;
  const std::string here = std::filesystem::current_path(ec).string() + "/";
  return !ec && path.rfind(here, 0) == 0 ? path.substr(here.size()) : path;
}

// What main() of lh_rank_start gets: everything that boot_rank() finds in an executed rank.
struct ForkedRank {
  const SuperviseOptions* options;
  RankEnv env;
  int pages_fd, listen_fd;
};

int32_t forked_rank_main(void* context) {
  auto& rank = *static_cast<ForkedRank*>(context);
  second_signal_ends = 0;
  RankBoot boot;
  const auto report = [&](Exit code, const char* message) {
    boot.pages.at(0).fail({LH_INTERNAL, static_cast<int32_t>(code), 0, message, "", "", ""});
    return static_cast<int32_t>(code);
  };
  try {
    boot.pages = RankPages::attach(fcntl(rank.pages_fd, F_DUPFD_CLOEXEC, 3), rank.env.local_rank);
    boot.env = rank.env;
    boot.listen_fd = rank.listen_fd;
    boot.request = rank.options->request;
    return rank.options->rank_main(boot);
  } catch (const Failure& f) {
    return report(f.code, f.what());
  } catch (const std::exception& e) {
    return report(Exit::internal, e.what());
  }
}

// After a signal that was to end all in order.
std::string who_did_not_end(const std::vector<RankEnd>& ends) {
  std::string s;
  for (const RankEnd& e : ends)
    if (e.how == RankEnd::How::running) s += (s.empty() ? "rank " : ", rank ") + std::to_string(e.rank);
  return s.empty() ? s : s + " did not end by itself after the signal, and was ended";
}

std::vector<lh_str> borrowed(const std::vector<std::string>& list) {
  std::vector<lh_str> out;
  for (const std::string& s : list) out.push_back(str(s));
  return out;
}

}  // namespace

Attempt::Attempt(const SuperviseOptions& o, SignalPipe& signals)
    : o_(o),
      signals_(signals),
      world_(o.world),
      oom_kills_before_(cgroup_.oom_kills()),
      pages_(RankPages::create(o.world.local_world_size)),
      request_fd_(request_in_memory(o.request)) {}

Attempt::~Attempt() {
  if (request_fd_ >= 0) close(request_fd_);
}

AttemptResult Attempt::run() {
  read_signals();
  if (asked_ != 0) return judge();  // between two attempts
  start_all();
  while (group_.running() > 0) {
    wait();
    read_signals();
    for (RankOutput& o : outputs_) o.pump();
    look_at_ended();
    if (next_ == Step::none || Clock::now() < deadline_) continue;
    if (next_ == Step::leave) break;
    escalate();
  }
  return judge();
}

// ---- start

void Attempt::start_all() {
  if (world_.node_rank == 0) {
    socket_.emplace(world_.num_nodes == 1, world_.master_port);
    world_.master_port = socket_->port();
  }
  for (int64_t i = 0; i < world_.local_world_size; ++i) {
    start_one(i);
    // Rank 0 has it now. Were it open here, too, others would wait for a dead rank 0 instead of being refused.
    if (i == 0) socket_.reset();
  }
}

void Attempt::start_one(int64_t local_rank) {
  RankEnv env = world_;
  env.local_rank = local_rank;
  env.rank = env.node_rank * env.local_world_size + local_rank;
  std::vector<int32_t> keep = {pages_.fd(), request_fd_};
  const int listen_fd = socket_ ? socket_->fd() : -1;  // rank 0's
  if (listen_fd >= 0) keep.push_back(listen_fd);

  std::vector<std::string> variables = env.variables();
  variables.push_back(rank_mark(getpid(), pages_.fd(), request_fd_, listen_fd));
  if (!std::getenv("OMP_NUM_THREADS"))
    variables.push_back("OMP_NUM_THREADS=" +
                        std::to_string(std::max<int64_t>(1, allowed_cores() / env.local_world_size)));
  RankOutput& output = outputs_.emplace_back(env.rank, o_.log_folder, o_.tail_ranks);

  const lh_env table = env.table();
  const std::vector<lh_str> argv = borrowed(o_.argv), environment = borrowed(variables);
  ForkedRank forked{&o_, env, pages_.fd(), listen_fd};
  lh_rank_start s{};
  s.size = sizeof s;
  s.env = &table;
  s.argv = argv.data();
  s.n_argv = argv.size();
  s.environment = environment.data();
  s.n_environment = environment.size();
  s.keep = keep.data();
  s.n_keep = keep.size();
  s.out_fd = output.fd() >= 0 ? output.fd() : STDOUT_FILENO;
  s.err_fd = output.fd() >= 0 ? output.fd() : STDERR_FILENO;
  if ((o_.launcher->identity().flags & LH_LAUNCHER_FORKS) != 0) {
    s.main = forked_rank_main;
    s.context = &forked;
  }
  int64_t pid = 0;
  check((*o_.launcher)->start(o_.launcher->self(), &s, &pid));
  group_.add(env.rank, static_cast<pid_t>(pid));
  output.started();
}

// ---- watch

void Attempt::wait() {
  std::vector<pollfd> list = {{signals_.fd(), POLLIN, 0}};
  group_.add_polls(list);
  for (const RankOutput& o : outputs_)
    if (o.read_fd() >= 0) list.push_back({o.read_fd(), POLLIN, 0});
  int64_t limit = group_.longest_poll_ms();
  if (next_ != Step::none) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    limit = std::max<int64_t>(0, limit < 0 ? left : std::min<int64_t>(left, limit));
  }
  poll(list.data(), list.size(), static_cast<int>(limit));
}

// The first is passed on, for the ranks to end in order; a second one ends all at once.
void Attempt::read_signals() {
  while (const int sig = signals_.next()) {
    if (sig == SIGTSTP) {  // Ctrl-Z stops the run, not just who watches it
      group_.send(SIGSTOP);
      kill(getpid(), SIGSTOP);
      group_.send(SIGCONT);
      continue;
    }
    if (asked_ == 0) {
      asked_ = sig;
      group_.send(sig);
      continue;
    }
    asked_again_ = sig;
    group_.freeze();
    group_.end_all(SIGKILL);
    next_ = Step::leave;
    deadline_ = Clock::now() + std::chrono::seconds(5);
  }
}

void Attempt::look_at_ended() {
  for (size_t i : group_.take_ended()) {
    const RankEnd& e = group_.end(i);
    const bool in_order =
        e.how == RankEnd::How::exited && e.value == 0 &&
        (group_.running() == 0 || pages_.at(static_cast<int64_t>(i)).read().phase == RankPhase::ended);
    if (!in_order) trouble();
  }
}

void Attempt::trouble() {
  if (next_ != Step::none) return;
  trouble_at_ = Clock::now();
  deadline_ = trouble_at_ + o_.patience.settle;
  next_ = Step::terminate;
}

bool Attempt::somebody_saves() const {
  for (size_t i = 0; i < group_.size(); ++i)
    if (group_.is_running(i) && pages_.at(static_cast<int64_t>(i)).read().phase == RankPhase::saving)
      return true;
  return false;
}

void Attempt::escalate() {
  const auto now = Clock::now();
  if (next_ == Step::terminate && somebody_saves() && now < trouble_at_ + o_.patience.saving) {
    deadline_ = now + std::chrono::milliseconds(20);
    return;
  }
  if (next_ == Step::terminate) {
    for (size_t i = 0; i < group_.size(); ++i)
      group_.end(i).stopped = group_.is_running(i) && group_.is_stopped(i);
    group_.freeze();
    group_.end_all(SIGTERM);
    next_ = Step::kill;
    deadline_ = now + o_.patience.terminate;
  } else {
    group_.end_all(SIGKILL);
    next_ = Step::leave;
    deadline_ = now + std::chrono::seconds(5);
  }
}

// ---- judge

std::vector<RankEnd> Attempt::ends() {
  std::vector<RankEnd> list;
  for (size_t i = 0; i < group_.size(); ++i) {
    RankEnd e = group_.end(i);
    // Before it had a handler of its own.
    if (asked_ != 0 && e.how == RankEnd::How::signalled && e.value == asked_) {
      e.how = RankEnd::How::exited;
      e.value = 128 + asked_;
    }
    e.page = pages_.at(static_cast<int64_t>(i)).read();
    e.log = shown_path(outputs_[i].path());
    e.log_tail = outputs_[i].last_lines(kShownLogLines);
    list.push_back(std::move(e));
  }
  return list;
}

AttemptResult Attempt::judge() {
  group_.end_all(SIGKILL);  // what the ranks started
  for (RankOutput& o : outputs_) o.finish();
  const std::vector<RankEnd> list = ends();
  const Blame b =
      find_blame(list, {this_host(), cgroup_.oom_kills() > oom_kills_before_, o_.world.num_nodes == 1});
  group_.reap();
  AttemptResult a;
  a.kind = b.kind;
  SuperviseResult& r = a.result;
  r.exit_code = b.exit_code;
  r.asked = b.asked;
  r.culprit = b.asked ? -1 : b.culprit;
  r.report = b.report;
  r.secondary = b.secondary;
  r.global_step = b.global_step;
  if (asked_ != 0) {
    if (r.report.empty()) r.report = who_did_not_end(list);
    r.asked = true;
    r.exit_code = 128 + (asked_again_ != 0 ? asked_again_ : asked_);
  }
  if (asked_again_ != 0) {
    r.report.clear();
    Terminal::get().error("ended at once by a second signal; nothing more was saved");
  }
  return a;
}

}  // namespace lhost
