// Steps of lhost.fused/0 and gradient clipping against torch::optim and torch::nn::utils of the same LibTorch.
#include "engine/support.hpp"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <functional>

namespace lhost_test {
namespace {

constexpr lh_slot slot(const char* name, int32_t shape, uint8_t bits = 0) {
  return {sizeof(lh_slot), shape, {name, 1}, {LH_DT_FLOAT, bits, 1}, 0};
}
const std::vector<lh_slot> kSgdSlots = {slot("m", LH_SLOT_LIKE_PARAM), slot("s", LH_SLOT_SCALAR, 32)};
const std::vector<lh_slot> kAdamSlots = {slot("a", LH_SLOT_LIKE_PARAM), slot("b", LH_SLOT_LIKE_PARAM),
                                         slot("s", LH_SLOT_SCALAR, 32), slot("x", LH_SLOT_LIKE_PARAM)};

using Weights = std::vector<torch::Tensor>;

Weights make_weights(torch::ScalarType type) {
  torch::manual_seed(7);
  Weights w = {torch::randn({7, 5}, type), torch::randn({7}, type), torch::randn({3, 7}, type)};
  for (auto& t : w) t.requires_grad_();
  return w;
}
torch::Tensor loss_of(const Weights& w, int step) {
  torch::manual_seed(100 + step);
  const auto x = torch::randn({11, 5}, w[0].options().requires_grad(false));
  return (torch::tanh(x.matmul(w[0].t()) + w[1]).matmul(w[2].t())).pow(2).mean();
}
// Parameter 1 takes no part in the first steps.
torch::Tensor late_loss(const Weights& w, int step) {
  return step < 3 ? loss_of({w[0], w[1].detach(), w[2]}, step) : loss_of(w, step);
}
lh_model model_of(const Weights& w) {
  lh_model m;
  for (size_t i = 0; i < w.size(); ++i) m.entries.push_back({"w" + std::to_string(i), w[i]});
  return m;
}
// Of each tensor: the greatest deviation, relative to the greatest value.
double difference(const Weights& a, const Weights& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, (a[i] - b[i]).abs().max().item<double>() / b[i].abs().max().item<double>());
  return worst;
}

using Step = std::function<void(EngineRun&, const lh_opt_group&)>;
using Loss = torch::Tensor (*)(const Weights&, int);

void train(EngineRun& e, const Weights& w, const Step& step, Loss loss = loss_of, int steps = 10) {
  for (int i = 0; i < steps; ++i) {
    e.backward(loss(w, i));
    step(e, e.group());
    e.drop();
  }
}
Weights ours(const std::vector<lh_slot>& slots, const Step& step, torch::ScalarType type,
             Loss loss = loss_of) {
  Weights w = make_weights(type);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2}, slots);
  train(e, w, step, loss);
  return w;
}
template <class Optimizer, class Options>
Weights theirs(const Options& options, torch::ScalarType type, Loss loss = loss_of) {
  Weights w = make_weights(type);
  Optimizer optimizer(w, options);
  for (int i = 0; i < 10; ++i) {
    optimizer.zero_grad();
    loss(w, i).backward();
    optimizer.step();
  }
  return w;
}

Step sgd(lh_sgd_args a) {
  a.size = sizeof a;
  return [a](EngineRun& e, const lh_opt_group& g) { call(e.fused->sgd(&g, &a)); };
}
Step adam(lh_adam_args a) {
  a.size = sizeof a;
  return [a](EngineRun& e, const lh_opt_group& g) { call(e.fused->adam(&g, &a)); };
}

struct SgdCase {
  double momentum, dampening, decay;
  bool nesterov;
};
const SgdCase kSgdCases[] = {
    {0, 0, 0, false}, {0, 0, 0.01, false}, {0.9, 0, 0, false}, {0.9, 0.3, 0.01, false}, {0.9, 0, 0.01, true}};

void expect_sgd(Loss loss, torch::ScalarType type, double tolerance) {
  for (const SgdCase& c : kSgdCases) {
    auto options = torch::optim::SGDOptions(0.1).momentum(c.momentum).dampening(c.dampening);
    options.weight_decay(c.decay).nesterov(c.nesterov);
    const auto flags = c.nesterov ? uint32_t{LH_FUSED_NESTEROV} : 0u;
    const auto slots = c.momentum != 0 ? kSgdSlots : std::vector<lh_slot>{};
    const auto w = ours(slots, sgd({0, flags, 0.1, c.momentum, c.dampening, c.decay}), type, loss);
    EXPECT_LT(difference(w, theirs<torch::optim::SGD>(options, type, loss)), tolerance)
        << "momentum " << c.momentum << " dampening " << c.dampening << " decay " << c.decay;
  }
}

