// host/train/ranks.hpp - the other ranks of this run: what the host itself exchanges with them, and the collective that
// the strategy gets. With one rank everything here is done on the spot. [train]
#pragma once
#include "kinds/component.hpp"
#include "train/checked_collective.hpp"
#include "train/engine.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lhost {

struct MeetOptions {
  int listen_fd = -1;  // rank 0's, when somebody has bound the port already
  double timeout_s = 600, connect_timeout_s = 300;
  bool check = false;  // compare every call over the ranks
};

class Ranks {
 public:
  Ranks(const Engine&, lh_run*);
  ~Ranks();
  Ranks(const Ranks&) = delete;

  // Waits for the other ranks. The collective lives as long as this.
  void meet(const Collective&, const lh_env&, const MeetOptions&);

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool first() const { return rank_ == 0; }
  const lh_collective_v0& table() const;  // never none: with one rank the collective of one
  lh_collective* self() const;

  void all_reduce(lh_tensor* inout, int32_t op);
  void broadcast(lh_tensor* inout, int64_t root);
  // What each rank gave, in rank order.
  std::vector<std::string> gather(std::string_view mine);
  // What rank 0 gave. patient: it may be busy for longer than the collective's time limit.
  std::string broadcast(std::string_view of_rank_0, bool patient = false);
  void abort(lh_code why) noexcept;  // [any]

 private:
  lh_tensor* bytes(size_t which, int64_t n);
  lh_tensor* numbers(size_t which, int64_t n);
  void call(lh_collective_fn, lh_tensor* in, lh_tensor* out, int32_t op, int64_t root, bool patient);

  const Engine& engine_;
  lh_run* run_;
  const Collective* collective_ = nullptr;
  std::unique_ptr<CheckedCollective> checked_;
  int64_t rank_ = 0, size_ = 1;
  bool aborted_ = false;
  lh_tensor* kept_[4] = {};  // scratch: bytes in, out; numbers in, out
  int64_t room_[4] = {};
};

}  // namespace lhost
