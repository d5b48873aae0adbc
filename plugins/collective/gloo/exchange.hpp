// exchange.hpp - how each collective is made of messages between two ranks. Numbers are added in rank order, whatever the
// size, so all_reduce equals reduce_scatter and all_gather bit for bit. Scratch memory is kept from call to call.
#pragma once
#include "link.hpp"

#include <vector>

namespace lhost_gloo {

struct Group {
  std::vector<int> ranks;  // of the world, in the order of the group
  size_t me = 0;
  int tag = 0;  // the base of kTagsPerGroup
  size_t size() const { return ranks.size(); }
  bool world = false;
};

// A message that the caller's thread sends itself; an all_reduce of it is one exchange of everything.
constexpr size_t kSmall = 16 * 1024;

// Everything is posted by begin. Of calls with a second step that one is posted by finish, and messages of one tag are
// paired in the order of posting: finish has to come in the order of issue then.
bool is_one_step(const lhost_collective::Call&);

class Exchange {
 public:
  explicit Exchange(std::unique_ptr<Batch> batch) : batch_(std::move(batch)) {}
  void begin(const Group&, const lhost_collective::Call&);  // posts what can be posted; does not block
  void finish();                                            // blocks until the call is complete
  void clear() noexcept;                                    // done with these buffers, after an error too
  Batch& batch() { return *batch_; }

 private:
  struct Part {  // in bytes
    size_t start, bytes;
  };
  struct Piece {
    size_t start, bytes;
    std::vector<size_t> arrivals;  // one message of each rank; of this rank's place nothing
  };

  void send(size_t r, int tag, const void* data, size_t bytes);
  size_t recv(size_t r, int tag, void* data, size_t bytes);
  char* scratch(size_t bytes);
  Part part(size_t r) const;

  void begin_whole();
  void begin_parts();
  void begin_all_to_all();
  void finish_whole();
  void finish_parts();
  void finish_all();
  void reduce_from(const std::vector<const void*>&, void* out, size_t bytes) const;
  template <class F>
  void others(
      F f) const;  // each other rank of the group, starting behind this one: nobody is everyone's first

  std::unique_ptr<Batch> batch_;
  const Group* group_ = nullptr;
  lhost_collective::Call call_;
  std::vector<size_t> messages_;  // all of this call
  std::vector<Piece> pieces_;     // of this rank's part, to be reduced as they arrive
  std::vector<const void*> sources_;
  std::unique_ptr<char[]> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace lhost_gloo
