// gloo.cpp - the only file that knows c10d: TCPStore as the board, ProcessGroupGloo as the link. The wheel has no gloo
// headers; the few names that c10d's header wants are in stub/.
#include "link.hpp"

#include <ATen/ops/from_blob.h>
#include <c10/util/Logging.h>
#include <sched.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <mutex>
#include <thread>

namespace lhost_gloo {
namespace {

using c10d::ProcessGroupGloo;
using lhost_collective::Call;
using lhost_collective::Dtype;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// gloo adds the time-out to a clock in nanoseconds: far enough away, and no overflow.
constexpr Milliseconds kForever = std::chrono::hours(24 * 365);
constexpr Milliseconds kProbe{5};
constexpr int kUnusedTag = 0x7FFFFFFF, kFarewellTag = 0x7FFFFFFE;

class TcpBoard final : public Board {
 public:
  explicit TcpBoard(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}
  int64_t add(const std::string& key, int64_t n) override { return store_->add(key, n); }
  void set(const std::string& key, const std::string& value) override { store_->set(key, bytes(value)); }
  void set_once(const std::string& key, const std::string& value) override {
    store_->compareSet(key, {}, bytes(value));
  }
  bool has(const std::string& key) override { return store_->check({key}); }
  std::string get(const std::string& key) override {
    const std::vector<uint8_t> v = store_->get(key);
    return {v.begin(), v.end()};
  }
  const c10::intrusive_ptr<c10d::TCPStore>& store() const { return store_; }

 private:
  static std::vector<uint8_t> bytes(const std::string& s) { return {s.begin(), s.end()}; }
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

at::Tensor wrap(const void* data, size_t count, at::ScalarType dtype) {
  return at::from_blob(const_cast<void*>(data), {static_cast<int64_t>(count)}, at::TensorOptions(dtype));
}

// What the batches of one link share.
struct Shared {
  c10::intrusive_ptr<ProcessGroupGloo> group;
  std::mutex post;  // ProcessGroupGloo counts its calls without a lock
  std::mutex mutex;
  std::vector<c10d::Work*> waited;  // by some thread; guarded by mutex
  bool interrupted = false;         // guarded by mutex
};

[[noreturn]] void interrupted() { throw LinkError(LinkError::Why::interrupted, "interrupted"); }

class GlooBatch final : public Batch {
 public:
  explicit GlooBatch(Shared& shared) : shared_(shared) {}

  size_t send(int peer, int tag, const void* data, size_t bytes) override {
    std::vector<at::Tensor> tensors{wrap(data, bytes, at::kByte)};
    return post(peer, tag, [&] { return shared_.group->send(tensors, peer, tag); });
  }
  size_t recv(int peer, int tag, void* data, size_t bytes) override {
    std::vector<at::Tensor> tensors{wrap(data, bytes, at::kByte)};
    return post(peer, tag, [&] { return shared_.group->recv(tensors, peer, tag); });
  }

  void wait(size_t number) override {
    Message& m = messages_[number];
    if (m.done) return;
    {
      const std::lock_guard lock(shared_.mutex);
      if (shared_.interrupted) interrupted();
      shared_.waited.push_back(m.work.get());
    }
    bool complete = false;
    std::string lost;
    try {
      complete = m.work->wait();
    } catch (const std::exception& e) {
      lost = short_text(e.what());
    }
    {
      const std::lock_guard lock(shared_.mutex);
      shared_.waited.erase(std::find(shared_.waited.begin(), shared_.waited.end(), m.work.get()));
    }
    if (!lost.empty()) {
      m.broken = true;
      throw LinkError(LinkError::Why::lost, lost);
    }
    if (!complete) interrupted();
    m.done = true;
  }

  void clear() noexcept override { messages_.clear(); }

  // Of the first step that is not complete: in a later one those are late who wait themselves.
  std::vector<int64_t> unanswered() override {
    std::vector<int> tags;
    for (const Message& m : messages_) tags.push_back(m.tag);
    std::sort(tags.begin(), tags.end());
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    for (const int tag : tags) {
      const auto late =
          peers([tag](const Message& m) { return m.tag == tag; }, [](const Message&) { return true; });
      if (!late.empty()) return late;
    }
    return {};
  }
  std::vector<int64_t> broken() override {
    return peers([](const Message&) { return true; }, [](const Message& m) { return m.broken; });
  }

