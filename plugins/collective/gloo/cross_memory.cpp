#include "cross_memory.hpp"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>

namespace lhost_gloo {
namespace {

using Card = CrossMemoryLink::Card;

// Below, one journey is shorter than the offer and its answer; above what a caller's own thread posts (kSmall), for whom a
// wait in between would be one too many.
constexpr size_t kLarge = 64 * 1024;
// One system call moves less than 2 GiB, and is not interrupted.
constexpr size_t kMost = size_t{256} << 20;

// What a send carries in place of its data, and the receiver's answer.
struct Offer {
  uint64_t at = 0;
  uint8_t taken = 0;
};

// Processes with the same text have the same kernel and see each other under the same numbers.
std::string this_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64];
  const ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space);
  return boot.empty() || n <= 0 ? "" : boot + " " + std::string(space, static_cast<size_t>(n));
}

// Reads, and then looks whether what was read was still meant to be: the token is wiped before the memory is used for
// something else, and another process under this number has another one.
bool read_memory(const Card& of, uint64_t at, void* to, size_t bytes) {
  std::array<uint64_t, 2> token{};
  for (size_t done = 0; done < bytes || bytes == 0;) {
    const size_t n = std::min(bytes - done, kMost);
    const iovec here[] = {{static_cast<char*>(to) + done, n}, {&token, sizeof token}};
    const iovec there[] = {{reinterpret_cast<void*>(at + done), n},
                           {reinterpret_cast<void*>(of.token_at), sizeof token}};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(of.pid), here, 2, there, 2, 0);
    if (got != static_cast<ssize_t>(n + sizeof token) || token != of.token) return false;
    done += n;
    if (bytes == 0) break;
  }
  return true;
}

class CrossMemoryBatch final : public Batch {
 public:
  CrossMemoryBatch(std::unique_ptr<Batch> other, const std::vector<Card>& peers)
      : other_(std::move(other)), peers_(peers) {}

  size_t send(int peer, int tag, const void* data, size_t bytes) override {
    if (!crosses(peer, tag, bytes)) return add({other_->send(peer, tag, data, bytes)});
    offers_.push_back({reinterpret_cast<uint64_t>(data)});
    Offer& offer = offers_.back();
    Message m{other_->send(peer, tag, &offer.at, sizeof offer.at)};
    m.what = What::given;
    m.answer = other_->recv(peer, answer_tag(tag), &offer.taken, sizeof offer.taken);
    return add(m);
  }
  size_t recv(int peer, int tag, void* data, size_t bytes) override {
    if (!crosses(peer, tag, bytes)) return add({other_->recv(peer, tag, data, bytes)});
    offers_.emplace_back();
    Message m{other_->recv(peer, tag, &offers_.back().at, sizeof(Offer::at))};
    m.what = What::taken;
    m.peer = peer;
    m.tag = tag;
    m.data = data;
    m.bytes = bytes;
    m.offer = &offers_.back();
    return add(m);
  }

  void wait(size_t number) override {
    Message& m = messages_[number];
    if (m.done) return;
    other_->wait(m.number);
    if (m.what == What::given) other_->wait(m.answer);
    if (m.what == What::taken) take(m);
    m.done = true;
  }

  void clear() noexcept override {
    other_->clear();
    messages_.clear();
    offers_.clear();
  }
  std::vector<int64_t> unanswered() override { return other_->unanswered(); }
  std::vector<int64_t> broken() override { return other_->broken(); }

 private:
  enum class What : uint8_t { passed_on, given, taken };
  struct Message {
    size_t number;  // in the other batch
    What what = What::passed_on;
    bool done = false;
    int peer = 0, tag = 0;
    size_t answer = 0;
    void* data = nullptr;
    size_t bytes = 0;
    Offer* offer = nullptr;
  };

  // Both sides come to the same answer. A send or receive of its own is not complete when its answer is awaited in the
  // wrong order: two ranks that both send first and receive then would wait for each other.
  bool crosses(int peer, int tag, size_t bytes) const {
    return bytes >= kLarge && tag % kTagsPerGroup != kPairTag && static_cast<size_t>(peer) < peers_.size() &&
           peers_[static_cast<size_t>(peer)].machine[0] != 0;
  }
  static int answer_tag(int tag) { return tag + kAnswerTag; }

  size_t add(const Message& m) {
    messages_.push_back(m);
    return messages_.size() - 1;
  }

  void take(Message& m) {
    const Card& peer = peers_[static_cast<size_t>(m.peer)];
    if (!read_memory(peer, m.offer->at, m.data, m.bytes)) await_its_end(m);
    m.offer->taken = 1;
    other_->wait(other_->send(m.peer, answer_tag(m.tag), &m.offer->taken, sizeof m.offer->taken));
  }
  // It has given up, or is no more: what there is to know comes over the connection, where nothing else comes.
  void await_its_end(const Message& m) {
    other_->wait(other_->recv(m.peer, m.tag, &m.offer->at, sizeof m.offer->at));
    throw LinkError(LinkError::Why::lost, "its memory cannot be read");
  }

  const std::unique_ptr<Batch> other_;
  const std::vector<Card>& peers_;
  std::vector<Message> messages_;
  std::deque<Offer> offers_;  // whose addresses stay
};

}  // namespace

CrossMemoryLink::CrossMemoryLink(std::unique_ptr<Link> other, bool takes_part) : other_(std::move(other)) {
  static_assert(sizeof(Token) == sizeof card_.token, "read as bytes");
  std::random_device random;
  for (size_t i = 0; i < token_.size(); ++i)
    token_[i] = card_.token[i] = uint64_t{random()} << 32 | uint64_t{random()} | 1;
  card_.pid = getpid();
  card_.token_at = reinterpret_cast<uint64_t>(&token_);
  const std::string machine = takes_part ? this_machine() : "";
  if (machine.size() < sizeof card_.machine) std::memcpy(card_.machine, machine.data(), machine.size());
  // Where the Yama module lets a process be read only by those that it names. Nobody knows the others' numbers yet, and one
  // name is all it takes: MPI's and UCX's transports name everyone as well.
  if (takes_part) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

CrossMemoryLink::~CrossMemoryLink() {
  for (auto& word : token_) word = 0;
}

std::vector<uint8_t> CrossMemoryLink::can_read(const std::vector<Card>& cards) const {
  std::vector<uint8_t> out;
  for (const Card& c : cards) {
    const bool together =
        card_.machine[0] != 0 && std::memcmp(c.machine, card_.machine, sizeof c.machine) == 0;
    out.push_back(together && read_memory(c, 0, nullptr, 0));
  }
  return out;
}

void CrossMemoryLink::connect(const std::vector<Card>& cards, const std::vector<uint8_t>& mine,
                              const std::vector<uint8_t>& theirs) {
  peers_ = cards;
  for (size_t r = 0; r < peers_.size(); ++r)
    if (!mine[r] || !theirs[r]) peers_[r].machine[0] = 0;
}

std::vector<int64_t> CrossMemoryLink::near() const {
  std::vector<int64_t> out;
  for (size_t r = 0; r < peers_.size(); ++r)
    if (peers_[r].machine[0]) out.push_back(static_cast<int64_t>(r));
  return out;
}

std::unique_ptr<Batch> CrossMemoryLink::batch() {
  return std::make_unique<CrossMemoryBatch>(other_->batch(), peers_);
}

void CrossMemoryLink::interrupt() noexcept {
  for (auto& word : token_) word = 0;
  other_->interrupt();
}

}  // namespace lhost_gloo
