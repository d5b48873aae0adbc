// host/train/feed.hpp - a stage's stream of batches: the data component writes where the model reads.
//
// The feed owns the batch tensors. With threads = 0 a batch is fetched when it is asked for; with n threads up to
// 2 n batches are fetched ahead, in order, into a ring of slots. Tensors are made and given up on the train thread
// only; workers see plain memory. A buffer that somebody still holds (a model that kept a batch) is left to them.
#pragma once
#include "kinds/component.hpp"
#include "train/engine.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lhost {

struct FeedOptions {
  int32_t split = 0;        // LH_SPLIT_*
  int64_t batch_size = 32;  // of this rank
  bool drop_last = false;
  int32_t threads = 0;
  int64_t rank = 0, ranks = 1;  // this rank reads rows [rank, rank + 1) * batch_size of each global batch
  lh_dtype input{};             // floating-point fields are cast to it; bits 0 = as they are
};

class Feed {
 public:
  // `fields` live as long as the data component.
  Feed(const Data&, const Engine&, lh_run*, const FeedOptions&, const lh_field* fields, uint32_t n_fields);
  ~Feed();
  Feed(const Feed&) = delete;

  // The order of one pass; `first` batches are skipped, at most `limit` batches are given.
  void start(std::vector<int64_t> order, int64_t epoch, int64_t first, int64_t limit);
  int64_t batches() const { return batches_; }  // of the whole pass, limit applied
  int64_t total_rows() const;                   // of the whole pass, over all ranks
  int64_t global_rows(int64_t batch) const;     // over all ranks, of one batch
  static int64_t count_batches(int64_t samples, const FeedOptions&);

  // The next batch, or NULL after the last one. Lent until the next call.
  const lh_batch* next();
  void stop();  // ends the pass; workers become idle

 private:
  struct Slot {
    std::vector<lh_tensor*> buffers, shorter, cast;
    std::vector<void*> memory;
    int64_t batch = -1, rows = 0, counted = 0;
    bool ready = false;
    lh_status error = nullptr;
  };
  struct Share {
    int64_t first, rows, counted;
  };
  Share share(int64_t batch) const;
  void allocate(Slot&, size_t field);
  void prepare(Slot&, int64_t batch);
  lh_status fetch(const Slot&) const;
  void dispatch();
  void work();
  void lend(Slot&);
  void take_back();

  const Data& data_;
  const Engine& engine_;
  lh_run* run_;
  FeedOptions options_;
  std::vector<lh_field> fields_;
  std::vector<lh_str> names_;
  std::vector<bool> casts_;
  std::vector<lh_tensor*> lent_;
  lh_batch batch_{};
  Slot* current_ = nullptr;

  std::vector<int64_t> order_;
  int64_t epoch_ = 0, batches_ = 0, next_ = 0, dispatched_ = 0;

  std::vector<Slot> slots_;  // batch b lives in slot b % size
  std::mutex mutex_;         // guards queue_, stopping_, busy_, Slot::ready and Slot::error
  std::condition_variable wake_, done_;
  std::deque<Slot*> queue_;
  int busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace lhost
