// tests/mock_engine/mock_engine_test.cpp - the mock engine's own numbers and events, against arithmetic by
// hand.
#include "rig.hpp"

#include <gmock/gmock.h>

#include <cmath>

using namespace mock_test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

// y = w x + b with w = 0.5, b = 0 on x = (1, 2), label = (1, 0): errors -0.5 and 1, loss (0.25 + 1) / 2,
// d loss / d w = 2 (-0.5 * 1 + 1 * 2) / 2 = 1.5, d loss / d b = 2 (-0.5 + 1) / 2 = 0.5
const Options kLine = {
    {"inputs", int64_t{1}}, {"classes", int64_t{1}}, {"loss", std::string("mse")}, {"init", 0.5}};
const std::vector<std::string> kBoth = {"linear.weight", "linear.bias"};

void set_grad(const Tensor& p, double g) {
  p.accumulate([g](int64_t) { return g; });
}

}  // namespace

TEST(MockEngine, OneSgdStepIsThatByHand) {
  Rig rig(kLine);
  rig.groups(kBoth);
  EXPECT_DOUBLE_EQ(rig.micro(Batch({1, 2}, {1, 0})), 0.625);
  EXPECT_THAT(values(rig.param("linear.weight").grad()), ElementsAre(1.5));
  EXPECT_THAT(values(rig.param("linear.bias").grad()), ElementsAre(0.5));
  rig.sgd_step(0.1);
  EXPECT_NEAR(rig.param("linear.weight").get(0), 0.5 - 0.15, 1e-7);
  EXPECT_NEAR(rig.param("linear.bias").get(0), -0.05, 1e-7);
}

TEST(MockEngine, CrossEntropyOfEqualLogitsIsLogOfTheClasses) {
  Rig rig({{"inputs", int64_t{1}}, {"classes", int64_t{4}}, {"init", 0.0}});
  rig.groups(kBoth);
  EXPECT_NEAR(rig.micro(Batch({2}, {3})), std::log(4.0), 1e-7);
  EXPECT_THAT(values(rig.param("linear.bias").grad()), ElementsAre(0.25, 0.25, 0.25, -0.75));
  EXPECT_THAT(values(rig.param("linear.weight").grad()), ElementsAre(0.5, 0.5, 0.5, -1.5));
}

TEST(MockEngine, CrossEntropyGradientIsTheSlopeOfTheLoss) {
  const Options o = {{"inputs", int64_t{2}}, {"classes", int64_t{3}}, {"units", true}};
  const lh_policy policy = {sizeof(lh_policy), {LH_DT_FLOAT, 64, 1}, {}, {}};
  Rig rig(o, "", {}, &policy);
  const Batch batch({1, 2, -1, 0.5}, {2, 0});
  rig.micro(batch);
  for (const char* name : {"scale.weight", "linear.weight", "linear.bias"}) {
    const Tensor p = rig.param(name);
    for (int64_t i = 0; i < p.numel(); ++i) {
      const double h = 1e-3, x = p.get(i);
      p.set(i, x + h);
      const double above = mock::tensor(rig.forward(batch).loss).get(0);
      p.set(i, x - h);
      const double below = mock::tensor(rig.forward(batch).loss).get(0);
      p.set(i, x);
      EXPECT_NEAR(p.grad().get(i), (above - below) / (2 * h), 2e-4)
          << name << i;  // the loss itself is float32
    }
  }
}

TEST(MockEngine, SeedsOfPartsAddUpToTheWhole) {
  Rig whole(kLine), parts(kLine);
  for (Rig* r : {&whole, &parts}) r->groups(kBoth);
  whole.micro(Batch({1, 2, 3, 0}, {1, 0, 2, 1}));
  parts.micro(Batch({1, 2, 3}, {1, 0, 2}), 0.75);
  parts.micro(Batch({0}, {1}), 0.25);
  for (const auto& name : kBoth)
    EXPECT_NEAR(whole.param(name).grad().get(0), parts.param(name).grad().get(0), 1e-6);
}

