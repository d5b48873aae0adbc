// Gradients that share a buffer while their parameters stay where they are: LH_FULL_LOOSE.
#include "engine/support.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

namespace lhost_test {
namespace {

// 0 w [3,5], 1 bias [3], 2 last [2,3]
struct LooseGroups : testing::Test {
  LooseGroups() {
    for (const auto& [name, t] :
         {std::pair("w", at::randn({3, 5})), {"bias", at::randn({3})}, {"last", at::randn({2, 3})}})
      model.entries.push_back({name, t.requires_grad_()});
  }
  at::Tensor loss() {
    const auto& m = model.entries;
    return (at::ones({2, 5}).matmul(m[0].tensor.t()) + m[1].tensor).matmul(m[2].tensor.t()).sum();
  }
  lh_model model;
  EngineRun e;
};

TEST_F(LooseGroups, GroupLeavesParametersWhereTheyAre) {
  e.adopt(model);
  const void* place = model.entries[0].tensor.const_data_ptr();
  call(e.flat(LH_FULL_LOOSE | LH_GRAD_FLAT, {1, 0, 2}, 1, 0, /*tail=*/5));
  e.ready({0, 1, 2});
  EXPECT_EQ(model.entries[0].tensor.const_data_ptr(), place);
  EXPECT_EQ(e.params->full(&e.run, 0), nullptr);
  const auto& grads = tensor(e.params->full_grad(&e.run, 0));
  EXPECT_EQ(grads.numel(), 16 * 3 + 5);
  e.backward(loss());
  EXPECT_EQ(model.entries[1].tensor.grad().const_data_ptr(), grads.const_data_ptr()) << "first in the group";
  EXPECT_EQ(grads.narrow(0, 48, 5).count_nonzero().item().toLong(), 0) << "the tail is the strategy's";
}

TEST_F(LooseGroups, RegroupedGradientsAreThoseOfTheOptimizer) {
  e.adopt(model);
  call(e.flat(LH_FULL_LOOSE | LH_GRAD_FLAT, {0, 1, 2}));
  e.ready({0, 1, 2});
  e.backward(loss());
  const auto before = tensor(e.params->full_grad(&e.run, 0)).narrow(0, 0, 15).clone();
  e.drop();
  const uint32_t first[] = {2}, second[] = {1, 0};
  const lh_flat_args groups[] = {{sizeof(lh_flat_args), LH_FULL_LOOSE | LH_GRAD_FLAT, first, 1, 1, 1, 0, 0},
                                 {sizeof(lh_flat_args), LH_FULL_LOOSE | LH_GRAD_FLAT, second, 2, 1, 1, 0, 3}};
  call(e.params->regroup(&e.run, groups, 2));
  e.backward(loss());
  EXPECT_EQ(e.params->group_count(&e.run), 2u);
  const auto& moved = tensor(e.params->full_grad(&e.run, 1));
  EXPECT_TRUE(moved.narrow(0, 16, 15).equal(before));
  const lh_opt_group& g = e.group();
  EXPECT_EQ(tensor(e.tensors->list_at(g.grads, 0)).const_data_ptr(), moved.narrow(0, 16, 1).const_data_ptr());
  EXPECT_EQ(failed(e.params->regroup(&e.run, groups, 1)).code, LH_INVALID_ARGUMENT)
      << "a parameter would be lost";
}

TEST_F(LooseGroups, AnAbsentGradientIsLeftOutForOneWindow) {
  e.adopt(model);
  call(e.flat(LH_FULL_LOOSE | LH_GRAD_FLAT, {0, 1, 2}));
  e.ready({0, 1, 2});
  e.backward(loss());
  call(e.params->grad_absent(&e.run, 1));
  EXPECT_EQ(e.tensors->list_size(e.group().grads), 2u);
  e.drop();
  e.backward(loss());
  EXPECT_EQ(e.tensors->list_size(e.group().grads), 3u);
}

// An embedding's sparse gradient goes into its group as its dense values.
TEST(SparseGradients, BecomeDense) {
  lh_model model{{{"table", at::rand({6, 3}).requires_grad_()}}};
  EngineRun e;
  e.adopt(model);
  call(e.flat(LH_FULL_LOOSE | LH_GRAD_FLAT, {0}));
  e.ready({0});
  const at::Tensor rows = at::arange(4, at::kLong).remainder(2);
  for (int micro = 0; micro < 2; ++micro)
    e.backward(at::embedding(model.entries[0].tensor, rows, -1, false, /*sparse=*/true).sum());
  const at::Tensor expected = at::zeros({6, 3});
  expected.narrow(0, 0, 2).fill_(4);  // two rows of each, two micro-batches
  EXPECT_TRUE(model.entries[0].tensor.grad().equal(expected));
}

}  // namespace
}  // namespace lhost_test
