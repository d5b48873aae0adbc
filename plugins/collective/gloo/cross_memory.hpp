// cross_memory.hpp - large messages between ranks of one machine: the receiver copies straight out of the sender's memory
// (process_vm_readv, Linux's cross-memory attach), and the connection carries only where to find it and that it was taken.
// One copy in place of a journey through the network stack: no shared memory to size or to leave behind.
//
// A decorator of another link. Who can read whom is found out once, at the start; for all else, and where the system does
// not permit it, messages go the other link's way. No c10d.
#pragma once
#include "link.hpp"

#include <array>
#include <atomic>
#include <vector>

namespace lhost_gloo {

class CrossMemoryLink final : public Link {
 public:
  // What another rank must know to read this one's memory. Sent as bytes.
  struct Card {
    char machine[96];  // equal: the same kernel, and the same numbers of processes; empty: does not take part
    int64_t pid;
    uint64_t token_at;
    std::array<uint64_t, 2> token;
  };

  CrossMemoryLink(std::unique_ptr<Link> other, bool takes_part);
  ~CrossMemoryLink() override;

  // The start, in this order, with the results of all ranks: cards; for each of them whether this rank can read it; and
  // what the others have answered.
  const Card& card() const { return card_; }
  std::vector<uint8_t> can_read(const std::vector<Card>&) const;
  void connect(const std::vector<Card>&, const std::vector<uint8_t>& mine,
               const std::vector<uint8_t>& theirs);
  std::vector<int64_t> near() const;  // the ranks that read this one, and are read

  std::unique_ptr<Batch> batch() override;
  void native(const lhost_collective::Call& c, Milliseconds timeout) override { other_->native(c, timeout); }
  void say(const Farewell& f) noexcept override { other_->say(f); }
  Farewell last_words(int64_t peer) noexcept override { return other_->last_words(peer); }
  // From now on what others read of this process is void: its buffers may be used for something else.
  void interrupt() noexcept override;
  void close() noexcept override { other_->close(); }

 private:
  using Token = std::array<std::atomic<uint64_t>, 2>;
  const std::unique_ptr<Link> other_;
  Token token_{};
  Card card_{};
  std::vector<Card> peers_;  // by rank; the far ones have no machine
};

}  // namespace lhost_gloo
