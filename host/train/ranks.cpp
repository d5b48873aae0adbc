#include "train/ranks.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstring>

namespace lhost {
namespace {

constexpr lh_device kHere = {LH_DEVICE_CPU, 0};

char* memory(const Engine& engine, lh_tensor* t) {
  lh_view v{};
  check(engine.tensor.view(t, &v));
  return static_cast<char*>(v.data) + v.byte_offset;
}

// A tensor's first n elements; given back at the end of the statement's block.
class Part {
 public:
  Part(const Engine& engine, lh_tensor* t, int64_t n) : engine_(engine) {
    check(engine.tensor.narrow(t, 0, n, &part_));
  }
  ~Part() { engine_.tensor.release(part_); }
  Part(const Part&) = delete;
  operator lh_tensor*() const { return part_; }

 private:
  const Engine& engine_;
  lh_tensor* part_ = nullptr;
};

}  // namespace

Ranks::Ranks(const Engine& engine, lh_run* run) : engine_(engine), run_(run) {}

Ranks::~Ranks() {
  for (lh_tensor* t : kept_) engine_.tensor.release(t);
}

void Ranks::meet(const Collective& collective, const lh_env& env, const MeetOptions& o) {
  rank_ = env.rank;
  size_ = env.world_size;
  if (alone()) return;
  collective_ = &collective;
  const lh_collective_init init{sizeof init, o.listen_fd, &env, static_cast<int64_t>(o.timeout_s * 1e9),
                                static_cast<int64_t>(o.connect_timeout_s * 1e9)};
  check(collective->init(collective.self(), run_, &init));
  if (o.check) checked_ = std::make_unique<CheckedCollective>(engine_, run_, collective, size_);
}

const lh_collective_v0& Ranks::table() const {
  return checked_ ? checked_->table() : collective_ ? collective_->table() : collective_of_one();
}
lh_collective* Ranks::self() const {
  return checked_ ? checked_->self() : collective_ ? collective_->self() : collective_of_one_self();
}

void Ranks::call(lh_collective_fn f, lh_tensor* in, lh_tensor* out, int32_t op, int64_t root, bool patient) {
  const lh_collective_args a{sizeof a, op, nullptr, in, out, root, nullptr, patient ? -1 : 0};
  lh_work* work = nullptr;
  check(f(self(), &a, &work));
  finish(work);
}

void Ranks::all_reduce(lh_tensor* t, int32_t op) {
  if (!alone()) call(table().all_reduce, t, t, op, 0, false);
}
void Ranks::broadcast(lh_tensor* t, int64_t root) {
  if (!alone()) call(table().broadcast, t, t, 0, root, false);
}

lh_tensor* Ranks::bytes(size_t which, int64_t n) {
  if (room_[which] < n) {
    engine_.tensor.release(std::exchange(kept_[which], nullptr));
    const int64_t shape[] = {room_[which] = std::max<int64_t>(n, 4096)};
    check(engine_.tensor.empty(run_, kHere, {LH_DT_UINT, 8, 1}, shape, 1, 0, &kept_[which]));
  }
  return kept_[which];
}
lh_tensor* Ranks::numbers(size_t which, int64_t n) {
  if (room_[which] < n) {
    const int64_t shape[] = {room_[which] = n};
    check(engine_.tensor.empty(run_, kHere, {LH_DT_INT, 64, 1}, shape, 1, 0, &kept_[which]));
  }
  return kept_[which];
}

std::vector<std::string> Ranks::gather(std::string_view mine) {
  if (alone()) return {std::string(mine)};
  lh_tensor *length = numbers(2, 1), *lengths = numbers(3, size_);
  auto n = static_cast<int64_t>(mine.size());
  std::memcpy(memory(engine_, length), &n, sizeof n);
  call(table().all_gather, length, lengths, 0, 0, false);
  std::vector<int64_t> all(static_cast<size_t>(size_));
  std::memcpy(all.data(), memory(engine_, lengths), all.size() * sizeof(int64_t));
  const int64_t longest = *std::max_element(all.begin(), all.end());
  std::vector<std::string> out(all.size());
  if (longest == 0) return out;
  const Part in(engine_, bytes(0, longest), longest),
      texts(engine_, bytes(1, longest * size_), longest * size_);
  char* own = memory(engine_, in);
  std::memcpy(own, mine.data(), mine.size());
  std::memset(own + mine.size(), 0, static_cast<size_t>(longest) - mine.size());
  call(table().all_gather, in, texts, 0, 0, false);
  const char* p = memory(engine_, texts);
  for (size_t r = 0; r < out.size(); ++r)
    out[r].assign(p + r * static_cast<size_t>(longest), static_cast<size_t>(all[r]));
  return out;
}

std::string Ranks::broadcast(std::string_view of_rank_0, bool patient) {
  if (alone()) return std::string(of_rank_0);
  lh_tensor* length = numbers(2, 1);
  auto n = static_cast<int64_t>(of_rank_0.size());
  std::memcpy(memory(engine_, length), &n, sizeof n);
  call(table().broadcast, length, length, 0, 0, patient);
  std::memcpy(&n, memory(engine_, length), sizeof n);
  std::string out(static_cast<size_t>(n), '\0');
  if (n == 0) return out;
  const Part text(engine_, bytes(0, n), n);
  if (first()) std::memcpy(memory(engine_, text), of_rank_0.data(), of_rank_0.size());
  call(table().broadcast, text, text, 0, 0, false);
  std::memcpy(out.data(), memory(engine_, text), out.size());
  return out;
}

void Ranks::abort(lh_code why) noexcept {
  if (!collective_ || std::exchange(aborted_, true)) return;
  if ((*collective_)->abort) (*collective_)->abort(collective_->self(), why);
}

}  // namespace lhost
