#include "model.hpp"

#include <gmock/gmock.h>

#include <cmath>

using namespace lhost_test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Mlp = ModelTest;

TEST_F(Mlp, ParametersAreNamedAsInASequential) {
  EXPECT_THAT(Model("mlp").params(),
              ElementsAre("net.0.weight[128, 64]", "net.0.bias[128]", "net.2.weight[64, 128]",
                          "net.2.bias[64]", "net.4.weight[10, 64]", "net.4.bias[10]"));
}
TEST_F(Mlp, DropoutIsALayerOfItsOwn) {
  EXPECT_THAT(
      Model("mlp", {{"hidden", std::vector<int64_t>{5}}, {"dropout", 0.5}, {"inputs", int64_t{3}}}).params(),
      ElementsAre("net.0.weight[5, 3]", "net.0.bias[5]", "net.3.weight[10, 5]", "net.3.bias[10]"));
}
TEST_F(Mlp, WithoutHiddenLayersItIsLinear) {
  EXPECT_THAT(Model("mlp", {{"hidden", std::vector<int64_t>{}}, {"classes", int64_t{3}}}).params(),
              ElementsAre("net.0.weight[3, 64]", "net.0.bias[3]"));
}
TEST_F(Mlp, LogitsOfZeroGiveTheLossOfGuessing) {  // ln 10; the greatest of equal logits is the first: label 0
  const Model m("mlp");
  m.param("net.4.weight").data().zero_();
  m.param("net.4.bias").data().zero_();
  const at::Tensor images = at::rand({20, 8, 8});
  EXPECT_NEAR(m.loss(images, labels(20, 10)).item().toDouble(), std::log(10.0), 1e-6);
  call(m.validate(images, labels(20, 10)));
  EXPECT_NEAR(logs().values.at("val_loss"), std::log(10.0), 1e-6);
  EXPECT_NEAR(logs().values.at("val_acc"), 0.1, 1e-7);
  EXPECT_EQ(logs().declared[0].second, uint32_t{LH_PROG_BAR});
  EXPECT_EQ(m.predict(images, labels(20, 10)).sizes(), (std::vector<int64_t>{20, 10}));
}
TEST_F(Mlp, TheActivationIsTheOneNamed) {  // x = -1 through weight 1: relu 0, gelu -0.158655, tanh -0.761594
  for (const auto& [name, expected] :
       {std::pair("relu", 0.0), std::pair("gelu", -0.1586552539), std::pair("tanh", -0.7615941560)}) {
    const Model m("mlp", {{"inputs", int64_t{1}},
                          {"classes", int64_t{1}},
                          {"hidden", std::vector<int64_t>{1}},
                          {"activation", name}});
    for (const char* p : {"net.0.weight", "net.2.weight"}) m.param(p).data().fill_(1);
    for (const char* p : {"net.0.bias", "net.2.bias"}) m.param(p).data().zero_();
    const at::Tensor x = at::zeros({1, 1}).fill_(-1);
    EXPECT_NEAR(m.predict(x, labels(1, 1)).item().toDouble(), expected, 1e-6) << name;
  }
}
TEST_F(Mlp, SamplesOfAnotherSizeAreRefusedWithBothNumbers) {
  const std::string message = failure(Model("mlp").validate(at::rand({2, 28, 28}), labels(2, 10)));
  EXPECT_THAT(message, HasSubstr("a sample has 784 values, but model.inputs = 64"));
}

}  // namespace
