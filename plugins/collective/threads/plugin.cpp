// The collective "threads": ranks as threads of one process, without a network or LibTorch; for tests, and for authors of
// strategies. Results are bit for bit those of gloo with order = "rank".
//
// Ranks that call init with the same job and restart meet in a hub inside this plugin. Nothing runs in the background: the
// last rank to issue a call computes it for all. Calls that do not fit together are an error on all ranks, which names both.
#include "../common/transport.hpp"
#include "hub.hpp"

namespace lhost_threads {
namespace {

using lhost_collective::Kind;
using lhost_collective::Pending;

class ThreadsPending final : public Pending {
 public:
  ThreadsPending(std::shared_ptr<Hub> hub, GroupPtr group, size_t rank, MeetingPtr meeting,
                 int64_t timeout_ns)
      : hub_(std::move(hub)),
        group_(std::move(group)),
        rank_(rank),
        meeting_(std::move(meeting)),
        timeout_ns_(timeout_ns) {
    if (timeout_ns > 0)
      end_ = Clock::now() + std::chrono::nanoseconds(std::min(timeout_ns, int64_t{1} << 60));
  }
  void wait(int64_t timeout_ns) override {
    if (told_) return;
    told_ = timeout_ns < 0;
    try {
      hub_->wait(*group_, meeting_, rank_, end_, timeout_ns, timeout_ns_);
      told_ = true;
    } catch (const lhost::Error& e) {
      // a wait that was left early may be repeated
      told_ = told_ || e.code != LH_DEADLINE || Clock::now() >= end_;
      throw;
    }
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const GroupPtr group_;
  const size_t rank_;
  const MeetingPtr meeting_;
  const int64_t timeout_ns_;
  Clock::time_point end_ = Clock::time_point::max();
  bool told_ = false;  // the outcome, once
};

class Threads final : public lhost_collective::Transport {
 public:
  static constexpr const char* summary = "threads of one process, for tests; CPU tensors";
  ~Threads() override {
    if (hub_) hub_->leave(rank_);
  }

  void init(lh_run*, const lh_collective_init& a) override {
    bind();
    timeout_ns_ = a.timeout_ns > 0 ? a.timeout_ns : -1;
    rank_ = static_cast<size_t>(a.env->rank);
    const std::string job = std::string(lhost::view(a.env->job)) + "/" + std::to_string(a.env->restart);
    hub_ = Hub::join(job, static_cast<size_t>(a.env->world_size), rank_, a.connect_timeout_ns);
    world_ = hub_->world();
  }

  lh_process_group* group(const int64_t* ranks, uint64_t n) override {
    const auto members = lhost_collective::read_ranks(ranks, n, static_cast<int64_t>(world_->ranks.size()));
    GroupPtr g = hub_->group(rank_, {members.begin(), members.end()});
    if (g->place(rank_) == n) return nullptr;
    return reinterpret_cast<lh_process_group*>(new GroupPtr(std::move(g)));
  }
  void group_free(lh_process_group* g) noexcept override { delete reinterpret_cast<GroupPtr*>(g); }

  void abort(lh_code why) noexcept override {
    if (hub_) hub_->abort(rank_, why);
  }

 protected:
  std::unique_ptr<Pending> issue(Kind kind, const Args& a) override {
    const GroupPtr& group = a.group ? *reinterpret_cast<GroupPtr*>(a.group) : world_;
    const size_t n = group->ranks.size();
    const lhost_collective::Call call = read(kind, a, group->place(rank_), n);
    if (n == 1) {
      alone(call);
      return nullptr;
    }
    const int64_t timeout = a.timeout_ns == 0 ? timeout_ns_ : a.timeout_ns;
    MeetingPtr meeting = hub_->issue(*group, rank_, call);
    return std::make_unique<ThreadsPending>(hub_, group, rank_, std::move(meeting), timeout);
  }

 private:
  int64_t timeout_ns_ = -1;
  size_t rank_ = 0;
  std::shared_ptr<Hub> hub_;
  GroupPtr world_;
};

}  // namespace
}  // namespace lhost_threads

LHOST_COLLECTIVE(lhost_threads::Threads, lhost::NoOptions, "threads", "0.1.0")
