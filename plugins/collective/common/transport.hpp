// transport.hpp - what the transports share: every slot becomes one issue(kind, arguments), and a completion of C++ an
// lh_work. No LibTorch.
#pragma once
#include "call.hpp"

#include <lhost/sdk/collective.hpp>

#include <cstring>
#include <memory>

namespace lhost_collective {

// A call on its way. The destructor neither waits nor cancels. [any]
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait(
      int64_t timeout_ns) = 0;  // < 0: no limit beyond the call's own; throws the call's error, once
};

class Transport : public lhost::Collective {
 public:
  lh_work* all_reduce(const Args& a) override { return work(issue(Kind::all_reduce, a)); }
  lh_work* reduce(const Args& a) override { return work(issue(Kind::reduce, a)); }
  lh_work* broadcast(const Args& a) override { return work(issue(Kind::broadcast, a)); }
  lh_work* all_gather(const Args& a) override { return work(issue(Kind::all_gather, a)); }
  lh_work* gather(const Args& a) override { return work(issue(Kind::gather, a)); }
  lh_work* reduce_scatter(const Args& a) override { return work(issue(Kind::reduce_scatter, a)); }
  lh_work* scatter(const Args& a) override { return work(issue(Kind::scatter, a)); }
  lh_work* all_to_all(const Args& a) override { return work(issue(Kind::all_to_all, a)); }
  lh_work* send(const Args& a) override { return work(issue(Kind::send, a)); }
  lh_work* recv(const Args& a) override { return work(issue(Kind::recv, a)); }
  lh_work* barrier(const Args& a) override { return work(issue(Kind::barrier, a)); }

 protected:
  virtual std::unique_ptr<Pending> issue(Kind, const Args&) = 0;  // NULL: complete

  void bind() {
    tensors_.bind(LH_TENSOR_SERVICE);
    works_.bind(LH_WORK_SERVICE);
  }
  Call read(Kind kind, const Args& a, size_t me, size_t n) const {
    return read_call(kind, a, tensors_.table, me, n);
  }
  // A rank alone: whatever it gives comes back.
  static void alone(const Call& c) {
    if (c.in && c.out && c.in != c.out) std::memcpy(c.out, c.in, c.bytes());
  }

 private:
  lh_work* work(std::unique_ptr<Pending> pending) {
    static const lh_work_ops ops = {
        sizeof(lh_work_ops), 0,
        [](void* p, int64_t ns) noexcept {
          return lhost::guard("wait", [&] { static_cast<Pending*>(p)->wait(ns); });
        },
        [](void* p, lh_stream*) noexcept {  // memory of the CPU: there is no stream to order
          return lhost::guard("wait", [&] { static_cast<Pending*>(p)->wait(-1); });
        },
        [](void* p) noexcept { delete static_cast<Pending*>(p); }};
    if (!pending) return nullptr;
    lh_work* out = nullptr;
    lhost::check(works_->wrap(&ops, pending.release(), &out));  // takes it, also when it fails
    return out;
  }

  lhost::Service<lh_tensor_v0> tensors_;
  lhost::Service<lh_work_v0> works_;
};

// The ranks of a new group, checked.
std::vector<int> read_ranks(const int64_t* ranks, uint64_t n, int64_t world_size);

}  // namespace lhost_collective
