// Events of units and gradients around backward, seeds, and errors out of backward.
#include "engine/support.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <stdexcept>

struct lh_strategy {
  std::vector<std::string> events;
  std::string fail_at;
  bool by_exception = false;

  lh_status add(const std::string& what) {
    events.push_back(what);
    if (what != fail_at) return nullptr;
    if (by_exception) throw std::runtime_error("thrown in " + what);
    return new lh_error{LH_PEER_LOST, "strategy:trace", "slot", "gave up at " + what};
  }
};

namespace lhost_test {
namespace {

std::string number(uint32_t i) { return std::to_string(i); }
const lh_strategy_units_v0 kUnits = {
    sizeof(lh_strategy_units_v0),
    0,
    [](lh_strategy* s, uint32_t u, int32_t) { return s->add("pre_forward " + number(u)); },
    [](lh_strategy* s, uint32_t u, int32_t) { return s->add("post_forward " + number(u)); },
    [](lh_strategy* s, uint32_t u) { return s->add("pre_backward " + number(u)); },
    [](lh_strategy* s, uint32_t u) { return s->add("post_backward " + number(u)); }};
lh_status grad_ready(lh_strategy* s, uint32_t p) { return s->add("grad " + number(p)); }

at::Tensor leaf(at::IntArrayRef shape) { return at::randn(shape, at::kDouble).requires_grad_(); }

// unit 1 has inner unit 2 BEFORE its own weight; the input needs no gradient; unit 0 has the head.
class UnitEvents : public testing::Test {
 protected:
  UnitEvents() {
    model.entries = {
        {"outer.w", leaf({4, 4}), 1}, {"outer.inner.w", leaf({4, 4}), 2}, {"head", leaf({1, 4}), 0}};
    model.units = {{"", 0, {2}}, {"outer", 0, {0}}, {"outer.inner", 1, {1}}};
    e.adopt(model);
    call(engine()->layout(&e.run));
  }
  void listen() { calls = e.listen({&strategy, grad_ready, &kUnits}); }
  lh_status bracket(decltype(lh_unit_calls::enter) f, uint32_t unit, at::Tensor& t) {
    lh_tensor* h = handle(t);
    return f(calls->ctx, unit, &h, 1);
  }
  const at::Tensor& w(int i) { return model.entries[i].tensor; }
  at::Tensor loss() {
    at::Tensor x = input;
    call(bracket(calls->enter, 1, x));
    call(bracket(calls->enter, 2, x));
    x = x.matmul(w(1).t());
    call(bracket(calls->exit, 2, x));
    x.relu_();  // in place on what a unit returned: allowed
    x = x.matmul(w(0).t());
    call(bracket(calls->exit, 1, x));
    return x.matmul(w(2).t()).mean();
  }

