#include "train/feed.hpp"

#include "train/settings.hpp"

#include <algorithm>

namespace lhost {

Feed::Feed(const Data& data, const Engine& engine, lh_run* run, const FeedOptions& options,
           const lh_field* fields, uint32_t n_fields)
    : data_(data), engine_(engine), run_(run), options_(options), fields_(fields, fields + n_fields) {
  for (const lh_field& f : fields_) {
    names_.push_back(f.name);
    casts_.push_back(options_.input.bits && f.dtype.code == LH_DT_FLOAT &&
                     f.dtype.bits != options_.input.bits);
  }
  const size_t n = options_.threads > 0 ? static_cast<size_t>(2 * options_.threads + 1) : 1;
  slots_.resize(n);
  for (Slot& s : slots_) {
    s.buffers.assign(n_fields, nullptr);
    s.shorter.assign(n_fields, nullptr);
    s.cast.assign(n_fields, nullptr);
    s.memory.assign(n_fields, nullptr);
  }
  lent_.assign(n_fields, nullptr);
  batch_ = {sizeof batch_, n_fields, names_.data(), lent_.data(), 0, 0};
  for (int32_t i = 0; i < options_.threads; ++i) workers_.emplace_back([this] { work(); });
}

Feed::~Feed() {
  stop();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : workers_) t.join();
  for (Slot& s : slots_) {
    for (lh_tensor* t : s.buffers) engine_.tensor.release(t);
    for (lh_tensor* t : s.cast) engine_.tensor.release(t);
  }
}

int64_t Feed::count_batches(int64_t samples, const FeedOptions& o) {
  const int64_t per = o.batch_size * o.ranks;
  return o.drop_last ? samples / per : (samples + per - 1) / per;
}

void Feed::start(std::vector<int64_t> order, int64_t epoch, int64_t first, int64_t limit) {
  stop();
  order_ = std::move(order);
  epoch_ = epoch;
  batches_ = std::min(limit, count_batches(static_cast<int64_t>(order_.size()), options_));
  next_ = dispatched_ = first;
  if (!workers_.empty()) dispatch();
}

int64_t Feed::global_rows(int64_t batch) const {
  const int64_t per = options_.batch_size * options_.ranks;
  return std::min(per, static_cast<int64_t>(order_.size()) - batch * per);
}

int64_t Feed::total_rows() const {
  if (batches_ == 0) return 0;
  return (batches_ - 1) * options_.batch_size * options_.ranks + global_rows(batches_ - 1);
}

// A rank without rows in a short last batch reads one row that does not count, so that it takes part in every
// collective.
Feed::Share Feed::share(int64_t batch) const {
  const int64_t start = batch * options_.batch_size * options_.ranks, n = static_cast<int64_t>(order_.size());
  const int64_t first = std::min(start + options_.rank * options_.batch_size, n);
  const int64_t rows = std::min(options_.batch_size, n - first);
  if (rows > 0) return {first, rows, rows};
  return {start, 1, 0};
}

void Feed::allocate(Slot& s, size_t f) {
  engine_.tensor.release(s.buffers[f]);
  s.buffers[f] = nullptr;
  const lh_field& field = fields_[f];
  std::vector<int64_t> shape{options_.batch_size};
  shape.insert(shape.end(), field.shape, field.shape + field.ndim);
  check(engine_.tensor.empty(run_, {LH_DEVICE_CPU, 0}, field.dtype, shape.data(),
                             static_cast<uint32_t>(shape.size()), 0, &s.buffers[f]));
  lh_view v{};
  check(engine_.tensor.view(s.buffers[f], &v));
  s.memory[f] = static_cast<char*>(v.data) + v.byte_offset;
  if (!casts_[f]) return;
  engine_.tensor.release(s.cast[f]);
  s.cast[f] = nullptr;
  check(engine_.tensor.empty(run_, {LH_DEVICE_CPU, 0}, options_.input, shape.data(),
                             static_cast<uint32_t>(shape.size()), 0, &s.cast[f]));
}

void Feed::prepare(Slot& s, int64_t batch) {
  for (size_t f = 0; f < fields_.size(); ++f)
    if (!s.buffers[f] || !engine_.tensor.unique(casts_[f] ? s.cast[f] : s.buffers[f])) [[unlikely]]
      allocate(s, f);
  const Share part = share(batch);
  s.batch = batch;
  s.rows = part.rows;
  s.counted = part.counted;
}

lh_status Feed::fetch(const Slot& s) const {
  try {
    return data_->fetch(data_.self(), options_.split, order_.data() + share(s.batch).first,
                        static_cast<uint64_t>(s.rows), epoch_, s.memory.data());
  } catch (...) {
    return make_status(LH_PLUGIN_FAULT, "data:" + data_.identity().name, "fetch",
                       "an exception left the plugin; this is a fault of the plugin");
  }
}

// Hand every free slot to the workers. Slots come free in order, so batches are fetched in order.
void Feed::dispatch() {
  // the slot of the batch that is lent stays with the model
  const int64_t end = std::min(batches_, next_ + static_cast<int64_t>(slots_.size()) - (current_ ? 1 : 0));
  while (dispatched_ < end) {
    Slot& s = slots_[static_cast<size_t>(dispatched_) % slots_.size()];
    prepare(s, dispatched_++);
    const std::lock_guard lock(mutex_);
    s.ready = false;
    queue_.push_back(&s);
    wake_.notify_one();
  }
}

void Feed::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    Slot* s = queue_.front();
    queue_.pop_front();
    ++busy_;
    lock.unlock();
    lh_status error = fetch(*s);
    lock.lock();
    --busy_;
    s->error = error;
    s->ready = true;
    done_.notify_all();
  }
}

const lh_batch* Feed::next() {
  take_back();
  if (next_ >= batches_) return nullptr;
  Slot& s = slots_[static_cast<size_t>(next_) % slots_.size()];
  if (workers_.empty()) {
    prepare(s, next_);
    ++next_;
    check(fetch(s));
  } else {
    dispatch();
    ++next_;
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&s] { return s.ready; });
    if (lh_status e = std::exchange(s.error, nullptr)) {
      lock.unlock();
      raise(e);
    }
  }
  lend(s);
  return &batch_;
}

void Feed::lend(Slot& s) {
  for (size_t f = 0; f < fields_.size(); ++f) {
    if (casts_[f]) check(engine_.ops.copy(s.cast[f], s.buffers[f]));
    lent_[f] = casts_[f] ? s.cast[f] : s.buffers[f];
    if (s.rows == options_.batch_size) continue;
    check(engine_.tensor.narrow(lent_[f], 0, s.rows, &s.shorter[f]));
    lent_[f] = s.shorter[f];
  }
  batch_.rows = s.rows;
  batch_.counted = s.counted;
  current_ = &s;
}

void Feed::take_back() {
  if (!current_) return;
  for (lh_tensor*& t : current_->shorter) {
    if (t) [[unlikely]]
      engine_.tensor.release(t);
    t = nullptr;
  }
  current_ = nullptr;
}

void Feed::stop() {
  take_back();
  std::unique_lock lock(mutex_);
  queue_.clear();
  done_.wait(lock, [this] { return busy_ == 0; });
  for (Slot& s : slots_)
    if (s.error) take(std::exchange(s.error, nullptr));
  batches_ = next_ = dispatched_ = 0;
}

}  // namespace lhost