TEST(MockEngine, MomentumStartsWithTheFirstGradient) {
  struct Case {
    uint32_t flags;
    double dampening, weight_decay, first, second;  // what is taken from the weight, in learning rates
  };
  // weight 1, gradient 1 twice, momentum 0.9
  for (const Case& c :
       {Case{0, 0, 0, 1, 1.9}, Case{0, 0.5, 0, 1, 0.9 + 0.5},
        Case{LH_FUSED_NESTEROV, 0, 0, 1.9, 1 + 0.9 * 1.9}, Case{LH_FUSED_MAXIMIZE, 0, 0, -1, -1.9},
        Case{0, 0, 0.1, 1.1, 0.9 * 1.1 + 1 + 0.1 * 0.89}}) {
    Rig rig({{"inputs", int64_t{1}}, {"classes", int64_t{1}}, {"init", 1.0}});
    rig.groups({"linear.weight"}, {like_param("momentum_buffer"), scalar_slot("step")});
    const Tensor w = rig.param("linear.weight");
    const lh_sgd_args a = {sizeof a, c.flags, 0.1, 0.9, c.dampening, c.weight_decay};
    double expected = 1;
    for (double taken : {c.first, c.second}) {
      set_grad(w, 1);
      call(service<lh_fused_v0>(LH_FUSED_SERVICE).sgd(&rig.gradient_group(), &a));
      call(engine().drop_grads(&rig.run));
      expected -= 0.1 * taken;
      EXPECT_NEAR(w.get(0), expected, 1e-6) << c.flags << " " << c.dampening << " " << c.weight_decay;
    }
    EXPECT_EQ(mock::tensor(engine().slot(&rig.run, rig.index("linear.weight"), 1)).get(0), 2);
  }
}

TEST(MockEngine, TwoAdamStepsAreThoseOfTheFormula) {
  const double lr = 0.1, b1 = 0.9, b2 = 0.999, eps = 1e-8;
  struct Case {
    uint32_t flags;
    double weight_decay, g1, g2;
  };
  for (const Case& c : {Case{0, 0, 1, 3}, Case{0, 0.01, 1, 3}, Case{LH_FUSED_DECOUPLED, 0.01, 1, 3},
                        Case{LH_FUSED_AMSGRAD, 0, 3, 0}, Case{LH_FUSED_MAXIMIZE, 0, 1, 3}}) {
    Rig rig({{"inputs", int64_t{1}}, {"classes", int64_t{1}}, {"init", 1.0}});
    rig.groups({"linear.weight"}, {like_param("exp_avg"), like_param("exp_avg_sq"), scalar_slot("step"),
                                   like_param("max_exp_avg_sq")});
    const lh_adam_args a = {sizeof a, c.flags, lr, b1, b2, eps, c.weight_decay};
    const Tensor w = rig.param("linear.weight");
    double x = 1, m = 0, v = 0, greatest = 0, t = 0;
    for (double g : {c.g1, c.g2}) {
      set_grad(w, g);
      call(service<lh_fused_v0>(LH_FUSED_SERVICE).adam(&rig.gradient_group(), &a));
      call(engine().drop_grads(&rig.run));
      double d = c.flags & LH_FUSED_MAXIMIZE ? -g : g;
      if (c.flags & LH_FUSED_DECOUPLED) x *= 1 - lr * c.weight_decay;
      else d += c.weight_decay * x;
      m = b1 * m + (1 - b1) * d;
      v = b2 * v + (1 - b2) * d * d;
      greatest = std::fmax(greatest, v);
      ++t;
      const double second = c.flags & LH_FUSED_AMSGRAD ? greatest : v;
      x -= lr * (m / (1 - std::pow(b1, t))) / (std::sqrt(second / (1 - std::pow(b2, t))) + eps);
      EXPECT_NEAR(w.get(0), x, 1e-6) << c.flags << " step " << t;
    }
  }
  // a constant gradient: every step is the learning rate
  Rig rig({{"inputs", int64_t{1}}, {"classes", int64_t{1}}, {"init", 1.0}});
  rig.groups({"linear.weight"}, {like_param("exp_avg"), like_param("exp_avg_sq"), scalar_slot("step")});
  const lh_adam_args a = {sizeof a, 0, lr, b1, b2, eps, 0};
  for (double expected : {0.9, 0.8}) {
    set_grad(rig.param("linear.weight"), 2);
    call(service<lh_fused_v0>(LH_FUSED_SERVICE).adam(&rig.gradient_group(), &a));
    call(engine().drop_grads(&rig.run));
    EXPECT_NEAR(rig.param("linear.weight").get(0), expected, 1e-6);
  }
}

