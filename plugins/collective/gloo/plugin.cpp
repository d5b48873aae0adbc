// The collective "gloo": ranks as processes on one machine or several, over TCP by c10d's ProcessGroupGloo; for tensors in
// the memory of the CPU.
//
// order = "rank" adds numbers in rank order: results depend neither on timing nor on how a message is cut. "backend" lets
// c10d choose for all_reduce (sum and average of float32, float64 and integers), broadcast and all_gather over all ranks.
#include "../common/transport.hpp"
#include "address.hpp"
#include "cross_memory.hpp"
#include "queue.hpp"
#include "rendezvous.hpp"

#include <torch/version.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace lhost_gloo {
namespace {

using lhost_collective::Call;
using lhost_collective::Kind;
using lhost_collective::Pending;

enum class Order { rank, backend };

struct Options {
  Order order = Order::rank;
  std::string interface;
  bool cross_memory = true;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::order, "order",
      "how numbers are added: in rank order, the same bits every time, or as c10d likes")
        .choices({"rank", "backend"});
    d(&Options::interface, "interface",
      "network interface between machines; empty: the one that leads to rank 0");
    d(&Options::cross_memory, "cross_memory",
      "ranks of one machine read large messages from each other's memory, if permitted; false: TCP alone");
  }
};

class GlooPending final : public Pending {
 public:
  GlooPending(std::shared_ptr<Queue> queue, OperationPtr operation)
      : queue_(std::move(queue)), operation_(std::move(operation)) {}
  ~GlooPending() override { queue_->release(operation_); }
  void wait(int64_t timeout_ns) override { queue_->wait(operation_, timeout_ns); }

 private:
  const std::shared_ptr<Queue> queue_;
  const OperationPtr operation_;
};

class Gloo final : public lhost_collective::Transport {
 public:
  static constexpr const char* summary = "processes over TCP and each other's memory, by gloo; CPU tensors";
  explicit Gloo(const Options& o) : options_(o) {}
  ~Gloo() override {
    if (queue_) queue_->stop();
  }

  void init(lh_run*, const lh_collective_init& a) override {
    bind();
    const lh_env& env = *a.env;
    timeout_ns_ = a.timeout_ns > 0 ? a.timeout_ns : -1;
    auto world = std::make_shared<Group>();
    for (int r = 0; r < env.world_size; ++r) world->ranks.push_back(r);
    world->me = static_cast<size_t>(env.rank);
    world->world = true;
    world_ = std::move(world);
    if (env.world_size == 1) {
      if (a.listen_fd >= 0) close(a.listen_fd);
      return;
    }
    Rendezvous rendezvous(env, a.listen_fd, a.connect_timeout_ns, aborted_);
    std::string address;
    const std::string interface = choose_interface(env, address);
    rendezvous.meet();
    connect(env, rendezvous, interface, address);
  }

  lh_process_group* group(const int64_t* ranks, uint64_t n) override {
    auto g = std::make_shared<Group>();
    g->ranks = lhost_collective::read_ranks(ranks, n, static_cast<int64_t>(world_->size()));
    g->tag = kTagsPerGroup * ++groups_;  // counted alike by members and others
    for (g->me = 0; g->me < n; ++g->me)
      if (g->ranks[g->me] == static_cast<int>(world_->me))
        return reinterpret_cast<lh_process_group*>(new std::shared_ptr<const Group>(std::move(g)));
    return nullptr;
  }
  void group_free(lh_process_group* g) noexcept override {
    delete reinterpret_cast<std::shared_ptr<const Group>*>(g);
  }

  void abort(lh_code why) noexcept override {
    aborted_ = true;
    if (const auto queue = std::atomic_load(&queue_)) queue->abort(why);
  }

 protected:
  std::unique_ptr<Pending> issue(Kind kind, const Args& a) override {
    const auto& group = a.group ? *reinterpret_cast<std::shared_ptr<const Group>*>(a.group) : world_;
    const Call call = read(kind, a, group->me, group->size());
    if (group->size() == 1) {
      alone(call);
      return nullptr;
    }
    auto operation = queue_->issue(group, call, a.timeout_ns == 0 ? timeout_ns_ : a.timeout_ns);
    return std::make_unique<GlooPending>(queue_, std::move(operation));
  }

