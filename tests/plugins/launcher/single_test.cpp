#include "support/component.hpp"

#include <gmock/gmock.h>
#include <lhost/launcher.h>

using namespace lhost_test;

namespace {

using Single = Component<lh_launcher, lh_launcher_v0>;

TEST(SingleLauncher, ThisProcessIsTheOnlyRank) {
  const Single s("launcher", "single");
  const lh_launch_spec spec = {sizeof spec, 0, 1, 1};
  lh_env env;
  std::memset(&env, 0x55, sizeof env);
  env.size = sizeof env;
  call(s->env(s.self, &spec, &env));
  EXPECT_EQ(env.size, sizeof env);
  for (int64_t one : {env.world_size, env.local_world_size, env.num_nodes}) EXPECT_EQ(one, 1);
  for (int64_t zero : {env.rank, env.local_rank, env.node_rank}) EXPECT_EQ(zero, 0);
}
TEST(SingleLauncher, RefusesMoreThanOneRank) {
  const Single s("launcher", "single");
  for (const auto& [nodes, ranks] : {std::pair(1, 2), std::pair(2, 1), std::pair(2, 0)}) {
    const lh_launch_spec spec = {sizeof spec, 0, nodes, ranks};
    lh_env env{};
    env.size = sizeof env;
    EXPECT_THAT(failure(s->env(s.self, &spec, &env)), testing::HasSubstr("leave launcher.use out"));
  }
}
TEST(SingleLauncher, KnowsARunOfOneRank) {
  const Single s("launcher", "single");
  lh_str why{};
  for (const auto& [nodes, ranks, score] : {std::tuple(1, 1, 20), {1, 0, 20}, {1, 2, 0}, {2, 1, 0}}) {
    const lh_launch_spec spec = {sizeof spec, 0, nodes, ranks};
    EXPECT_EQ(s->detect(s.self, &spec, &why), score) << nodes << " x " << ranks;
  }
}
TEST(SingleLauncher, MakesNoProcess) { EXPECT_EQ(Single("launcher", "single")->start, nullptr); }

}  // namespace
