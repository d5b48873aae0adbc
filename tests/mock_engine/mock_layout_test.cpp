// tests/mock_engine/mock_layout_test.cpp - tensors, values from memory, flat groups and shards of the mock
// engine.
#include "rig.hpp"

#include <gmock/gmock.h>

using namespace mock_test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const lh_tensor_v0& tensors() { return service<lh_tensor_v0>(LH_TENSOR_SERVICE); }

struct Owned {
  lh_tensor* h = nullptr;
  ~Owned() { tensors().release(h); }
  Tensor& operator*() const { return mock::tensor(h); }
};

Options wide() { return {{"inputs", int64_t{10}}, {"classes", int64_t{2}}}; }  // weight 20 elements, bias 2

}  // namespace

TEST(MockTensor, NarrowSharesItsBytesAndUniqueNoticesIt) {
  const Rig rig;  // errors need a host, which the engine learns with a run
  const int64_t shape[] = {3, 2};
  Owned whole, rows;
  call(tensors().empty(nullptr, {LH_DEVICE_CPU, 0}, {LH_DT_FLOAT, 32, 1}, shape, 2, LH_EMPTY_ZEROED,
                       &whole.h));
  EXPECT_TRUE(tensors().unique(whole.h));
  call(tensors().narrow(whole.h, 1, 2, &rows.h));
  EXPECT_FALSE(tensors().unique(whole.h));
  (*rows).set(0, 7);
  EXPECT_THAT(values(*whole), ElementsAre(0, 0, 7, 0, 0, 0));
  Owned too_far;
  EXPECT_THAT(lhost_test::failure(tensors().narrow(whole.h, 2, 2, &too_far.h)), HasSubstr("3 rows"));
}

TEST(MockTensor, RetainedHandleOutlivesTheFirst) {
  const Rig rig;  // errors need a host, which the engine learns with a run
  Owned kept;
  {
    Owned first{mock::handle(*new Tensor(Type::f64, {1}))};
    (*first).set(0, 3);
    call(tensors().retain(first.h, &kept.h));
  }
  double v = 0;
  call(service<lh_tensor_ops_v0>(LH_TENSOR_OPS_SERVICE).to_host(kept.h, &v));
  EXPECT_EQ(v, 3);
  EXPECT_TRUE(tensors().unique(kept.h));
}

TEST(MockTensor, OpsFillCopyScaleAndAdd) {
  const Rig rig;  // errors need a host, which the engine learns with a run
  const auto& ops = service<lh_tensor_ops_v0>(LH_TENSOR_OPS_SERVICE);
  Tensor x(Type::f32, {2}), y(Type::f64, {2});
  call(ops.fill(mock::handle(x), 3));
  call(ops.copy(mock::handle(y), mock::handle(x)));
  call(ops.scale(mock::handle(y), 2));
  call(ops.axpby(mock::handle(y), 10, mock::handle(x), 0.5));
  EXPECT_THAT(values(y), ElementsAre(33, 33));
}

TEST(MockEngine, AssignCastsFollowsStridesAndComparesShapes) {
  const Rig rig;                             // errors need a host, which the engine learns with a run
  double transposed[] = {1, 4, 2, 5, 3, 6};  // the [2, 3] matrix 1..6, column by column
  int64_t shape[] = {2, 3}, strides[] = {1, 2};
  const lh_view v = {transposed, {LH_DEVICE_CPU, 0}, 2, {LH_DT_FLOAT, 64, 1}, shape, strides, 0};
  const Tensor dst(Type::i64, {2, 3});
  call(engine().assign(mock::handle(dst), &v));
  EXPECT_THAT(values(dst), ElementsAre(1, 2, 3, 4, 5, 6));
  const Tensor other(Type::f32, {3, 2});
  EXPECT_THAT(lhost_test::failure(engine().assign(mock::handle(other), &v)),
              HasSubstr("found values of shape [2, 3], expected [3, 2]"));
}

TEST(MockEngine, AssignKeepsIntegersThatNoDoubleHolds) {
  const Rig rig;  // errors need a host, which the engine learns with a run
  int64_t big = (int64_t{1} << 60) + 1, got = 0;
  const lh_view v = {&big, {LH_DEVICE_CPU, 0}, 0, {LH_DT_INT, 64, 1}, nullptr, nullptr, 0};
  const Tensor dst(Type::i64, {});
  call(engine().assign(mock::handle(dst), &v));
  std::memcpy(&got, dst.data(), sizeof got);
  EXPECT_EQ(got, big);
}

TEST(MockEngine, ScalarWantsOneElement) {
  const Rig rig;  // errors need a host, which the engine learns with a run
  double v = 0;
  lh_bool ready = 0;
  const Tensor one(Type::f32, {1}), two(Type::f32, {2});
  one.set(0, 2.5);
  call(engine().scalar(mock::handle(one), &v, &ready));
  EXPECT_EQ(v, 2.5);
  EXPECT_EQ(ready, 1u);
  EXPECT_THAT(lhost_test::failure(engine().scalar(mock::handle(two), &v, &ready)), HasSubstr("2 elements"));
}

TEST(MockEngine, ToHostIsTheTensorItself) {
  const Rig rig;  // errors need a host, which the engine learns with a run
  const Tensor t(Type::f32, {2});
  Owned host;
  call(engine().to_host(mock::handle(t), &host.h));
  EXPECT_TRUE((*host).is_same(t));
}

