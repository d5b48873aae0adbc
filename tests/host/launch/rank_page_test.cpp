#include "launch/rank_page.hpp"

#include "base/failure.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <thread>

namespace lhost {
namespace {

TEST(RankPage, TellsWhatARankIsDoing) {
  const RankPages pages = RankPages::create(3);
  RankPage page = pages.at(1);
  EXPECT_EQ(page.read().phase, RankPhase::starting);
  page.set_phase(RankPhase::running);
  page.set_stage(LH_STAGE_TEST);
  page.set_epoch(2);
  page.set_batch(17);
  page.set_global_step(1234567890123);
  const int32_t step = page.add_operation("model:mlp (training_step)"), other = page.add_operation("data");
  EXPECT_NE(step, other);
  EXPECT_EQ(page.add_operation("model:mlp (training_step)"), step);
  page.set_operation(step);
  const RankState s = page.read();
  EXPECT_EQ(s.phase, RankPhase::running);
  EXPECT_EQ(s.stage, LH_STAGE_TEST);
  EXPECT_EQ(s.epoch, 2);
  EXPECT_EQ(s.batch, 17);
  EXPECT_EQ(s.global_step, 1234567890123);
  EXPECT_EQ(s.operation, "model:mlp (training_step)");
  EXPECT_FALSE(s.failure);
  page.set_operation(0);
  EXPECT_EQ(page.read().operation, "");
  EXPECT_EQ(pages.at(0).read().epoch, 0);
  EXPECT_EQ(pages.at(2).read().epoch, 0);
}

TEST(RankPage, TheFirstFailureStays) {
  RankPages pages = RankPages::alone();
  RankPage page = pages.at(0);
  EXPECT_TRUE(page.fail({LH_DATA_LOSS, 1, 0, "cut short", "data:csv", "fetch", "epoch 1"}));
  EXPECT_FALSE(page.fail({LH_PEER_LOST, 71, 0, "peer", "", "", ""}));
  const auto f = page.read().failure;
  ASSERT_TRUE(f);
  EXPECT_EQ(f->code, LH_DATA_LOSS);
  EXPECT_EQ(f->exit_code, 1);
  EXPECT_GT(f->time_ns, 0);
  EXPECT_EQ(f->message, "cut short");
  EXPECT_EQ(f->component + "|" + f->where + "|" + f->place, "data:csv|fetch|epoch 1");
}

TEST(RankPage, LongTextsAreCutBetweenCharacters) {
  RankPages pages = RankPages::alone();
  std::string accents;
  for (int i = 0; i < 5000; ++i) accents += "\xC3\xA9";
  pages.at(0).fail({LH_INTERNAL, 1, 0, "x" + accents, accents, accents, accents});
  const auto f = *pages.at(0).read().failure;
  EXPECT_EQ(f.message.size(), 8191u);
  EXPECT_EQ(f.component.size(), 126u);
  EXPECT_EQ(f.message.substr(f.message.size() - 2), "\xC3\xA9");
}

TEST(RankPage, HasRoomForManyOperationsAndDoesWithoutTheRest) {
  RankPages pages = RankPages::alone();
  RankPage page = pages.at(0);
  int named = 0;
  for (int i = 0; i < 1000; ++i) named += page.add_operation("operation " + std::to_string(i)) != 0;
  EXPECT_EQ(named, 127);
  page.set_operation(page.add_operation("operation 126"));
  EXPECT_EQ(page.read().operation, "operation 126");
}

TEST(RankPage, WhatMakesNoSenseIsReadAsSomethingThatDoes) {
  RankPages pages = RankPages::alone();
  RankPage page = pages.at(0);
  page.set_phase(static_cast<RankPhase>(77));
  page.set_stage(-5);
  page.set_operation(1 << 30);
  const RankState s = page.read();
  EXPECT_EQ(s.phase, RankPhase::ended);
  EXPECT_EQ(s.stage, LH_STAGE_FIT);
  EXPECT_EQ(s.operation, "");
}

TEST(RankPage, IsReadAfterTheDeathOfItsProcess) {
  const RankPages pages = RankPages::create(2);
  const pid_t child = fork();
  if (child == 0) {
    RankPages mine = RankPages::attach(fcntl(pages.fd(), F_DUPFD_CLOEXEC, 3), 1);
    mine.at(0).set_batch(5);
    mine.at(0).fail({LH_INTERNAL, 1, 0, "last words", "", "", ""});
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(pages.at(1).read().batch, 5);
  EXPECT_EQ(pages.at(1).read().failure->message, "last words");
  EXPECT_FALSE(pages.at(0).read().failure);
}

TEST(RankPage, IsWrittenWhileItIsRead) {
  RankPages pages = RankPages::create(1);
  std::thread rank([&] {
    RankPage page = pages.at(0);
    for (int64_t i = 0; i < 20000; ++i) {
      page.set_batch(i);
      page.set_operation(page.add_operation("operation " + std::to_string(i % 50)));
    }
    page.fail({LH_INTERNAL, 1, 0, "end", "", "", ""});
  });
  int64_t last = 0;
  for (RankState s; !s.failure;) {
    s = pages.at(0).read();
    EXPECT_GE(s.batch, last);
    last = s.batch;
    if (!s.operation.empty()) {
      EXPECT_THAT(s.operation, testing::StartsWith("operation "));
    }
  }
  rank.join();
}

TEST(RankPages, CannotBeTakenAwayFromUnderTheSupervisor) {
  const RankPages pages = RankPages::create(1);
  EXPECT_NE(ftruncate(pages.fd(), 0), 0);
  EXPECT_EQ(pages.at(0).read().batch, 0);
}

TEST(RankPages, OfAnotherProgramAreRefused) {
  const int fd = open("/dev/null", O_RDWR);
  EXPECT_THROW(RankPages::attach(fd, 0), Failure);
  const RankPages pages = RankPages::create(2);
  EXPECT_THROW(RankPages::attach(dup(pages.fd()), 2), Failure);
  EXPECT_THROW(RankPages::attach(dup(pages.fd()), -1), Failure);
  EXPECT_THROW(pages.at(2), Failure);
}

}  // namespace
}  // namespace lhost
