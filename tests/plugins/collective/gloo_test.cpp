// The transport "gloo": meeting, networks, time limits.
#include "model.hpp"

#include <gmock/gmock.h>

namespace {
using namespace lhost_test;

TEST(Gloo, OneRankNeedsNoNetwork) {
  World w(1);
  w.init();
  const Tensor t(kFloat32, std::vector<float>{1, 2});
  w.ranks[0]->all_reduce(t, t, LH_REDUCE_AVG);
  EXPECT_EQ(t.values<float>(), (std::vector<float>{1, 2}));
}

}  // namespace
