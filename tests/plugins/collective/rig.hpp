// rig.hpp - N ranks of one transport as threads of this process, with tensors and works of the test's own. LibTorch-free;
// the transport is LHOST_TEST_TRANSPORT, with LHOST_TEST_OPTIONS of it where a test names none.
//   World w(4);
//   w.run([](Rank& r) { Tensor t = ...; r.all_reduce(t, t, LH_REDUCE_SUM); });
#pragma once
#include "support/component.hpp"

#include <lhost/collective.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

// The name of a suite that is compiled for several transports: GlooFailures, ThreadsFailures.
#define LHOST_JOINED_(a, b) a##b
#define LHOST_JOINED(a, b) LHOST_JOINED_(a, b)
#define LHOST_SUITE(name) LHOST_JOINED(LHOST_TEST_SUITE, name)

struct lh_tensor {
  std::vector<int64_t> shape;
  lh_dtype dtype;
  std::vector<char> own;
  char* data;
};
struct lh_work {
  lh_work_ops ops;
  void* self;
};

#ifndef LHOST_TEST_OPTIONS
#define LHOST_TEST_OPTIONS
#endif

namespace lhost_test {

constexpr lh_dtype kFloat64{LH_DT_FLOAT, 64, 1}, kFloat32{LH_DT_FLOAT, 32, 1}, kFloat16{LH_DT_FLOAT, 16, 1},
    kBfloat16{LH_DT_BFLOAT, 16, 1}, kInt64{LH_DT_INT, 64, 1}, kUint8{LH_DT_UINT, 8, 1};

class Tensor {
 public:
  Tensor(lh_dtype d, int64_t count)
      : t_(std::make_shared<lh_tensor>(
            lh_tensor{{count}, d, std::vector<char>(static_cast<size_t>(count * d.bits / 8)), nullptr})) {
    t_->data = t_->own.data();
  }
  template <class T>
  Tensor(lh_dtype d, const std::vector<T>& values) : Tensor(d, static_cast<int64_t>(values.size())) {
    if (!values.empty()) std::memcpy(t_->data, values.data(), t_->own.size());
  }
  // part r of n, in the same memory
  Tensor part(int64_t r, int64_t n) const {
    Tensor p = *this;
    const size_t bytes = t_->own.size() / static_cast<size_t>(n);
    p.t_ = std::make_shared<lh_tensor>(
        lh_tensor{{t_->shape[0] / n}, t_->dtype, {}, t_->data + static_cast<size_t>(r) * bytes});
    p.keep_ = t_;
    return p;
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> v(static_cast<size_t>(t_->shape[0]));
    if (!v.empty()) std::memcpy(v.data(), t_->data, v.size() * sizeof(T));
    return v;
  }
  std::string bytes() const { return {t_->data, static_cast<size_t>(t_->shape[0] * t_->dtype.bits / 8)}; }
  lh_tensor* get() const { return t_.get(); }

 private:
  std::shared_ptr<lh_tensor> t_, keep_;
};

inline void offer_services() {
  static const lh_tensor_v0 tensors = [] {
    lh_tensor_v0 t{};
    t.size = sizeof t;
    t.view = [](lh_tensor* x, lh_view* out) -> lh_status {
      *out = {x->data, {LH_DEVICE_CPU, 0}, 1, x->dtype, x->shape.data(), nullptr, 0};
      return nullptr;
    };
    return t;
  }();
  static const lh_work_v0 works = {
      sizeof(lh_work_v0),
      0,
      [](const lh_work_ops* ops, void* self, lh_work** out) -> lh_status {
        *out = new lh_work{*ops, self};
        return nullptr;
      },
      [](lh_work* w) {
        if (w) w->ops.destroy(w->self), delete w;
      },
      [](lh_work* w, int64_t ns) -> lh_status { return w ? w->ops.wait(w->self, ns) : nullptr; },
      [](lh_work* w, lh_stream* s) -> lh_status { return w ? w->ops.wait_stream(w->self, s) : nullptr; }};
  services()[LH_TENSOR_SERVICE] = &tensors;
  services()[LH_WORK_SERVICE] = &works;
}

// A completion; waits when asked to, is dropped else.
class Work {
 public:
  explicit Work(lh_work* w)
      : w_(w, [](lh_work* x) {
          if (x) x->ops.destroy(x->self), delete x;
        }) {}
  void wait(int64_t timeout_ns = -1) const {
    if (w_) call(w_->ops.wait(w_->self, timeout_ns));
  }
  bool complete() const { return !w_; }  // at once