TEST(FusedSgd, EqualsTorchInFloat64) { expect_sgd(loss_of, torch::kDouble, 1e-12); }
TEST(FusedSgd, EqualsTorchInFloat32) { expect_sgd(loss_of, torch::kFloat, 1e-6); }
TEST(FusedSgd, ParameterThatJoinsLateStartsItsOwnMomentum) { expect_sgd(late_loss, torch::kDouble, 1e-12); }

TEST(FusedSgd, MaximizeIsMinimizeOfTheNegative) {
  const auto up = ours(kSgdSlots, sgd({0, LH_FUSED_MAXIMIZE, 0.1, 0.9, 0, 0}), torch::kDouble);
  const auto down = ours(kSgdSlots, sgd({0, 0, 0.1, 0.9, 0, 0}), torch::kDouble,
                         [](const Weights& w, int i) { return -loss_of(w, i); });
  EXPECT_LT(difference(up, down), 1e-15);
}

TEST(FusedAdam, EqualsTorch) {
  for (const bool amsgrad : {false, true}) {
    const auto flags = amsgrad ? uint32_t{LH_FUSED_AMSGRAD} : 0u;
    auto o = torch::optim::AdamOptions(0.01).betas({0.8, 0.99}).eps(1e-7).weight_decay(0.02).amsgrad(amsgrad);
    const lh_adam_args a{0, flags, 0.01, 0.8, 0.99, 1e-7, 0.02};
    EXPECT_LT(
        difference(ours(kAdamSlots, adam(a), torch::kDouble), theirs<torch::optim::Adam>(o, torch::kDouble)),
        1e-12);
    EXPECT_LT(
        difference(ours(kAdamSlots, adam(a), torch::kFloat), theirs<torch::optim::Adam>(o, torch::kFloat)),
        1e-6);
  }
}

TEST(FusedAdam, DecoupledEqualsTorchAdamW) {
  for (const bool amsgrad : {false, true}) {
    const auto flags = LH_FUSED_DECOUPLED | (amsgrad ? uint32_t{LH_FUSED_AMSGRAD} : 0u);
    auto o =
        torch::optim::AdamWOptions(0.01).betas({0.8, 0.99}).eps(1e-7).weight_decay(0.02).amsgrad(amsgrad);
    const lh_adam_args a{0, flags, 0.01, 0.8, 0.99, 1e-7, 0.02};
    EXPECT_LT(
        difference(ours(kAdamSlots, adam(a), torch::kDouble), theirs<torch::optim::AdamW>(o, torch::kDouble)),
        1e-12);
    EXPECT_LT(
        difference(ours(kAdamSlots, adam(a), torch::kFloat), theirs<torch::optim::AdamW>(o, torch::kFloat)),
        1e-6);
  }
}

TEST(FusedAdam, ParameterThatJoinsLateCountsItsOwnSteps) {
  const auto o = torch::optim::AdamOptions(0.01).betas({0.8, 0.99});
  const auto w = ours(kAdamSlots, adam({0, 0, 0.01, 0.8, 0.99, 1e-8, 0}), torch::kDouble, late_loss);
  EXPECT_LT(difference(w, theirs<torch::optim::Adam>(o, torch::kDouble, late_loss)), 1e-12);
}

TEST(FusedAdam, FoundInfChangesNothing) {
  Weights w = make_weights(torch::kFloat);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2}, kAdamSlots);
  const auto before = w[0].detach().clone();
  e.backward(loss_of(w, 0));
  lh_opt_group g = e.group();
  const auto found = torch::full({1}, 2.0f);
  g.found_inf = handle(found);
  adam({0, 0, 0.01, 0.8, 0.99, 1e-8, 0.1})(e, g);
  EXPECT_TRUE(torch::equal(w[0].detach(), before));
  EXPECT_EQ(tensor(engine()->slot(&e.run, 0, 2)).item<float>(), 0);
}

TEST(FusedSgd, MissingSlotsAreRefused) {
  Weights w = make_weights(torch::kFloat);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2});
  e.backward(loss_of(w, 0));
  const lh_sgd_args a{sizeof a, 0, 0.1, 0.9, 0, 0};
  const auto f = failed(e.fused->sgd(&e.group(), &a));
  EXPECT_EQ(f.code, LH_FAILED_PRECONDITION);
  EXPECT_EQ(f.message,
            "momentum needs the slots momentum_buffer and step (step: SCALAR, float32); the optimizer "
            "declared 0 slots");
}

