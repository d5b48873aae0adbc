// data_parallel.hpp - distributed data parallel: every rank holds the whole model, gradients are averaged in buckets while backward
// still runs (Li et al., VLDB 2020; torch.nn.parallel.DistributedDataParallel). Shared by `ddp` and `ddp_spawn`.
//
// * Buckets are formed in reverse order of the parameters, and once more after the first step in the order in which the
//   gradients came on rank 0. They leave strictly in that order, on all ranks the same.
// * Gradients are views of the buckets. In an accumulation window only the last micro-batch causes traffic.
// * The host's votes (to stop, the loss) ride in the last bucket: a step makes exactly as many collectives as buckets.
// * A parameter that no rank used keeps its value and its optimizer state.
#pragma once
#include <lhost/sdk/strategy.hpp>

#include <algorithm>
#include <cstring>

namespace ddp {

struct Options {
  lhost::Size bucket_cap{25 << 20}, first_bucket{1 << 20};
  bool find_unused_parameters = false, static_graph = false, broadcast_buffers = true;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::bucket_cap, "bucket_cap", "gradients that travel together").min(lhost::Size{1});
    d(&Options::first_bucket, "first_bucket",
      "the same for the first of a step, so that traffic starts early")
        .min(lhost::Size{1});
    d(&Options::find_unused_parameters, "find_unused_parameters",
      "the loss need not depend on every parameter; else that is an error");
    d(&Options::static_graph, "static_graph", "every step uses the parameters that the first one used");
    d(&Options::broadcast_buffers, "broadcast_buffers",
      "every step starts from the buffers of rank 0; evaluations do in any case");
  }
};

// A tensor made here, or a view of one.
class Owned {
 public:
  Owned() = default;
  explicit Owned(lh_tensor* t) : t_(t) {}
  Owned(Owned&& o) noexcept : t_(std::exchange(o.t_, nullptr)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Owned() { lhost::detail::tensor_service->release(t_); }
  lh_tensor* get() const { return t_; }
  explicit operator bool() const { return t_ != nullptr; }

 private:
  lh_tensor* t_ = nullptr;
};

inline lh_view view_of(lh_tensor* t) {
  lh_view v{};
  lhost::check(lhost::detail::tensor_service->view(t, &v));
  return v;
}

class DataParallel : public lhost::Strategy {
 public:
  static constexpr const char* summary = "the whole model on every rank, gradients averaged in buckets";
  explicit DataParallel(const Options& o) : o_(o) {}

  void setup(lh_topology& t) override;
  void plan(lhost::Plan&) override;
  void params_ready(lhost::UnitId) override;
  void begin_micro(const lhost::Step&) override;
  void grad_ready(lhost::ParamId) override;
  void after_backward(const lhost::Step&) override;
  void sync_grads(const lhost::Step&) override;
  void after_step(const lhost::Step&) override;
  void eval_start() override { share_buffers(); }

 private:
  struct Param {
    std::string name;
    int64_t bytes = 0;
    lh_dtype dtype{};
    uint32_t bucket = 0;
    bool trainable = false, used = false;  // used: in this window, on this rank
    bool left_out = false;                 // static graph: no rank uses it, as in the first step
    int64_t came = 0;                      // the micro-batch of its last gradient
  };
  struct Bucket {
    std::vector<lhost::ParamId> params;
    int64_t expected = 0, missing = 0;
    lhost::Work work;
  };

  std::vector<std::vector<lhost::ParamId>> cut(const std::vector<lhost::ParamId>& order) const;
  int64_t tail() const;
  bool exchanges_usage() const { return o_.find_unused_parameters || (o_.static_graph && !settled_); }
  void take(std::vector<std::vector<lhost::ParamId>> buckets);
  void start_complete(bool all);
  void fill_tail();
  void read_tail();
  void check_usage();
  void rebuild();
  void share_buffers();
  void stage(bool into_buffers);

  Options o_;
  std::vector<Param> params_;
  std::vector<lh_tensor*> buffers_;
  std::vector<Bucket> buckets_;
  size_t next_ = 0;  // the first bucket that has not left
  bool last_micro_ = false, carries_votes_ = false;
  bool settled_ = false;                  // the first step is over: buckets are in their final order
  int64_t micro_ = 0, used_ = 0;          // micro-batches so far; parameters used in this window
  std::vector<lhost::ParamId> arrivals_;  // of the first step
  Owned tail_, usage_, staging_;
  size_t staged_bytes_ = 0;
};

}  // namespace ddp
