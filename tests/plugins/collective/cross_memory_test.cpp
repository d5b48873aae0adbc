// Large messages by the memory of the sender: what then still goes over the connection, and that nothing is taken from a
// process that has given up, is another one, or is elsewhere.
#include "cross_memory.hpp"

#include "support/process_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>

namespace {
using namespace lhost_gloo;
using Bytes = std::vector<char>;
using testing::ElementsAre;
using testing::IsEmpty;

// The connections of all ranks: what was sent by one to another under a tag, in order.
struct Wires {
  std::map<std::tuple<int, int, int>, std::deque<Bytes>> messages;
  std::vector<size_t> sizes;  // of everything sent so far
};

class WireBatch final : public Batch {
 public:
  WireBatch(Wires& w, int me) : wires_(w), me_(me) {}
  size_t send(int peer, int tag, const void* data, size_t bytes) override {
    const char* at = static_cast<const char*>(data);
    wires_.messages[{me_, peer, tag}].emplace_back(at, at + bytes);
    wires_.sizes.push_back(bytes);
    posted_.push_back({});
    return posted_.size() - 1;
  }
  size_t recv(int peer, int tag, void* data, size_t bytes) override {
    posted_.push_back({peer, tag, data, bytes});
    return posted_.size() - 1;
  }
  void wait(size_t number) override {
    const Posted& p = posted_[number];
    if (!p.data) return;
    auto& queue = wires_.messages[{p.peer, me_, p.tag}];
    if (queue.empty()) throw LinkError(LinkError::Why::lost, "the wire is cut");
    ASSERT_EQ(queue.front().size(), p.bytes);
    std::memcpy(p.data, queue.front().data(), p.bytes);
    queue.pop_front();
  }
  void clear() noexcept override { posted_.clear(); }
  std::vector<int64_t> unanswered() override { return {7}; }
  std::vector<int64_t> broken() override { return {8}; }

 private:
  struct Posted {
    int peer = 0, tag = 0;
    void* data = nullptr;
    size_t bytes = 0;
  };
  Wires& wires_;
  const int me_;
  std::vector<Posted> posted_;
};

class WireLink final : public Link {
 public:
  WireLink(Wires& w, int me) : wires_(w), me_(me) {}
  std::unique_ptr<Batch> batch() override { return std::make_unique<WireBatch>(wires_, me_); }
  void native(const lhost_collective::Call&, Milliseconds) override {}
  void say(const Farewell&) noexcept override {}
  Farewell last_words(int64_t) noexcept override { return {}; }
  void interrupt() noexcept override {}
  void close() noexcept override {}

 private:
  Wires& wires_;
  const int me_;
};

constexpr size_t kLarge = 1 << 20, kSmallMessage = 1000;

struct CrossMemory : testing::Test {
  CrossMemory() {
    for (int r = 0; r < 2; ++r)
      links.push_back(std::make_unique<CrossMemoryLink>(std::make_unique<WireLink>(wires, r), true));
    for (size_t i = 0; i < kLarge; ++i) data[i] = static_cast<char>(i * 31 + i / 977);
  }
  void SetUp() override {
    if (!lhost_test::process_memory_can_be_read()) GTEST_SKIP() << lhost_test::kNoProcessMemory;
  }
  std::vector<CrossMemoryLink::Card> cards() const { return {links[0]->card(), links[1]->card()}; }
  void meet() {
    const auto all = cards();
    for (auto& link : links) link->connect(all, link->can_read(all), {1, 1});
  }
  // Rank 0 to rank 1, both by one thread: the receiver takes it, then the sender hears so.
  Bytes move(size_t bytes, int tag = 0) {
    const auto sender = links[0]->batch(), receiver = links[1]->batch();
    Bytes out(bytes);
    const size_t s = sender->send(1, tag, data.data(), bytes), r = receiver->recv(0, tag, out.data(), bytes);
    receiver->wait(r);
    receiver->wait(r);  // once is enough, twice is fine
    sender->wait(s);
    return out;
  }
  Bytes first(size_t n) const { return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n)}; }

  Wires wires;
  std::vector<std::unique_ptr<CrossMemoryLink>> links;
  Bytes data = Bytes(kLarge);
};

TEST_F(CrossMemory, ALargeMessageIsAnAddressAndAnAnswerOnTheWire) {
  meet();
  EXPECT_THAT(links[0]->near(), ElementsAre(0, 1));
  EXPECT_TRUE(move(kLarge) == data);
  EXPECT_THAT(wires.sizes, ElementsAre(8, 1));
}