TEST(OptimizerGroups, ParameterWithoutGradientIsUntouched) {
  Weights w = make_weights(torch::kDouble);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2}, kSgdSlots);
  w[1].detach().fill_(3);
  train(e, w, sgd({0, 0, 0.1, 0.9, 0, 0.5}), late_loss, 3);
  EXPECT_TRUE((w[1] == 3).all().item<bool>());
  EXPECT_EQ(tensor(engine()->slot(&e.run, 1, 1)).item<float>(), 0);
  EXPECT_EQ(tensor(engine()->slot(&e.run, 0, 1)).item<float>(), 3);
}

TEST(OptimizerGroups, SeveralGroupsKeepOrderAndHyperparameters) {
  Weights w = make_weights(torch::kDouble);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  call(engine()->layout(&e.run));
  e.listen({});
  const uint32_t first[] = {2, 0}, second[] = {1};
  const double hyper[] = {0.1, 0.2};
  const lh_group_spec specs[] = {{LH_STR("a"), first, 2, hyper}, {LH_STR("b"), second, 1, hyper + 1}};
  call(engine()->optimizer_groups(&e.run, specs, 2, kSgdSlots.data(), 2));
  e.backward(late_loss(w, 0));  // nothing for the only member of "b"
  const lh_opt_group* g = nullptr;
  uint64_t n = 0;
  call(engine()->gradient_groups(&e.run, &g, &n));
  ASSERT_EQ(n, 2u);
  EXPECT_EQ(text(g[0].name), "a");
  EXPECT_EQ(g[0].hyper[0], 0.1);
  EXPECT_EQ(g[1].hyper[0], 0.2);
  EXPECT_EQ(g[0].n_slots, 2u);
  ASSERT_EQ(e.tensors->list_size(g[0].params), 2u);
  EXPECT_TRUE(tensor(e.tensors->list_at(g[0].params, 0)).is_same(w[2]));
  EXPECT_TRUE(tensor(e.tensors->list_at(g[0].grads, 1)).is_same(w[0].grad()));
  EXPECT_EQ(e.tensors->list_at(g[0].slots[0], 1), engine()->slot(&e.run, 0, 0));
  EXPECT_EQ(e.tensors->list_size(g[1].params), 0u);
  EXPECT_EQ(e.tensors->list_at(g[1].params, 0), nullptr);
  EXPECT_EQ(engine()->slot(&e.run, 0, 2), nullptr);
  const lh_sgd_args a{sizeof a, 0, 0.1, 0.9, 0, 0};
  call(e.fused->sgd(&g[1], &a));  // an empty group is no error
}

TEST(OptimizerGroups, WrongMembersAreRefused) {
  Weights w = make_weights(torch::kDouble);
  lh_model m = model_of(w);
  m.entries.push_back({"mean", torch::zeros({2}), 0, LH_P_BUFFER});
  EngineRun e;
  e.adopt(m);
  call(engine()->layout(&e.run));
  const auto make = [&](std::vector<uint32_t> members) {
    const lh_group_spec g{LH_STR("g"), members.data(), members.size(), nullptr};
    return failed(engine()->optimizer_groups(&e.run, &g, 1, nullptr, 0)).message;
  };
  EXPECT_EQ(make({4}), "parameter group \"g\" has parameter index 4; the model has 4 parameters and buffers");
  EXPECT_EQ(make({3}),
            "parameter group \"g\" has \"mean\", which is not trainable (a buffer, an alias or frozen)");
  EXPECT_EQ(make({1, 1}), "parameter group \"g\" has \"w1\", which is already in group \"g\"");
}

struct Clipped {
  Weights grads;
  double norm;
};
Clipped clip_ours(torch::ScalarType type, double max_norm) {
  Weights w = make_weights(type);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2});
  e.backward(loss_of(w, 0));
  lh_tensor* sum = nullptr;
  call(engine()->grad_square_sum(&e.run, &sum));
  EXPECT_EQ(tensor(sum).scalar_type(), torch::kDouble);
  const double norm = std::sqrt(tensor(sum).item<double>());
  call(engine()->clip_norm(&e.run, sum, max_norm));
  return {{w[0].grad(), w[1].grad(), w[2].grad()}, norm};
}
Clipped clip_theirs(torch::ScalarType type, double max_norm) {
  Weights w = make_weights(type);
  loss_of(w, 0).backward();
  const double norm = torch::nn::utils::clip_grad_norm_(w, max_norm);
  return {{w[0].grad(), w[1].grad(), w[2].grad()}, norm};
}