 private:
  // Ranks on one machine need no network.
  std::string choose_interface(const lh_env& env, std::string& address) const {
    std::string name = options_.interface, source = "the option `interface`";
    if (const char* variable = std::getenv("GLOO_SOCKET_IFNAME"); name.empty() && variable) {
      name = std::string(variable).substr(0, std::string(variable).find(','));
      source = "the environment's GLOO_SOCKET_IFNAME";
    }
    if (!name.empty()) check_interface(name, source);
    else if (env.local_world_size == env.world_size) address = "127.0.0.1";
    else
      address = address_towards(std::string(lhost::view(env.master_addr)), static_cast<int>(env.master_port));
    return name;
  }

  // Many a machine knows its own name as 127.0.1.1, which is of no use to the others. The machine of rank 0 asks node 1 for
  // its address, and takes the one of its own from which the way leads there.
  static void leave_loopback(const lh_env& env, const Rendezvous& r, std::string& address) {
    const std::string key = r.prefix + "/node1";
    if (env.node_rank == 1 && env.local_rank == 0)
      r.board->set(key, address_towards(r.place.host, r.place.port));
    if (is_loopback(address)) address = address_towards(r.board->get(key), r.place.port);
  }

  // All connections, and an exchange over them: afterwards nobody needs rank 0's board any more.
  void connect(const lh_env& env, const Rendezvous& r, const std::string& interface, std::string address) {
    CrossMemoryLink* neighbours = nullptr;
    try {
      if (env.num_nodes > 1) leave_loopback(env, r, address);
      auto link = std::make_unique<CrossMemoryLink>(
          open_link(*r.board, r.prefix + "/gloo", r.place, interface, address, r.deadline.left()),
          options_.cross_memory);
      neighbours = link.get();
      std::atomic_store(&queue_, std::make_shared<Queue>(std::move(link), options_.order == Order::backend));
    } catch (const std::exception& e) {
      throw lhost::Error(r.deadline.passed() ? LH_DEADLINE : LH_UNAVAILABLE,
                         "the ranks have met, but cannot connect to each other over " +
                             (interface.empty() ? address : interface) + ": " + short_text(e.what()) +
                             "; the option `interface` chooses another of " + interfaces());
    }
    if (aborted_) queue_->abort(LH_CANCELLED);
    introduce(*neighbours, r.deadline);
  }

  // Who can read whose memory. Every rank takes part, also one that will not be read.
  void introduce(CrossMemoryLink& link, const Deadline& deadline) {
    const size_t n = world_->size();
    std::vector<CrossMemoryLink::Card> cards(n);
    exchange(Kind::all_gather, &link.card(), cards.data(), sizeof cards[0], deadline);
    const std::vector<uint8_t> mine = link.can_read(cards);
    std::vector<uint8_t> theirs(n);
    exchange(Kind::all_to_all, mine.data(), theirs.data(), 1, deadline);
    link.connect(cards, mine, theirs);
    if (const auto near = link.near(); near.size() > 1)
      lhost::log(LH_LOG_DEBUG, "ranks " + lhost_collective::list(near) + " read each other's memory");
  }
  void exchange(Kind kind, const void* in, void* out, size_t bytes, const Deadline& deadline) {
    Call c;
    c.kind = kind;
    c.count = bytes;
    c.in = static_cast<char*>(const_cast<void*>(in));
    c.out = static_cast<char*>(out);
    queue_->wait(queue_->issue(world_, c, std::chrono::nanoseconds(deadline.left()).count()), -1);
  }

  const Options options_;
  std::atomic<bool> aborted_{false};
  int64_t timeout_ns_ = -1;
  int groups_ = 0;
  std::shared_ptr<const Group> world_;
  std::shared_ptr<Queue> queue_;  // NULL: alone
};

}  // namespace
}  // namespace lhost_gloo

LHOST_SINGLE_PLUGIN(::lhost::CollectiveKind, LH_COLLECTIVE_KIND, lhost_gloo::Gloo, lhost_gloo::Options,
                    "gloo", "0.1.0", TORCH_VERSION, 0)