  lh_model model;
  const at::Tensor input = at::randn({3, 4}, at::kDouble);
  lh_strategy strategy;
  EngineRun e;
  const lh_unit_calls* calls = nullptr;
};

TEST_F(UnitEvents, NestAndComeInOrder) {
  listen();
  const std::vector<std::string> expected = {
      "pre_forward 1",   "pre_forward 2",   "post_forward 2", "post_forward 1", "pre_backward 0",
      "grad 2",          "pre_backward 1",  "grad 0",         "pre_backward 2", "grad 1",
      "post_backward 2", "post_backward 1", "post_backward 0"};
  for (int step = 0; step < 3; ++step) {
    strategy.events.clear();
    e.backward(loss());
    EXPECT_EQ(strategy.events, expected);
    e.drop();
  }
}

TEST_F(UnitEvents, BoundariesDoNotChangeGradients) {
  listen();
  e.backward(loss());
  std::vector<at::Tensor> with;
  for (int i = 0; i < 3; ++i) with.push_back(w(i).grad().clone());
  e.drop();
  input.matmul(w(1).t()).relu().matmul(w(0).t()).matmul(w(2).t()).mean().backward();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(with[i].equal(w(i).grad())) << i;
}

TEST_F(UnitEvents, ParameterWithoutUseIsClosedAtTheEnd) {
  listen();
  at::Tensor x = input;
  call(bracket(calls->enter, 2, x));
  x = x.matmul(w(1).t());
  call(bracket(calls->exit, 2, x));
  strategy.events.clear();
  e.backward(x.mean());
  EXPECT_EQ(strategy.events, (std::vector<std::string>{"pre_backward 0", "pre_backward 2", "grad 1",
                                                       "post_backward 2", "post_backward 0"}));
}

TEST_F(UnitEvents, WithoutListenersThereAreNoCalls) {
  calls = e.listen({&strategy, nullptr, nullptr});
  EXPECT_EQ(calls->enter, nullptr);
  EXPECT_EQ(calls->exit, nullptr);
}

TEST_F(UnitEvents, NoBackwardEventsInInference) {
  listen();
  call(engine()->inference(&e.run, 1));
  const auto l = loss();
  call(engine()->inference(&e.run, 0));
  EXPECT_FALSE(l.requires_grad());
  EXPECT_TRUE(loss().requires_grad());
}

TEST_F(UnitEvents, ErrorOfTheStrategyKeepsItsNameOutOfBackward) {
  listen();
  for (const char* at :
       {"pre_backward 0", "grad 2", "pre_backward 2", "grad 1", "post_backward 2", "post_backward 0"}) {
    strategy.fail_at = at;
    const auto l = loss();
    const auto f = failed(engine()->backward(&e.run, handle(l), 1));
    EXPECT_EQ(f.code, LH_PEER_LOST);
    EXPECT_EQ(f.component, "strategy:trace");
    EXPECT_EQ(f.message, std::string("gave up at ") + at);
  }
  strategy.fail_at.clear();
  strategy.events.clear();
  e.backward(loss());  // and the next backward starts afresh
  EXPECT_EQ(strategy.events.back(), "post_backward 0");
}

TEST_F(UnitEvents, ExceptionOfTheStrategyIsCaughtAndBlamed) {
  listen();
  strategy.by_exception = true;
  strategy.fail_at = "grad 1";
  const auto l = loss();
  const auto f = failed(engine()->backward(&e.run, handle(l), 1));
  EXPECT_EQ(f.code, LH_PLUGIN_FAULT);
  EXPECT_EQ(f.component, "strategy");
  EXPECT_EQ(f.message, "an exception left the function: thrown in grad 1; expected a status");
}

class Backward : public testing::Test {
 protected:
  void start(at::Tensor w) {
    model.entries = {{"w", std::move(w)}};
    e.adopt(model);
    e.ready({0});
  }
  const at::Tensor& w() { return model.entries[0].tensor; }
  lh_model model;
  EngineRun e;
};

TEST_F(Backward, AddsGradientsTimesSeed) {
  start(at::tensor({2.0, 3.0}).requires_grad_());
  for (const double seed : {1.0, 0.5, 0.25, 0.25, 4.0}) e.backward((w() * w()).sum(), seed);
  EXPECT_EQ(w().grad()[0].item().toDouble(), 6.0 * 4);
  EXPECT_EQ(w().grad()[1].item().toDouble(), 6.0 * 6);
}

// The gradient of a sum of one element is the seed itself, and autograd moves it into .grad.
TEST_F(Backward, SeedThatBecameAGradientIsNotReused) {
  start(at::tensor({2.0}).requires_grad_());
  for (int window = 0; window < 3; ++window) {
    e.backward(w().sum());
    e.backward(w().sum());
    EXPECT_EQ(w().grad().item().toDouble(), 2.0);
    call(engine()->scale_grads(&e.run, 8));
    e.drop();
  }
  e.backward((w() * 3).sum());
  EXPECT_EQ(w().grad().item().toDouble(), 3.0);
}

TEST_F(Backward, LossOfOtherShapeOrTypeGetsItsOwnSeed) {
  start(at::tensor({2.0}).requires_grad_());
  e.backward((w() * 3).sum());
  e.backward(w() * 3);
  e.backward((w().to(at::kFloat) * 3).sum());
  EXPECT_EQ(w().grad().item().toDouble(), 9.0);
}

TEST_F(Backward, LossOfManyElementsIsRefused) {
  start(at::randn({32, 10}).requires_grad_());
  const auto l = w() * 2;
  const auto f = failed(engine()->backward(&e.run, handle(l), 1));
  EXPECT_EQ(f.code, LH_INVALID_ARGUMENT);
  EXPECT_EQ(f.message,
            "training_step returned a loss of shape [32, 10]; expected one element (take the mean)");
}

TEST_F(Backward, LossWithoutGraphIsRefused) {
  start(at::randn({2}).requires_grad_());
  const auto l = w().detach().sum();
  const auto f = failed(engine()->backward(&e.run, handle(l), 1));
  EXPECT_EQ(f.code, LH_INVALID_ARGUMENT);
  EXPECT_NE(f.message.find("does not depend on any trainable parameter"), std::string::npos) << f.message;
}

TEST_F(Backward, FaultOfAnOperationIsOneMessageWithoutBacktrace) {
  start(at::randn({2}).requires_grad_());
  auto x = w() * 2;
  const auto l = (x * x).sum();
  x.add_(1);  // a saved value changed in place
  const auto f = failed(engine()->backward(&e.run, handle(l), 1));
  EXPECT_EQ(f.component, "engine");
  EXPECT_NE(f.message.find("modified by an inplace operation"), std::string::npos) << f.message;
  EXPECT_EQ(f.message.find("frame #"), std::string::npos) << f.message;
}

}  // namespace
}  // namespace lhost_test