TEST_F(CrossMemory, SmallMessagesAndSendReceivePairsGoTheOthersWay) {
  meet();
  EXPECT_TRUE(move(kSmallMessage) == first(kSmallMessage));
  EXPECT_TRUE(move(kLarge, kPairTag) == data);
  EXPECT_TRUE(move(kLarge, kTagsPerGroup + kPairTag) == data) << "of another group";
  EXPECT_THAT(wires.sizes, ElementsAre(kSmallMessage, kLarge, kLarge));
}

TEST_F(CrossMemory, WithoutAMeetingOrWhereOneSideCannotReadAllGoesTheOthersWay) {
  EXPECT_TRUE(move(kLarge) == data);
  const auto all = cards();
  for (auto& link : links) link->connect(all, link->can_read(all), {0, 0});
  EXPECT_THAT(links[0]->near(), IsEmpty());
  EXPECT_TRUE(move(kLarge) == data);
  EXPECT_THAT(wires.sizes, ElementsAre(kLarge, kLarge));
}

TEST_F(CrossMemory, OnlyTheProcessThatIsMeantIsRead) {
  auto all = cards();
  EXPECT_THAT(links[1]->can_read(all), ElementsAre(1, 1));
  all[0].token[1] ^= 1;  // its number is another process's now
  EXPECT_THAT(links[1]->can_read(all), ElementsAre(0, 1));
  all = cards();
  all[0].machine[3] ^= 1;
  EXPECT_THAT(links[1]->can_read(all), ElementsAre(0, 1)) << "another machine or container";
  all = cards();
  all[0].pid = 1 << 29;  // beyond what Linux gives
  EXPECT_THAT(links[1]->can_read(all), ElementsAre(0, 1));
  all = cards();
  all[0].token_at = 8;
  EXPECT_THAT(links[1]->can_read(all), ElementsAre(0, 1));
}

TEST_F(CrossMemory, WhoTakesNoPartIsNotRead) {
  const CrossMemoryLink apart(std::make_unique<WireLink>(wires, 0), false);
  EXPECT_THAT(links[1]->can_read({apart.card(), links[1]->card()}), ElementsAre(0, 1));
  EXPECT_THAT(apart.can_read({apart.card(), links[1]->card()}), ElementsAre(0, 0));
}

// Its buffers may hold something else by now. What ended it comes over the connection.
TEST_F(CrossMemory, NothingIsTakenFromWhoHasGivenUp) {
  meet();
  const auto sender = links[0]->batch(), receiver = links[1]->batch();
  Bytes out(kLarge);
  sender->send(1, 0, data.data(), kLarge);
  const size_t r = receiver->recv(0, 0, out.data(), kLarge);
  links[0]->interrupt();
  try {
    receiver->wait(r);
    ADD_FAILURE() << "it was taken";
  } catch (const LinkError& e) {
    EXPECT_EQ(e.why, LinkError::Why::lost);
    EXPECT_STREQ(e.what(), "the wire is cut");
  }
  EXPECT_THAT(wires.sizes, ElementsAre(8)) << "no answer";
}

TEST_F(CrossMemory, MemoryThatIsNotThereIsALostConnection) {
  meet();
  wires.messages[{0, 1, 0}].push_back({8, 0, 0, 0, 0, 0, 0, 0});  // an offer of address 8
  const auto receiver = links[1]->batch();
  Bytes out(kLarge);
  const size_t r = receiver->recv(0, 0, out.data(), kLarge);
  EXPECT_THROW(receiver->wait(r), LinkError);
  EXPECT_THAT(wires.sizes, IsEmpty()) << "no answer";
}

TEST_F(CrossMemory, SeveralMessagesOfOneTagArriveInOrder) {
  meet();
  const auto sender = links[0]->batch(), receiver = links[1]->batch();
  const size_t third = kLarge / 3;
  Bytes out(3 * third);
  std::vector<size_t> sent, received;
  for (size_t i = 0; i < 3; ++i) {
    received.push_back(receiver->recv(0, 1, out.data() + i * third, third));
    sent.push_back(sender->send(1, 1, data.data() + i * third, third));
  }
  for (const size_t r : received) receiver->wait(r);
  for (const size_t s : sent) sender->wait(s);
  EXPECT_TRUE(out == first(3 * third));
}

TEST_F(CrossMemory, WhatIsMissingIsTheOthersToSay) {
  meet();
  const auto batch = links[0]->batch();
  EXPECT_THAT(batch->unanswered(), ElementsAre(7));
  EXPECT_THAT(batch->broken(), ElementsAre(8));
}

}  // namespace