TEST(MockEngine, FoundInfChangesNothing) {
  Rig rig(kLine);
  rig.groups({"linear.weight"}, {like_param("exp_avg"), like_param("exp_avg_sq"), scalar_slot("step")});
  set_grad(rig.param("linear.weight"), 1);
  const Tensor found(Type::f32, {});
  found.set(0, 1);
  lh_opt_group g = rig.gradient_group();
  g.found_inf = mock::handle(found);
  const lh_adam_args a = {sizeof a, 0, 0.1, 0.9, 0.999, 1e-8, 0};
  call(service<lh_fused_v0>(LH_FUSED_SERVICE).adam(&g, &a));
  EXPECT_EQ(rig.param("linear.weight").get(0), 0.5);
  EXPECT_EQ(mock::tensor(engine().slot(&rig.run, rig.index("linear.weight"), 2)).get(0), 0);
}

TEST(MockEngine, FusedStepsNameTheSlotsThatAreMissing) {
  Rig rig(kLine);
  rig.groups({"linear.weight"});
  const lh_sgd_args a = {sizeof a, 0, 0.1, 0.9, 0, 0};
  EXPECT_THAT(lhost_test::failure(service<lh_fused_v0>(LH_FUSED_SERVICE).sgd(&rig.gradient_group(), &a)),
              HasSubstr("momentum_buffer"));
}

TEST(MockEngine, ClipsByTheNormOfAllGradients) {
  for (double max_norm : {1.0, 10.0}) {
    Rig rig(kLine);
    set_grad(rig.param("linear.weight"), 3);
    set_grad(rig.param("linear.bias"), 4);
    lh_tensor* sum = nullptr;
    call(engine().grad_square_sum(&rig.run, &sum));
    EXPECT_EQ(mock::tensor(sum).get(0), 25);
    EXPECT_EQ(mock::tensor(sum).type(), Type::f64);
    call(engine().clip_norm(&rig.run, sum, max_norm));
    const double factor = max_norm < 5 ? max_norm / (5 + 1e-6) : 1;
    EXPECT_NEAR(rig.param("linear.weight").grad().get(0), 3 * factor, 1e-7);
    EXPECT_NEAR(rig.param("linear.bias").grad().get(0), 4 * factor, 1e-7);
  }
}

TEST(MockEngine, ClipsByValueAndScales) {
  Rig rig(kLine);
  set_grad(rig.param("linear.weight"), -3);
  set_grad(rig.param("linear.bias"), 0.5);
  call(engine().clip_value(&rig.run, 1));
  EXPECT_EQ(rig.param("linear.weight").grad().get(0), -1);
  EXPECT_EQ(rig.param("linear.bias").grad().get(0), 0.5);
  call(engine().scale_grads(&rig.run, 4));
  EXPECT_EQ(rig.param("linear.weight").grad().get(0), -4);
  EXPECT_EQ(rig.param("linear.bias").grad().get(0), 2);
}

TEST(MockEngine, StrategiesOfOneRankGiveTheBitsOfLooseParameters) {
  const Options o = {
      {"inputs", int64_t{3}}, {"classes", int64_t{2}}, {"units", true}, {"unused", true}, {"count", true}};
  const std::vector<std::string> names = {"scale.weight", "linear.weight", "linear.bias", "unused.weight"};
  std::map<std::string, std::vector<double>> loose;
  for (const char* strategy : {"", "single_c", "c_ddp_like", "acme.periodic", "trace"}) {
    Rig rig(o, strategy[0] ? strategy : "");
    rig.groups(names, {like_param("momentum_buffer"), scalar_slot("step")});
    for (int k = 0; k < 10; ++k) {
      rig.micro(Batch({0.1 * k, 1, 2, -1, 0.5, 0.25}, {1, 0}));
      rig.micro(Batch({1, 0.2 * k, -2}, {0}), 0.5);
      lh_tensor* sum = nullptr;
      call(engine().grad_square_sum(&rig.run, &sum));
      call(engine().clip_norm(&rig.run, sum, 0.5));
      rig.sgd_step(0.3, 0.9, 0.01);
    }
    // in a flat group a gradient that did not come is zeros, unless the strategy says otherwise
    const bool flat = rig.params().group_count(&rig.run) > 0;
    for (const auto& n : names) {
      if (!strategy[0]) loose[n] = values(rig.param(n));
      else if (!flat || n != "unused.weight") {
        EXPECT_EQ(values(rig.param(n)), loose[n]) << strategy << " " << n;
      }
    }
    EXPECT_EQ(rig.param("unused.weight").get(0) < 1, flat) << strategy << ": the weight decays";
    EXPECT_EQ(rig.param("count").get(0), 20);
  }
  EXPECT_NE(loose["linear.weight"][0], 0.1);
}

