#include "launch/rank_boot.hpp"

#include "base/failure.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cstdlib>

namespace lhost {
namespace {

RankEnv some_env() {
  RankEnv e;
  e.world_size = 8;
  e.rank = 5;
  e.local_world_size = 4;
  e.local_rank = 1;
  e.num_nodes = 2;
  e.node_rank = 1;
  e.master_addr = "node-0";
  e.master_port = 29500;
  e.job = "a job";
  e.restart = 2;
  return e;
}
void expect_equal(const RankEnv& a, const RankEnv& b) {
  EXPECT_EQ(a.variables(), b.variables());  // holds every member
}
class RankBoots : public testing::Test {
 protected:
  void set(const std::vector<std::string>& variables) {
    for (const std::string& v : variables) {
      const size_t equals = v.find('=');
      names_.push_back(v.substr(0, equals));
      setenv(names_.back().c_str(), v.c_str() + equals + 1, 1);
    }
  }
  void TearDown() override {
    for (const std::string& n : names_) unsetenv(n.c_str());
  }
  std::vector<std::string> names_;
};

TEST(RankEnvOf, ATableAndVariablesIsTheSame) {
  const RankEnv e = some_env();
  expect_equal(RankEnv(e.table()), e);
  EXPECT_THAT(e.variables(),
              testing::IsSupersetOf({"RANK=5", "LOCAL_RANK=1", "WORLD_SIZE=8", "LOCAL_WORLD_SIZE=4",
                                     "NODE_RANK=1", "MASTER_ADDR=node-0", "MASTER_PORT=29500"}));
}
TEST_F(RankBoots, NoSupervisorNoRank) { EXPECT_FALSE(boot_rank()); }

TEST_F(RankBoots, FindsWhatTheSupervisorLeft) {
  const RankPages pages = RankPages::create(4);
  const int request = memfd_create("request", 0), listen = open("/dev/null", O_RDONLY);
  const std::string bytes("any \0 bytes", 11);
  ASSERT_EQ(write(request, bytes.data(), bytes.size()), 11);
  set(some_env().variables());
  set({rank_mark(getppid(), dup(pages.fd()), request, listen)});
  auto boot = boot_rank();
  ASSERT_TRUE(boot);
  expect_equal(boot->env, some_env());
  EXPECT_EQ(boot->request, bytes);
  EXPECT_EQ(boot->listen_fd, listen);
  EXPECT_EQ(fcntl(listen, F_GETFD), FD_CLOEXEC);
  boot->pages.at(0).set_batch(42);
  EXPECT_EQ(pages.at(1).read().batch, 42);
  EXPECT_EQ(std::getenv("LHOST_SUPERVISOR"), nullptr);
  EXPECT_FALSE(boot_rank());
  close(listen);
}

TEST_F(RankBoots, WithoutItsSupervisorItEnds) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  set({rank_mark(gone, -1, -1, -1)});
  EXPECT_EXIT(boot_rank(), testing::ExitedWithCode(71), "");
}

TEST_F(RankBoots, WhatIsMissingOrNoNumberIsNamed) {
  const auto reason = [] {
    try {
      boot_rank();
    } catch (const Failure& f) {
      return std::string(f.what());
    }
    return std::string();
  };
  set({"LHOST_SUPERVISOR=nonsense"});
  EXPECT_THAT(reason(), testing::HasSubstr("LHOST_SUPERVISOR=nonsense"));
  set({rank_mark(getppid(), -1, -1, -1)});
  EXPECT_THAT(reason(), testing::HasSubstr("WORLD_SIZE is not set"));
  set(some_env().variables());
  set({"LOCAL_RANK=x1", rank_mark(getppid(), -1, -1, -1)});
  EXPECT_THAT(reason(), testing::HasSubstr("LOCAL_RANK=x1 is no number"));
}

}  // namespace
}  // namespace lhost
