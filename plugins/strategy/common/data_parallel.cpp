#include "data_parallel.hpp"

namespace ddp {
namespace {

using lhost::check;
using lhost::Error;
using lhost::ParamId;
using lhost::detail::ops_service;
using lhost::detail::params_service;
using lhost::detail::tensor_service;

constexpr lh_device kHost = {LH_DEVICE_CPU, 0};
constexpr size_t kNamed = 5;  // parameters that an error lists

std::string some_of(const std::vector<std::string>& names) {
  std::string s;
  for (size_t i = 0; i < names.size() && i < kNamed; ++i) s += (i ? ", \"" : "\"") + names[i] + "\"";
  return names.size() > kNamed ? s + " and " + std::to_string(names.size() - kNamed) + " more" : s;
}

Owned narrow(lh_tensor* t, int64_t start, int64_t n) {
  lh_tensor* out = nullptr;
  check(tensor_service->narrow(t, start, n, &out));
  return Owned(out);
}

Owned host_tensor(lh_run* run, lh_dtype dtype, int64_t n) {
  lh_tensor* out = nullptr;
  check(tensor_service->empty(run, kHost, dtype, &n, 1, 0, &out));
  return Owned(out);
}

size_t bytes_of(const lh_view& v) {
  size_t n = v.dtype.bits / 8u;
  for (int32_t d = 0; d < v.ndim; ++d) n *= static_cast<size_t>(v.shape[d]);
  return n;
}
char* address(const lh_view& v) { return static_cast<char*>(v.data) + v.byte_offset; }

}  // namespace

// ---- once

void DataParallel::setup(lh_topology& t) {
  const uint32_t n = params_service->count(run());
  params_.resize(n);
  bool wide = true;  // 16-bit gradients could not carry the votes' numbers
  for (ParamId p = 0; p < n; ++p) {
    lh_param_info i{};
    i.size = sizeof i;
    check(params_service->info(run(), p, &i));
    Param& x = params_[p];
    x.name = std::string(lhost::view(i.name));
    x.trainable = i.flags == LH_P_TRAINABLE;
    x.dtype = i.dtype;
    x.bytes = i.numel * i.dtype.bits / 8;
    if (x.trainable && i.dtype.bits < 32) wide = false;
    if (i.flags & LH_P_BUFFER) buffers_.push_back(params_service->tensor(run(), p));
  }
  carries_votes_ = wide && votes();
  if (carries_votes_) t.flags |= LH_CARRIES_VOTES;
}

void DataParallel::plan(lhost::Plan& plan) {
  std::vector<ParamId> order = plan.all_parameters();
  std::reverse(order.begin(), order.end());  // about the order in which gradients come
  std::vector<std::vector<ParamId>> buckets = cut(order);
  for (size_t b = 0; b < buckets.size(); ++b)
    plan.gradients(buckets[b], b + 1 == buckets.size() ? tail() : 0);
  take(std::move(buckets));
}

// In `order`; a bucket ends when it is full, or the dtype changes.
std::vector<std::vector<ParamId>> DataParallel::cut(const std::vector<ParamId>& order) const {
  std::vector<std::vector<ParamId>> buckets;
  int64_t filled = 0, cap = o_.first_bucket.bytes;
  for (ParamId p : order) {
    const bool other = !buckets.empty() && params_[buckets.back()[0]].dtype.bits != params_[p].dtype.bits;
    if (buckets.empty() || other || filled >= cap) {
      if (!buckets.empty()) cap = o_.bucket_cap.bytes;
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(p);
    filled += params_[p].bytes;
  }
  return buckets;
}

// Behind the gradients of the last bucket: the votes, then how many ranks used each parameter.
int64_t DataParallel::tail() const {
  const int64_t votes = carries_votes_ ? view_of(this->votes()).shape[0] : 0;
  return votes + (exchanges_usage() ? static_cast<int64_t>(params_.size()) : 0);
}

void DataParallel::take(std::vector<std::vector<ParamId>> groups) {
  buckets_.clear();
  for (size_t b = 0; b < groups.size(); ++b) {
    buckets_.emplace_back();
    for (ParamId p : groups[b]) {
      params_[p].bucket = static_cast<uint32_t>(b);
      buckets_[b].expected += !params_[p].left_out;
    }
    buckets_[b].params = std::move(groups[b]);
  }
  tail_ = {};
}

// Every rank starts from the values of rank 0.
void DataParallel::params_ready(lhost::UnitId unit) {
  if (unit != lhost::all_units || world_size() == 1) return;
  std::vector<lh_tensor*> all;
  for (ParamId p = 0; p < params_.size(); ++p) {
    lh_param_info i{};
    i.size = sizeof i;
    check(params_service->info(run(), p, &i));
    if (!(i.flags & LH_P_ALIAS)) all.push_back(params_service->tensor(run(), p));
  }
  broadcast(all, 0).wait();
}

// ---- a micro-batch

void DataParallel::begin_micro(const lhost::Step& step) {
  ++micro_;
  last_micro_ = step.last_micro != 0;
  if (step.micro == 0) {
    used_ = 0;
    for (Param& p : params_) p.used = false;
    if (o_.broadcast_buffers) share_buffers();
  }
  if (!last_micro_) return;
  next_ = 0;
  for (Bucket& b : buckets_) b.missing = b.expected;
}

void DataParallel::grad_ready(ParamId id) {
  Param& p = params_[id];
  if (!p.used) ++used_;
  p.used = true;
  if (!last_micro_) return;
  if (!settled_) arrivals_.push_back(id);
  if (p.left_out)
    throw Error(LH_FAILED_PRECONDITION,
                "static_graph = true, but the parameter \"" + p.name +
                    "\" has a gradient, and had none in the first step; turn static_graph "
                    "off, and find_unused_parameters on");
  if (std::exchange(p.came, micro_) == micro_ && buckets_[p.bucket].missing == 0)
    throw Error(
        LH_FAILED_PRECONDITION,
        "the parameter \"" + p.name + "\" got a second gradient in one backward, after its bucket had left");
  --buckets_[p.bucket].missing;
  start_complete(false);
}

// In order: else the ranks' operations would not belong together.
void DataParallel::start_complete(bool all) {
  while (next_ < buckets_.size() && (all || buckets_[next_].missing == 0)) {
    lh_tensor* grad = params_service->full_grad(run(), static_cast<uint32_t>(next_));
    if (next_ + 1 == buckets_.size()) fill_tail();
    buckets_[next_].work = all_reduce({grad}, lhost::ReduceOp::avg);
    ++next_;
  }
}

// An average is asked for, a sum is wanted: what goes in is multiplied beforehand.
void DataParallel::fill_tail() {
  const int64_t n = tail();
  if (n == 0) return;
  lh_tensor* grad = params_service->full_grad(run(), static_cast<uint32_t>(buckets_.size() - 1));
  const int64_t length = view_of(grad).shape[0];
  const int64_t votes = n - (exchanges_usage() ? static_cast<int64_t>(params_.size()) : 0);
  if (!tail_) tail_ = narrow(grad, length - n, votes);
  const auto ranks = static_cast<double>(world_size());
  if (votes) check(ops_service->copy(tail_.get(), this->votes()));
  if (votes) check(ops_service->scale(tail_.get(), ranks));
  if (!exchanges_usage()) return;
  if (!usage_) usage_ = host_tensor(run(), {LH_DT_FLOAT, 64, 1}, static_cast<int64_t>(params_.size()));
  auto* used = reinterpret_cast<double*>(address(view_of(usage_.get())));
  for (size_t p = 0; p < params_.size(); ++p) used[p] = params_[p].used ? ranks : 0;
  check(ops_service->copy(narrow(grad, length - n + votes, n - votes).get(), usage_.get()));
}

void DataParallel::read_tail() {
  if (tail_ && carries_votes_) check(ops_service->copy(votes(), tail_.get()));
  if (exchanges_usage()) {
    lh_tensor* grad = params_service->full_grad(run(), static_cast<uint32_t>(buckets_.size() - 1));
    const auto n = static_cast<int64_t>(params_.size());
    check(ops_service->copy(usage_.get(), narrow(grad, view_of(grad).shape[0] - n, n).get()));
    const auto* ranks = reinterpret_cast<const double*>(address(view_of(usage_.get())));
    for (ParamId p = 0; p < params_.size(); ++p)
      if (params_[p].trainable && ranks[p] < 0.5) {
        check(params_service->grad_absent(run(), p));
        if (o_.static_graph) params_[p].left_out = true;
      }
  } else if (o_.static_graph) {
    for (ParamId p = 0; p < params_.size(); ++p)
      if (params_[p].left_out) check(params_service->grad_absent(run(), p));
  }
}

void DataParallel::after_backward(const lhost::Step&) {
  if (!last_micro_) return;
  check_usage();
  start_complete(true);
}

// With none at all the model has skipped the window: this rank gives zeros, and its vote says so.
void DataParallel::check_usage() {
  if (used_ == 0 || exchanges_usage()) return;
  std::vector<std::string> missing;
  for (const Param& p : params_)
    if (p.trainable && !p.used && !p.left_out) missing.push_back(p.name);
  if (missing.empty()) return;
  throw Error(LH_FAILED_PRECONDITION,
              std::to_string(missing.size()) +
                  " parameter(s) got no gradient, because the loss does not depend on "
                  "them: " +
                  some_of(missing) +
                  (o_.static_graph
                       ? "; static_graph = true, and the first step used them: turn it off, and "
                         "find_unused_parameters on"
                       : "; set strategy.find_unused_parameters = true if that is meant, or freeze them"));
}

void DataParallel::sync_grads(const lhost::Step&) {
  for (Bucket& b : buckets_) {
    b.work.wait();
    b.work = {};
  }
  read_tail();
}

void DataParallel::after_step(const lhost::Step&) {
  if (!settled_) rebuild();
}

// ---- after the first step

// The order of rank 0 for all; parameters that did not come are the last.
void DataParallel::rebuild() {
  std::vector<ParamId> order = std::exchange(arrivals_, {});
  std::vector<bool> in(params_.size());
  std::vector<ParamId> unique;
  for (ParamId p : order)
    if (!in[p]) in[p] = true, unique.push_back(p);
  for (ParamId p = static_cast<ParamId>(params_.size()); p-- > 0;)
    if (params_[p].trainable && !in[p]) unique.push_back(p);
  settled_ = true;
  if (world_size() > 1) {
    const Owned shared = host_tensor(run(), {LH_DT_INT, 64, 1}, static_cast<int64_t>(unique.size()));
    auto* ids = reinterpret_cast<int64_t*>(address(view_of(shared.get())));
    std::copy(unique.begin(), unique.end(), ids);
    broadcast({shared.get()}, 0).wait();
    for (size_t i = 0; i < unique.size(); ++i) unique[i] = static_cast<ParamId>(ids[i]);
  }
  std::vector<std::vector<ParamId>> groups = cut(unique);
  std::vector<lh_flat_args> args;
  for (size_t b = 0; b < groups.size(); ++b)
    args.push_back({sizeof(lh_flat_args), LH_FULL_LOOSE | LH_GRAD_FLAT, groups[b].data(), groups[b].size(), 1,
                    1, 0, b + 1 == groups.size() ? tail() : 0});
  check(params_service->regroup(run(), args.data(), args.size()));
  take(std::move(groups));
}

// ---- buffers

// All buffers in one exchange, where the processor can reach them; else one by one.
void DataParallel::share_buffers() {
  if (world_size() == 1 || buffers_.empty()) return;
  bool reachable = true;
  size_t total = 0;
  for (lh_tensor* b : buffers_) {
    const lh_view v = view_of(b);
    reachable &= v.device.type == LH_DEVICE_CPU;
    total += bytes_of(v);
  }
  if (!reachable) return broadcast(buffers_, 0).wait();
  if (total != staged_bytes_) {
    staging_ = host_tensor(run(), {LH_DT_UINT, 8, 1}, static_cast<int64_t>(total));
    staged_bytes_ = total;
  }
  if (rank() == 0) stage(false);
  broadcast({staging_.get()}, 0).wait();
  if (rank() != 0) stage(true);
}

void DataParallel::stage(bool into_buffers) {
  char* at = address(view_of(staging_.get()));
  for (lh_tensor* b : buffers_) {
    const lh_view v = view_of(b);
    const size_t n = bytes_of(v);
    into_buffers ? std::memcpy(address(v), at, n) : std::memcpy(at, address(v), n);
    at += n;
  }
}

}  // namespace ddp