TEST(MockEngine, AParameterWithoutGradientIsInNoList) {
  const Options o = {{"unused", true}};
  for (const char* strategy : {"", "c_ddp_like"}) {
    Rig rig(o, strategy);
    const bool flat = strategy[0] != 0;
    rig.groups({"linear.weight", "unused.weight"}, {like_param("momentum_buffer"), scalar_slot("step")});
    rig.micro(Batch({1, 2}, {0}));
    if (flat) call(rig.params().grad_absent(&rig.run, rig.index("unused.weight")));
    const lh_opt_group& g = rig.gradient_group();
    const auto& t = service<lh_tensor_v0>(LH_TENSOR_SERVICE);
    ASSERT_EQ(t.list_size(g.params), 1u) << strategy;
    EXPECT_EQ(t.list_size(g.grads), 1u);
    EXPECT_EQ(t.list_size(g.slots[1]), 1u);
    EXPECT_TRUE(mock::tensor(t.list_at(g.params, 0)).is_same(rig.param("linear.weight")));
    EXPECT_EQ(g.hyper[0], 0.5);
    call(engine().drop_grads(&rig.run));
    EXPECT_EQ(t.list_size(rig.gradient_group().params), flat ? 2u : 0u) << "absence was for one window";
  }
}

TEST(MockEngine, DroppedGradientsAreGoneAndFlatOnesZero) {
  Rig loose, flat({}, "c_ddp_like");
  for (Rig* r : {&loose, &flat}) r->micro(Batch({1, 2}, {0}));
  EXPECT_NE(flat.param("linear.bias").grad().get(0), 0);
  for (Rig* r : {&loose, &flat}) call(engine().drop_grads(&r->run));
  EXPECT_FALSE(loose.param("linear.bias").grad().defined());
  EXPECT_THAT(values(flat.param("linear.bias").grad()), ElementsAre(0, 0));
}

TEST(MockEngine, UnitEventsNestAndGradientsComeFromTheEnd) {
  Rig rig({{"units", true}}, "trace");
  lhost_test::logged().clear();
  rig.micro(Batch({1, 2}, {0}));
  EXPECT_THAT(lhost_test::logged(),
              ElementsAre("begin_micro step=0 micro=0/1 last=1", "pre_forward scale", "post_forward scale",
                          "pre_forward linear", "post_forward linear", "pre_backward root",
                          "pre_backward linear", "grad_ready linear.bias", "grad_ready linear.weight",
                          "post_backward linear", "pre_backward scale", "grad_ready scale.weight",
                          "post_backward scale", "post_backward root"));
}

TEST(MockEngine, ASkippedBatchLeavesNoTraceInTheNextOnesEvents) {
  Rig rig({{"units", true}, {"skip_at", int64_t{0}}}, "trace");
  EXPECT_EQ(rig.forward(Batch({1, 2}, {0})).loss, nullptr);
  rig.micro(Batch({1, 2}, {0}));
  lhost_test::logged().clear();
  rig.micro(Batch({1, 2}, {0}));
  EXPECT_EQ(lhost_test::logged()[9], "post_backward linear");
  EXPECT_EQ(lhost_test::logged()[10], "pre_backward scale");
}