  // Is it there? gloo has no such question: waits, and is woken after a moment.
  bool probe(size_t number) { return probe(messages_[number]); }

 private:
  struct Message {
    WorkPtr work;
    int peer, tag;
    bool done, broken;
  };

  template <class F>
  size_t post(int peer, int tag, F f) {
    WorkPtr work;
    std::string lost;
    try {
      const std::lock_guard lock(shared_.post);
      work = f();
    } catch (const std::exception& e) {
      lost = short_text(e.what());
    }
    messages_.push_back({std::move(work), peer, tag, false, !lost.empty()});
    if (!lost.empty()) throw LinkError(LinkError::Why::lost, lost);
    return messages_.size() - 1;
  }

  bool probe(Message& m) {
    if (!m.work || m.done || m.broken) return m.done;
    std::thread waker([&] {
      std::this_thread::sleep_for(kProbe);
      m.work->abort();
    });
    try {
      m.done = m.work->wait();
    } catch (const std::exception&) {
      m.broken = true;
    }
    waker.join();
    return m.done;
  }

  // The peers whose first incomplete message, of those to look at, is a chosen one.
  template <class Look, class Chosen>
  std::vector<int64_t> peers(Look look, Chosen chosen) {
    std::vector<int64_t> seen, out;
    for (Message& m : messages_) {
      if (m.done || !look(m) || std::find(seen.begin(), seen.end(), m.peer) != seen.end()) continue;
      if (!m.broken && probe(m)) continue;
      seen.push_back(m.peer);
      if (chosen(m)) out.push_back(m.peer);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  Shared& shared_;
  std::vector<Message> messages_;
};

// gloo's device thread polls while the thread that sends holds the connection's lock. Woken on that thread's core it would
// take its place and poll until the next tick, 4 ms later. A batch thread takes nobody's place; a new thread has the policy
// of the one that makes it.
class BatchThreads {
 public:
  BatchThreads() : usual_(sched_getscheduler(0) == SCHED_OTHER) { set(SCHED_BATCH); }
  ~BatchThreads() { set(SCHED_OTHER); }
  BatchThreads(const BatchThreads&) = delete;

 private:
  void set(int policy) const {
    const sched_param none{};
    if (usual_) sched_setscheduler(0, policy, &none);
  }
  const bool usual_;
};

at::ScalarType scalar_type(Dtype d) {
  constexpr at::ScalarType types[] = {at::kDouble,   at::kFloat, at::kHalf,
                                      at::kBFloat16, at::kLong,  at::kByte};
  return types[static_cast<size_t>(d)];
}

class GlooLink final : public Link {
 public:
  explicit GlooLink(c10::intrusive_ptr<ProcessGroupGloo> group)
      : words_(static_cast<size_t>(group->getSize())) {
    shared_.group = std::move(group);
    others([this](int peer) {
      ears_.recv(peer, kFarewellTag, &words_[static_cast<size_t>(peer)], sizeof(Farewell));
    });
  }
  std::unique_ptr<Batch> batch() override { return std::make_unique<GlooBatch>(shared_); }

  void native(const Call& c, Milliseconds timeout) override {
    try {
      WorkPtr work;
      {
        const std::lock_guard lock(shared_.post);
        work = start(c, timeout);
      }
      work->wait();
    } catch (const std::exception& e) {
      const std::string text = short_text(e.what());
      throw LinkError(text.find("Timed out") == text.npos ? LinkError::Why::lost : LinkError::Why::late,
                      text);
    }
  }

  void say(const Farewell& f) noexcept override {
    GlooBatch mouth(shared_);
    others([&](int peer) {
      try {
        mouth.probe(mouth.send(peer, kFarewellTag, &f, sizeof f));
      } catch (const std::exception&) {  // it is gone
      }
    });
  }
  Farewell last_words(int64_t peer) noexcept override {
    const int64_t number = peer < shared_.group->getRank() ? peer : peer - 1;
    const std::lock_guard lock(ears_mutex_);
    if (!ears_.probe(static_cast<size_t>(number))) return {};
    return words_[static_cast<size_t>(peer)];
  }

  void interrupt() noexcept override {
    const std::lock_guard lock(shared_.mutex);
    shared_.interrupted = true;
    for (c10d::Work* w : shared_.waited) w->abort();
  }

  // gloo breaks all connections when one message is late. Of a peer that is gone none can be asked for.
  void close() noexcept override {
    others([this](int peer) { await_nothing(peer); });
  }

 private:
  template <class F>
  void others(F f) {
    for (int peer = 0; peer < shared_.group->getSize(); ++peer)
      if (peer != shared_.group->getRank()) f(peer);
  }
  void await_nothing(int peer) noexcept {
    char nothing = 0;
    try {
      std::vector<at::Tensor> tensors{wrap(&nothing, 1, at::kByte)};
      WorkPtr work;
      {
        const std::lock_guard lock(shared_.post);
        work = shared_.group->recv(tensors, peer, kUnusedTag);
      }
      work->wait(Milliseconds(1));
    } catch (const std::exception&) {  // that is what it is for
    }
  }

  WorkPtr start(const Call& c, Milliseconds timeout) {
    ProcessGroupGloo& group = *shared_.group;
    const auto n = static_cast<size_t>(group.getSize());
    const bool gathers = c.kind == lhost_collective::Kind::all_gather;
    at::Tensor out = wrap(c.out, gathers ? n * c.count : c.count, scalar_type(c.dtype));
    std::vector<at::Tensor> tensors{out};
    if (gathers) {
      at::Tensor in = wrap(c.in, c.count, scalar_type(c.dtype));
      c10d::AllgatherOptions o;
      o.timeout = timeout;
      return group._allgather_base(out, in, o);
    }
    if (c.kind == lhost_collective::Kind::broadcast) {
      c10d::BroadcastOptions o;
      o.rootRank = c.root;
      o.timeout = timeout;
      return group.broadcast(tensors, o);
    }
    c10d::AllreduceOptions o;
    o.timeout = timeout;
    return group.allreduce(tensors, o);
  }

  Shared shared_;
  std::vector<Farewell> words_;  // by rank
  std::mutex ears_mutex_;
  GlooBatch ears_{shared_};  // one message of each other rank, by distance; guarded by ears_mutex_
};

}  // namespace

std::unique_ptr<Board> open_board(const Place& place, Milliseconds timeout) {
  c10d::TCPStoreOptions o;
  o.port = static_cast<uint16_t>(place.port);
  o.isServer = place.serves;
  c10::initLogging();  // reads TORCH_CPP_LOG_LEVEL: else an unknown name there becomes a line on the terminal
  o.waitWorkers = false;
  o.timeout = timeout;
  if (o.isServer) o.masterListenFd = place.listen_fd;
  return std::make_unique<TcpBoard>(c10::make_intrusive<c10d::TCPStore>(place.host, o));
}

std::unique_ptr<Link> open_link(Board& board, const std::string& prefix, const Place& place,
                                const std::string& interface, const std::string& address,
                                Milliseconds timeout) {
  auto store = c10::make_intrusive<c10d::PrefixStore>(prefix, static_cast<TcpBoard&>(board).store());
  auto o = ProcessGroupGloo::Options::create(timeout);
  o->threads = 1;
  {
    const BatchThreads threads;
    o->devices.push_back(interface.empty() ? ProcessGroupGloo::createDeviceForHostname(address)
                                           : ProcessGroupGloo::createDeviceForInterface(interface));
  }
  auto group = c10::make_intrusive<ProcessGroupGloo>(store, place.rank, place.size, o);
  group->setTimeout(kForever);
  return std::make_unique<GlooLink>(std::move(group));
}

std::string short_text(const char* what) {
  std::string s(what);
  for (const char* stack : {"\nException raised from", "\nframe #", ". This may indicate"})
    s = s.substr(0, s.find(stack));
  if (!s.empty() && s[0] == '[' && s.find(".cc:") < s.find("] ")) s = s.substr(s.find("] ") + 2);
  return s;
}

}  // namespace lhost_gloo