TEST(MockLayout, ParametersStartAtCacheLinesInsideTheirGroup) {
  const uint32_t ids[] = {0, 1};
  const lh_flat_args a = {sizeof a, LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_FLAT, ids, 2, 1, 1, 0, 0};
  Rig rig(wide(), a);
  lh_flat_info info{};
  info.size = sizeof info;
  call(Rig::params().flat_info(&rig.run, 0, &info));
  EXPECT_EQ(info.numel, 32 + 16);  // 20 and 2 float32, each up to the next 16
  EXPECT_EQ(info.padded, 48);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(rig.param("linear.bias").data()) % 64, 0u);
  const Tensor full = mock::tensor(Rig::params().full(&rig.run, 0));
  EXPECT_FLOAT_EQ(static_cast<float>(full.get(19)), 2.0f);  // the weights are 0.1 to 2.0, kept
  full.set(33, 5);
  EXPECT_EQ(rig.param("linear.bias").get(1), 5);
  rig.micro(Batch({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {0}));
  EXPECT_EQ(mock::tensor(Rig::params().full_grad(&rig.run, 0)).get(33),
            rig.param("linear.bias").grad().get(1));
}

TEST(MockLayout, ShardsTogetherAreTheGroup) {
  const uint32_t ids[] = {0, 1};
  int64_t covered = 0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const lh_flat_args a = {sizeof a, LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_FLAT, ids, 2, 2, 2, rank,
                            0};
    Rig rig(wide(), a);
    rig.groups({"linear.weight", "linear.bias"}, {like_param("exp_avg")});
    lh_flat_info info{};
    info.size = sizeof info;
    call(Rig::params().flat_info(&rig.run, 0, &info));
    EXPECT_EQ(info.padded, 64);
    EXPECT_EQ(info.lo, 32 * rank);
    EXPECT_EQ(info.hi, 32 * rank + 32);
    const lh_opt_group& g = rig.gradient_group();
    for (uint64_t i = 0; i < tensors().list_size(g.params); ++i)
      covered += mock::tensor(tensors().list_at(g.params, i)).numel();
    EXPECT_EQ(engine().slot(&rig.run, rig.index("linear.weight"), 0) != nullptr, rank == 0);
    EXPECT_EQ(engine().slot(&rig.run, rig.index("linear.bias"), 0) != nullptr, rank == 1);
  }
  EXPECT_EQ(covered, 22);
}

TEST(MockLayout, FreedValuesAndGradientsComeBackUnderTheSameTensors) {
  const uint32_t ids[] = {0, 1};
  const lh_flat_args a = {
      sizeof a, LH_FULL_TRANSIENT | LH_SHARD_SEPARATE | LH_GRAD_FLAT | LH_GRAD_TRANSIENT, ids, 2, 1, 1, 0, 0};
  Rig rig(wide(), a);
  const lh_params_v0& p = Rig::params();
  const Tensor weight = rig.param("linear.weight"), shard = mock::tensor(p.shard(&rig.run, 0));
  EXPECT_FLOAT_EQ(static_cast<float>(shard.get(19)), 2.0f);
  call(p.full_free(&rig.run, 0));
  lh_view v{};
  call(tensors().view(mock::handle(weight), &v));
  EXPECT_EQ(v.data, nullptr);
  EXPECT_THROW(weight.get(0), std::out_of_range);
  call(p.full_alloc(&rig.run, 0));
  mock::tensor(p.full(&rig.run, 0)).copy_from(shard);
  EXPECT_FLOAT_EQ(static_cast<float>(weight.get(19)), 2.0f);
  EXPECT_FALSE(weight.grad().defined());
  call(p.grad_alloc(&rig.run, 0));
  EXPECT_EQ(weight.grad().get(0), 0);
  call(p.grad_free(&rig.run, 0));
  EXPECT_FALSE(weight.grad().defined());
}

TEST(MockLayout, RefusesPlansThatCannotBe) {
  const uint32_t twice[] = {0, 0}, buffer[] = {0}, one[] = {0};
  const uint32_t flat = LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_FLAT;
  struct Case {
    lh_flat_args args;
    Options model;
    const char* text;
  };
  const Case cases[] = {
      {{sizeof(lh_flat_args), flat, twice, 2, 1, 1, 0, 0}, {}, "already in a group"},
      {{sizeof(lh_flat_args), flat, buffer, 1, 1, 1, 0, 0}, {{"count", true}}, "count is not trainable"},
      {{sizeof(lh_flat_args), LH_SHARD_ALIAS, one, 1, 1, 1, 0, 0}, {}, "LH_FULL_TRANSIENT"},
      {{sizeof(lh_flat_args), LH_FULL_PERSISTENT | LH_SHARD_SEPARATE, one, 1, 1, 1, 0, 0},
       {},
       "LH_GRAD_FLAT"},
      {{sizeof(lh_flat_args), flat, one, 1, 2, 2, 2, 0}, {}, "shard_index < shard_count"},
      {{sizeof(lh_flat_args), flat, one, 0, 1, 1, 0, 0}, {}, "without parameters"}};
  for (const Case& c : cases) {
    try {
      Rig rig(c.model, c.args);
      ADD_FAILURE() << c.text;
    } catch (const lhost_test::StatusError& e) {
      EXPECT_THAT(e.what(), HasSubstr(c.text));
    }
  }
}