TEST(MockEngine, InferenceHasForwardEventsOnlyAndRecordsNoGraph) {
  Rig rig({{"units", true}}, "trace");
  call(engine().inference(&rig.run, 1));
  call((*rig.model)->set_mode(rig.model->self, LH_MODE_EVAL));
  lhost_test::logged().clear();
  const Batch batch({1, 2}, {0});
  call((*rig.model)->validation_step(rig.model->self, &batch.c));
  EXPECT_THAT(lhost_test::logged(), ElementsAre("pre_forward scale", "post_forward scale",
                                                "pre_forward linear", "post_forward linear"));
}

TEST(MockEngine, AnErrorInsideBackwardKeepsItsOwner) {
  Rig rig({{"units", true}}, "trace", {{"fail", true}});
  const lh_step_out out = rig.forward(Batch({1, 2}, {0}));
  const lh_status s = engine().backward(&rig.run, out.loss, 1);
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->component, "strategy:trace");
  EXPECT_EQ(s->code, LH_ABORTED);
  EXPECT_EQ(lhost_test::failure(s), "told to fail inside backward");
}

TEST(MockEngine, BackwardRefusesWhatIsNoLoss) {
  Rig rig;
  const Batch batch({1, 2}, {0});
  lh_tensor* loss = rig.forward(batch).loss;
  call(engine().backward(&rig.run, loss, 1));
  EXPECT_THAT(lhost_test::failure(engine().backward(&rig.run, loss, 1)), HasSubstr("already"));
  Rig two({{"bad_shape_loss", true}});
  EXPECT_THAT(lhost_test::failure(engine().backward(&two.run, two.forward(batch).loss, 1)),
              HasSubstr("2 elements"));
}

TEST(MockEngine, SlotsAreZeroAndBelongToOptimisedParameters) {
  Rig rig({{"tied", true}, {"count", true}});
  rig.groups({"linear.weight"}, {like_param("exp_avg"), scalar_slot("step")});
  const uint32_t w = rig.index("linear.weight");
  EXPECT_THAT(values(mock::tensor(engine().slot(&rig.run, w, 0))), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(mock::tensor(engine().slot(&rig.run, w, 0)).shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_TRUE(mock::tensor(engine().slot(&rig.run, w, 1)).shape().empty());
  EXPECT_EQ(engine().slot(&rig.run, w, 2), nullptr);
  for (const char* name : {"linear.bias", "count", "tied.weight"})
    EXPECT_EQ(engine().slot(&rig.run, rig.index(name), 0), nullptr) << name;
}

TEST(MockEngine, ParameterGroupsAreOfTrainableParametersEachOnce) {
  Rig rig({{"count", true}});
  EXPECT_THROW(rig.groups({"count"}), lhost_test::StatusError);
  EXPECT_THROW(rig.groups({"linear.bias", "linear.bias"}), lhost_test::StatusError);
}

TEST(MockEngine, PolicySetsTheDtypeOfParametersAndSlots) {
  const lh_policy policy = {sizeof(lh_policy), {LH_DT_FLOAT, 64, 1}, {}, {}};
  Rig rig({{"tied", true}, {"count", true}}, "", {}, &policy);
  rig.groups(kBoth, {like_param("exp_avg")});
  EXPECT_EQ(rig.param("linear.weight").type(), Type::f64);
  EXPECT_EQ(rig.param("count").type(), Type::i64);
  EXPECT_TRUE(rig.param("tied.weight").is_same(rig.param("linear.weight")));
  EXPECT_EQ(mock::tensor(engine().slot(&rig.run, rig.index("linear.bias"), 0)).type(), Type::f64);
  EXPECT_EQ(rig.param("linear.weight").get(3), static_cast<double>(0.1f * 4));
}

TEST(MockEngine, RestoredGeneratorDrawsTheSameAgain) {
  Rig rig({{"noise", 0.5}});
  const Batch batch({1, 2}, {0});
  lh_tensor* state = nullptr;
  call(engine().rng_save(&rig.run, &state));
  lh_view v{};
  const auto& t = service<lh_tensor_v0>(LH_TENSOR_SERVICE);
  call(t.view(state, &v));
  const double first = mock::tensor(rig.forward(batch).loss).get(0),
               second = mock::tensor(rig.forward(batch).loss).get(0);
  EXPECT_NE(first, second);
  call(engine().rng_load(&rig.run, &v));
  EXPECT_EQ(mock::tensor(rig.forward(batch).loss).get(0), first);
  t.release(state);
}