 private:
  std::shared_ptr<lh_work> w_;
};

struct Where {
  int64_t rank = 0, size = 1;
  std::string job = "job", host = "127.0.0.1";
  int64_t port = 0, restart = 0;
  int listen_fd = -1;
  int64_t timeout_ns = 20'000'000'000, connect_timeout_ns = 20'000'000'000;
};

class Rank {
 public:
  Rank(Where w, const Options& options)
      : where(std::move(w)), plugin("collective", LHOST_TEST_TRANSPORT, options) {}
  void init() {
    lh_env env{};
    env.size = sizeof env;
    env.world_size = env.local_world_size = where.size;
    env.rank = env.local_rank = where.rank;
    env.num_nodes = 1;
    env.master_addr = str(where.host);
    env.master_port = where.port;
    env.job = str(where.job);
    env.restart = where.restart;
    lh_collective_init i{sizeof i, where.listen_fd, &env, where.timeout_ns, where.connect_timeout_ns};
    call(plugin->init(plugin.self, nullptr, &i));
  }
  lh_process_group* group(const std::vector<int64_t>& ranks) {
    lh_process_group* g = nullptr;
    call(plugin->group(plugin.self, ranks.data(), ranks.size(), &g));
    return g;
  }
  struct More {  // than tensors
    int64_t root = 0;
    int32_t op = LH_REDUCE_SUM;
    lh_process_group* group = nullptr;
    int64_t timeout_ns = 0;
  };
  Work start(lh_collective_fn f, const Tensor* in, const Tensor* out, More m) {
    lh_collective_args a{sizeof a, m.op,    m.group,     in ? in->get() : nullptr, out ? out->get() : nullptr,
                         m.root,   nullptr, m.timeout_ns};
    lh_work* w = nullptr;
    call(f(plugin.self, &a, &w));
    return Work(w);
  }
  void all_reduce(const Tensor& in, const Tensor& out, int32_t op) {
    start(plugin->all_reduce, &in, &out, {.op = op}).wait();
  }
  void barrier() { start(plugin->barrier, nullptr, nullptr, {}).wait(); }

  Where where;
  Component<lh_collective, lh_collective_v0> plugin;
};

// A socket that listens on a free port of this machine, for rank 0.
inline int listen_somewhere(int64_t& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof a;
  if (bind(fd, reinterpret_cast<sockaddr*>(&a), size) || listen(fd, 64))
    throw std::runtime_error("cannot listen");
  getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size);
  port = ntohs(a.sin_port);
  return fd;
}

inline std::string a_new_job() {
  static std::atomic<int> n{0};
  return "job" + std::to_string(getpid()) + "." + std::to_string(n++);
}

class World {
 public:
  explicit World(int64_t n, const Options& options = {}, Where like = {}) {
    offer_services();
    Options all{LHOST_TEST_OPTIONS};
    for (const auto& [key, value] : options) all[key] = value;
    like.size = n;
    like.job = a_new_job();
    like.listen_fd = -1;
    const int fd = n > 1 && std::string(LHOST_TEST_TRANSPORT) == "gloo" ? listen_somewhere(like.port) : -1;
    for (int64_t r = 0; r < n; ++r) {
      like.rank = r;
      like.listen_fd = r == 0 ? fd : -1;
      ranks.push_back(std::make_unique<Rank>(like, all));
    }
  }
  // Each rank in a thread of its own; the texts of what they threw, "" where nothing.
  template <class F>
  std::vector<std::string> outcomes(F f) {
    std::vector<std::string> errors(ranks.size());
    codes.assign(ranks.size(), LH_OK);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks.size(); ++r)
      threads.emplace_back([&, r] {
        try {
          f(*ranks[r]);
        } catch (const StatusError& e) {
          codes[r] = e.code;
          errors[r] = e.what();
        } catch (const std::exception& e) {
          codes[r] = LH_UNKNOWN;
          errors[r] = e.what();
        }
      });
    for (std::thread& t : threads) t.join();
    return errors;
  }
  template <class F>
  void run(F f) {
    for (const std::string& e : outcomes(f)) EXPECT_EQ(e, "");
  }
  World& init() {
    run([](Rank& r) { r.init(); });
    return *this;
  }
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<lh_code> codes;  // of the last outcomes
};

}  // namespace lhost_test
