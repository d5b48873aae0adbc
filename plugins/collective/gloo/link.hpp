// link.hpp - what the plugin needs of c10d, without its headers: a board of keys at which the ranks meet, and links that
// carry messages between them. gloo.cpp implements both.
#pragma once
#include "../common/call.hpp"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

namespace lhost_gloo {

using Milliseconds = std::chrono::milliseconds;

// Keys and values that all ranks see. Every call throws if rank 0, who keeps them, is gone.
class Board {
 public:
  virtual ~Board() = default;
  virtual int64_t add(const std::string& key, int64_t n) = 0;  // the new value
  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual void set_once(const std::string& key, const std::string& value) = 0;  // the first value stays
  virtual bool has(const std::string& key) = 0;
  virtual std::string get(const std::string& key) = 0;  // blocks until it is there
};

// The tags of a group of ranks: its own base, plus the step of a call (0, 1), a send or receive, or the step again for the
// answer to an offer (cross_memory.hpp).
constexpr int kPairTag = 2, kAnswerTag = 3, kTagsPerGroup = 5;

struct LinkError : std::runtime_error {
  enum class Why { interrupted, lost, late } why;
  LinkError(Why w, const std::string& text) : std::runtime_error(text), why(w) {}
};

// The messages of one operation. One thread at a time.
class Batch {
 public:
  virtual ~Batch() = default;
  // Posts a message and returns its number. Messages of one tag between two ranks arrive in the order of posting. A send
  // moves when its receive is posted.
  virtual size_t send(int peer, int tag, const void* data, size_t bytes) = 0;
  virtual size_t recv(int peer, int tag, void* data, size_t bytes) = 0;
  virtual void wait(size_t number) = 0;  // throws LinkError
  virtual void clear() noexcept = 0;     // forgets all: no byte is touched afterwards
  // After an error: the peers of messages that have not arrived; of those whose connection broke.
  virtual std::vector<int64_t> unanswered() = 0;
  virtual std::vector<int64_t> broken() = 0;
};

// What a rank says to the others before it closes its connections: why, and who is to blame in its eyes (-1: unknown).
struct Farewell {
  int32_t code = 0;  // LH_OK: it said nothing
  int32_t culprit = -1;
};

class Link {
 public:
  virtual ~Link() = default;
  virtual std::unique_ptr<Batch> batch() = 0;
  // One of c10d's own algorithms over all ranks; blocks. Sum in place of an average.
  virtual void native(const lhost_collective::Call&, Milliseconds timeout) = 0;
  virtual void say(const Farewell&) noexcept = 0;          // to everyone who is still there; [any]
  virtual Farewell last_words(int64_t peer) noexcept = 0;  // of a peer whose connection broke
  virtual void interrupt() noexcept = 0;  // every wait ends, now and later; peers notice nothing; [any]
  virtual void close() noexcept = 0;      // breaks all connections, for the peers to see; [any]
};

struct Place {
  std::string host;  // of rank 0
  int port = 0;
  bool serves = false;  // the board is this process's, on listen_fd
  int listen_fd = -1;   // a listening socket, taken over
  int rank = 0, size = 1;
};
std::unique_ptr<Board> open_board(const Place&, Milliseconds timeout);
// interface: a network interface by name, or empty: the one that has the address.
std::unique_ptr<Link> open_link(Board&, const std::string& prefix, const Place&, const std::string& interface,
                                const std::string& address, Milliseconds timeout);

// c10d's and gloo's messages end in a stack and start with a place in their sources.
std::string short_text(const char* what);

}  // namespace lhost_gloo
