#include "support/component.hpp"

#include <gmock/gmock.h>
#include <lhost/strategy.h>

using namespace lhost_test;

namespace {

using Single = Component<lh_strategy, lh_strategy_v0>;

lh_status setup(const Single& s, int64_t world_size, lh_topology* topology) {
  lh_env env{};
  env.size = sizeof env;
  env.world_size = world_size;
  lh_setup a{};
  a.size = sizeof a;
  a.env = &env;
  return s->setup(s.self, nullptr, &a, topology);
}

TEST(SingleStrategy, LeavesEverySlotOfTheStepEmpty) {
  const Single s("strategy", "single");
  lh_strategy_v0 expected{};
  expected.size = sizeof expected;
  expected.destroy = s->destroy;
  expected.setup = s->setup;
  EXPECT_EQ(std::memcmp(&s.table, &expected, sizeof expected), 0);
}
TEST(SingleStrategy, KeepsTheTopologyOfOneRank) {
  lh_topology topology = {sizeof(lh_topology), 0, 0, 1};
  call(setup(Single("strategy", "single"), 1, &topology));
  EXPECT_EQ(topology.data_rank, 0);
  EXPECT_EQ(topology.data_count, 1);
}
TEST(SingleStrategy, RefusesSeveralRanks) {
  lh_topology topology = {sizeof(lh_topology), 0, 0, 2};
  EXPECT_THAT(failure(setup(Single("strategy", "single"), 2, &topology)),
              testing::HasSubstr("trainer.devices = 1"));
}

}  // namespace