TEST(Clip, NormEqualsTorch) {
  for (const double max_norm : {1e-3, 0.5, 1e3}) {
    const auto a = clip_ours(torch::kDouble, max_norm), b = clip_theirs(torch::kDouble, max_norm);
    EXPECT_NEAR(a.norm / b.norm, 1, 1e-12);
    EXPECT_LT(difference(a.grads, b.grads), 1e-12);
    const auto f = clip_ours(torch::kFloat, max_norm), g = clip_theirs(torch::kFloat, max_norm);
    EXPECT_NEAR(f.norm / g.norm, 1, 1e-6);
    EXPECT_LT(difference(f.grads, g.grads), 1e-6);
  }
}

TEST(Clip, ValueEqualsTorch) {
  Weights a = make_weights(torch::kDouble), b = make_weights(torch::kDouble);
  lh_model m = model_of(a);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2});
  e.backward(loss_of(a, 0));
  call(engine()->clip_value(&e.run, 0.05));
  loss_of(b, 0).backward();
  torch::nn::utils::clip_grad_value_(b, 0.05);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(a[i].grad(), b[i].grad()));
}

TEST(Clip, NotANumberIsNotHidden) {
  Weights w = make_weights(torch::kDouble);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2});
  e.backward(loss_of(w, 0), std::numeric_limits<double>::quiet_NaN());
  lh_tensor* sum = nullptr;
  call(engine()->grad_square_sum(&e.run, &sum));
  call(engine()->clip_norm(&e.run, sum, 1));
  EXPECT_TRUE(w[0].grad().isnan().all().item<bool>());
}

TEST(Gradients, ScaleMultipliesAll) {
  Weights w = make_weights(torch::kDouble);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2});
  e.backward(loss_of(w, 0));
  const auto before = w[2].grad().clone();
  call(engine()->scale_grads(&e.run, 0.25));
  EXPECT_TRUE(torch::equal(w[2].grad(), before * 0.25));
}

TEST(Gradients, NoneAtAllHaveNormZero) {
  Weights w = make_weights(torch::kDouble);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2});
  lh_tensor* sum = nullptr;
  call(engine()->grad_square_sum(&e.run, &sum));
  EXPECT_EQ(tensor(sum).item<double>(), 0);
  call(engine()->clip_norm(&e.run, sum, 1));
}

Weights with_flat(const std::vector<uint32_t>& flat, const Step& step, int64_t shards, int64_t shard) {
  Weights w = make_weights(torch::kFloat);
  lh_model m = model_of(w);
  EngineRun e;
  e.adopt(m);
  call(e.flat(LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_FLAT, flat, shards, shard));
  e.ready({0, 1, 2}, kAdamSlots);
  train(e, w, step, loss_of, shards == 1 ? 10 : 1);
  return w;
}

TEST(FlatGroup, TrainsAsLooseParameters) {
  const auto step = adam({0, 0, 0.01, 0.8, 0.99, 1e-8, 0.02});
  // same shapes at same alignment: the same bits
  EXPECT_EQ(difference(with_flat({0, 1, 2}, step, 1, 0), ours(kAdamSlots, step, torch::kFloat)), 0);
  EXPECT_EQ(difference(with_flat({2, 0}, step, 1, 0), ours(kAdamSlots, step, torch::kFloat)), 0);
}

// Each rank updates its cut only; together the cuts are the whole step.
TEST(FlatGroup, ShardsTogetherAreTheWholeStep) {
  const auto step = adam({0, 0, 0.01, 0.8, 0.99, 1e-8, 0.02});
  const Weights start = make_weights(torch::kFloat);
  Weights whole = make_weights(torch::kFloat);
  lh_model m = model_of(whole);
  EngineRun e;
  e.adopt(m);
  e.ready({0, 1, 2}, kAdamSlots);
  train(e, whole, step, loss_of, 1);

  constexpr int kShards = 3;
  Weights sum;
  for (const auto& t : start) sum.push_back(t.detach().clone());
  for (int s = 0; s < kShards; ++s) {
    const Weights part = with_flat({0, 1, 2}, step, kShards, s);
    for (size_t i = 0; i < part.size(); ++i)
      sum[i] = torch::where(part[i] != start[i], part[i], sum[i]).detach();
  }
  EXPECT_LT(difference(sum, whole), 1e-7);
}

}  // namespace
}  // namespace lhost_test
