// host/launch/rank_page.hpp - what a rank is doing and how it failed, readable by its supervisor even after a SIGKILL.
// One memfd with a page per rank: nothing has a name, so nothing is left behind. The rank alone writes its page, with
// relaxed stores that cost the step path nothing; a failure is set once. A process without a supervisor has a page of
// its own, so that nobody who writes one has a branch. [any] but add_operation, which is [main].
#pragma once
#include <lhost/step.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lhost {

enum class RankPhase : int32_t { starting, meeting, running, saving, ending, ended };
const char* phase_name(RankPhase);

struct RankFailure {
  lh_code code = LH_OK;
  int32_t exit_code = 1;         // what the process is going to exit with
  int64_t time_ns = 0;           // CLOCK_MONOTONIC, set by fail()
  std::string message;           // 8 KiB of it are kept
  std::string component, where;  // who raised it, in which function
  std::string place;             // "epoch 0, batch 17, step 3"
};

struct RankState {  // a copy of a page
  RankPhase phase = RankPhase::starting;
  int32_t stage = LH_STAGE_FIT;
  int64_t epoch = 0, batch = 0, global_step = 0;
  std::string operation;  // "model:mlp (training_step)"; "collective:..." waits for other ranks; empty: none
  std::optional<RankFailure> failure;
};

namespace detail {

constexpr int32_t kOperations = 128;
struct RankLayout {  // zero-filled memory is a valid page
  std::atomic<int32_t> phase, stage, operation;
  std::atomic<int32_t> failed;  // 0 no, 1 being written, 2 yes
  std::atomic<int64_t> epoch, batch, global_step;
  std::atomic<int32_t> n_operations;
  lh_code code;
  int32_t exit_code, rsvd0;
  int64_t time_ns;
  char component[128], where[128], place[256], message[8192];
  char operations[kOperations][64];
};
static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<int32_t>::is_always_lock_free);
constexpr size_t kRankPageBytes = (sizeof(RankLayout) + 4095) / 4096 * 4096;

}  // namespace detail

// A handle; the memory belongs to RankPages.
class RankPage {
 public:
  explicit RankPage(detail::RankLayout* page) : page_(page) {}

  // ---- the rank
  void set_phase(RankPhase v) noexcept { put(page_->phase, static_cast<int32_t>(v)); }
  void set_stage(int32_t v) noexcept { put(page_->stage, v); }  // LH_STAGE_*
  void set_epoch(int64_t v) noexcept { put(page_->epoch, v); }
  void set_batch(int64_t v) noexcept { put(page_->batch, v); }
  void set_global_step(int64_t v) noexcept { put(page_->global_step, v); }
  void set_operation(int32_t index) noexcept { put(page_->operation, index); }
  // The index of a name from now on, the same for the same name; 0, "none", when there is no room for it.
  int32_t add_operation(std::string_view name) noexcept;
  // The first failure stays; says whether it was this one.
  bool fail(const RankFailure&) noexcept;

  // ---- the supervisor: trusts nothing that it reads
  RankState read() const;

 private:
  template <class T>
  static void put(std::atomic<T>& a, T v) noexcept {
    a.store(v, std::memory_order_relaxed);
  }
  detail::RankLayout* page_;
};

class RankPages {
 public:
  static RankPages create(int64_t ranks);  // a supervisor's; closes on exec
  static RankPages attach(int fd,
                          int64_t index);  // a rank's: page `index` alone, as at(0); takes the descriptor
  static RankPages alone();                // of a process without a supervisor
  RankPages(RankPages&& o) noexcept
      : memory_(std::exchange(o.memory_, nullptr)),
        bytes_(std::exchange(o.bytes_, 0)),
        fd_(std::exchange(o.fd_, -1)) {}
  RankPages& operator=(RankPages&& o) noexcept {
    std::swap(memory_, o.memory_), std::swap(bytes_, o.bytes_), std::swap(fd_, o.fd_);
    return *this;
  }
  ~RankPages();

  RankPage at(int64_t i) const;
  int fd() const { return fd_; }

 private:
  RankPages(void* memory, size_t bytes, int fd) : memory_(memory), bytes_(bytes), fd_(fd) {}
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  int fd_ = -1;
};

}  // namespace lhost
