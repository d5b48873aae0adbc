// sgd, adam, adamw: options and defaults as torch.optim's, slots, what reaches the fused kernels.
#include "support/component.hpp"

#include <gmock/gmock.h>
#include <lhost/optimizer.h>

using namespace lhost_test;
using testing::HasSubstr;

namespace {

struct Calls {
  std::vector<lh_sgd_args> sgd;
  std::vector<lh_adam_args> adam;
};
Calls& calls() {
  static Calls c;
  return c;
}
const lh_fused_v0 fused = {sizeof(lh_fused_v0), 0,
                           [](const lh_opt_group*, const lh_sgd_args* a) -> lh_status {
                             calls().sgd.push_back(*a);
                             return nullptr;
                           },
                           [](const lh_opt_group*, const lh_adam_args* a) -> lh_status {
                             calls().adam.push_back(*a);
                             return nullptr;
                           }};

struct Optimizer : testing::Test {
  Optimizer() {
    calls() = {};
    services()[LH_FUSED_SERVICE] = &fused;
  }
};

using Component = lhost_test::Component<lh_optimizer, lh_optimizer_v0>;

std::vector<std::string> slot_names(const Component& c) {
  const lh_slot* slots = nullptr;
  std::vector<std::string> names;
  const uint64_t n = c->slots(c.self, &slots);
  for (uint64_t i = 0; i < n; ++i) {
    names.push_back(text(slots[i].name));
    const bool is_step = names.back() == "step";
    EXPECT_EQ(slots[i].shape, is_step ? LH_SLOT_SCALAR : LH_SLOT_LIKE_PARAM);
    EXPECT_EQ(slots[i].dtype.bits, is_step ? 32 : 0);
  }
  return names;
}
lh_status step(const Component& c, const std::vector<double>& hyper) {
  lh_opt_group g{};
  g.size = sizeof g;
  const lh_slot* slots = nullptr;
  g.n_slots = static_cast<uint32_t>(c->slots(c.self, &slots));
  g.name = LH_STR("body");
  g.hyper = hyper.data();
  return c->step(c.self, &g, 1);
}
// An option's default, as the literal in the schema.
std::map<std::string, std::string> defaults(const std::string& name, std::vector<std::string>* hyper) {
  const std::string path = std::string(LHOST_TEST_PLUGINS) + "/optimizer/" + name + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const lh_plugin* plugin = reinterpret_cast<const lh_plugin* (*)()>(dlsym(library, "lh_plugin_v1"))();
  std::map<std::string, std::string> found;
  for (uint32_t i = 0; i < plugin->components->n_options; ++i) {
    const lh_option& o = plugin->components->options[i];
    found[text(o.key)] = text(o.def);
    if (o.flags & LH_O_HYPER) hyper->push_back(text(o.key));
  }
  EXPECT_EQ(plugin->components->flags, LH_OPT_ELEMENT_WISE);
  return found;
}
double as_number(const std::map<std::string, std::string>& d, const char* key) {
  return std::stod(d.at(key));
}

using Names = std::vector<std::string>;

TEST_F(Optimizer, SgdHasTheOptionsAndDefaultsOfTorch) {
  Names hyper;
  const auto d = defaults("sgd", &hyper);
  EXPECT_EQ(hyper, (Names{"lr", "momentum", "dampening", "weight_decay"}));
  EXPECT_EQ(d.size(), 6u);
  EXPECT_EQ(as_number(d, "lr"), 1e-3);
  for (const char* key : {"momentum", "dampening", "weight_decay"}) EXPECT_EQ(as_number(d, key), 0) << key;
  EXPECT_EQ(d.at("nesterov"), "false");
  EXPECT_EQ(d.at("maximize"), "false");
}
TEST_F(Optimizer, AdamAndAdamWHaveTheOptionsAndDefaultsOfTorch) {
  for (const auto& [name, decay] : {std::pair("adam", 0.0), std::pair("adamw", 0.01)}) {
    Names hyper;
    const auto d = defaults(name, &hyper);
    EXPECT_EQ(hyper, (Names{"lr", "eps", "weight_decay"}));
    EXPECT_EQ(d.size(), 6u);
    EXPECT_EQ(as_number(d, "lr"), 1e-3);
    EXPECT_EQ(d.at("betas"), "[0.9, 0.999]");
    EXPECT_EQ(as_number(d, "eps"), 1e-8);
    EXPECT_EQ(as_number(d, "weight_decay"), decay);
    EXPECT_EQ(d.at("amsgrad"), "false");
    EXPECT_EQ(d.at("maximize"), "false");
  }
}

TEST_F(Optimizer, SgdWithoutMomentumKeepsNoState) {
  EXPECT_EQ(slot_names(Component("optimizer", "sgd")), Names{});
}
TEST_F(Optimizer, SgdWithMomentumKeepsItsBuffer) {
  const Component c("optimizer", "sgd", {{"momentum", 0.9}});
  EXPECT_EQ(slot_names(c), (Names{"momentum_buffer", "step"}));
}
TEST_F(Optimizer, AdamKeepsBothMoments) {
  EXPECT_EQ(slot_names(Component("optimizer", "adam")), (Names{"exp_avg", "exp_avg_sq", "step"}));
  const Component c("optimizer", "adamw", {{"amsgrad", true}});
  EXPECT_EQ(slot_names(c), (Names{"exp_avg", "exp_avg_sq", "step", "max_exp_avg_sq"}));
}

TEST_F(Optimizer, SgdPassesTheHyperParametersOfTheGroup) {
  const Component c("optimizer", "sgd", {{"momentum", 0.9}, {"nesterov", true}, {"maximize", true}});
  call(step(c, {0.5, 0.8, 0.0, 0.01}));
  ASSERT_EQ(calls().sgd.size(), 1u);
  const lh_sgd_args& a = calls().sgd[0];
  EXPECT_EQ(a.size, sizeof a);
  EXPECT_EQ(a.lr, 0.5);
  EXPECT_EQ(a.momentum, 0.8);
  EXPECT_EQ(a.dampening, 0);
  EXPECT_EQ(a.weight_decay, 0.01);
  EXPECT_EQ(a.flags, uint32_t{LH_FUSED_NESTEROV | LH_FUSED_MAXIMIZE});
}
TEST_F(Optimizer, AdamPassesTheHyperParametersOfTheGroup) {
  const Component c("optimizer", "adam", {{"betas", std::vector<double>{0.8, 0.95}}, {"amsgrad", true}});
  call(step(c, {0.5, 1e-6, 0.02}));
  ASSERT_EQ(calls().adam.size(), 1u);
  const lh_adam_args& a = calls().adam[0];
  EXPECT_EQ(a.size, sizeof a);
  EXPECT_EQ(a.lr, 0.5);
  EXPECT_EQ(a.beta1, 0.8);
  EXPECT_EQ(a.beta2, 0.95);
  EXPECT_EQ(a.eps, 1e-6);
  EXPECT_EQ(a.weight_decay, 0.02);
  EXPECT_EQ(a.flags, uint32_t{LH_FUSED_AMSGRAD});
}
TEST_F(Optimizer, OnlyAdamWDecouplesTheDecay) {
  call(step(Component("optimizer", "adamw"), {1, 1, 1}));
  call(step(Component("optimizer", "adam"), {1, 1, 1}));
  EXPECT_EQ(calls().adam.at(0).flags, uint32_t{LH_FUSED_DECOUPLED});
  EXPECT_EQ(calls().adam.at(1).flags, 0u);
}
TEST_F(Optimizer, ARateChangedBetweenStepsReachesTheNext) {
  const Component c("optimizer", "sgd");
  call(step(c, {0.5, 0, 0, 0}));
  call(step(c, {0.25, 0, 0, 0}));
  EXPECT_EQ(calls().sgd.at(1).lr, 0.25);
}

std::string refusal(const std::string& name, const Options& options) {
  try {
    Component c("optimizer", name, options);
    return "(accepted)";
  } catch (const StatusError& e) {
    EXPECT_EQ(e.code, LH_INVALID_ARGUMENT);
    return e.what();
  }
}
TEST_F(Optimizer, NesterovNeedsMomentumWithoutDampening) {
  EXPECT_THAT(refusal("sgd", {{"nesterov", true}}), HasSubstr("momentum > 0 and dampening = 0"));
  EXPECT_THAT(refusal("sgd", {{"nesterov", true}, {"momentum", 0.9}, {"dampening", 0.1}}),
              HasSubstr("dampening = 0.1"));
  EXPECT_EQ(refusal("sgd", {{"nesterov", true}, {"momentum", 0.9}}), "(accepted)");
}
TEST_F(Optimizer, BetasAreTwoNumbersBelowOne) {
  for (const char* name : {"adam", "adamw"}) {
    EXPECT_THAT(refusal(name, {{"betas", std::vector<double>{0.9, 1.0}}}),
                HasSubstr("found 1.0, expected a number in [0, 1)"));
    EXPECT_THAT(refusal(name, {{"betas", std::vector<double>{0.9, 0.99, 0.999}}}),
                HasSubstr("found 3 numbers"));
  }
}
TEST_F(Optimizer, MomentumOfAGroupNeedsMomentumInTheBase) {
  const std::string message = failure(step(Component("optimizer", "sgd"), {0.1, 0.9, 0, 0}));
  EXPECT_THAT(message, HasSubstr("group \"body\" has momentum"));
  EXPECT_TRUE(calls().sgd.empty());
}
TEST_F(Optimizer, IsRefusedByAHostWithoutFusedKernels) {
  services().erase(LH_FUSED_SERVICE);
  EXPECT_THROW(Component("optimizer", "sgd"), StatusError);
}

}  // namespace
