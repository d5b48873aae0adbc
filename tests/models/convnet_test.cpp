#include "model.hpp"

#include <gmock/gmock.h>

#include <cmath>

using namespace lhost_test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using ConvNet = ModelTest;

TEST_F(ConvNet, ParametersAreNamedAsInPython) {
  const Model m("convnet",
                {{"widths", std::vector<int64_t>{3, 5}}, {"channels", int64_t{2}}, {"classes", int64_t{7}}});
  EXPECT_THAT(m.params(),
              ElementsAre("features.0.weight[3, 2, 3, 3]", "features.1.weight[3]", "features.1.bias[3]",
                          "features.1.running_mean[3]*", "features.1.running_var[3]*",
                          "features.1.num_batches_tracked[]*", "features.4.weight[5, 3, 3, 3]",
                          "features.5.weight[5]", "features.5.bias[5]", "features.5.running_mean[5]*",
                          "features.5.running_var[5]*", "features.5.num_batches_tracked[]*",
                          "head.2.weight[7, 20]", "head.2.bias[7]"));
}
TEST_F(ConvNet, LogitsOfZeroGiveTheLossOfGuessing) {
  const Model m("convnet");
  m.param("head.2.weight").data().zero_();
  m.param("head.2.bias").data().zero_();
  EXPECT_NEAR(m.loss(at::rand({20, 8, 8}), labels(20, 10)).item().toDouble(), std::log(10.0), 1e-6);
  call(m.validate(at::rand({20, 8, 8}), labels(20, 10)));
  EXPECT_NEAR(logs().values.at("val_loss"), std::log(10.0), 1e-6);
  EXPECT_NEAR(logs().values.at("val_acc"), 0.1, 1e-7);
}
TEST_F(ConvNet, TakesImagesOfAnySize) {
  const Model m("convnet", {{"channels", int64_t{3}}});
  for (int64_t side : {4, 8, 28, 33})
    EXPECT_EQ(m.predict(at::rand({2, 3, side, side + 1}), labels(2, 10)).sizes(),
              (std::vector<int64_t>{2, 10}));
}
TEST_F(ConvNet, OtherShapesAreRefusedWithTheExpectedOne) {
  const Model m("convnet");
  for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 3, 8, 8}, {2, 3, 8}, {2, 64}, {2, 1, 2, 8}})
    EXPECT_THAT(failure(m.validate(at::rand(shape), labels(2, 10))),
                HasSubstr("expected [N, 1, H, W] with H and W of at least 4"))
        << shape.size();
}
// One pixel in a corner, moved by up to 2: of 25 places 9 are inside, so on the mean 0.36 of the pixels stay.
TEST_F(ConvNet, ShiftMovesTrainingImagesOnly) {
  const Model m("convnet",
                {{"shift", int64_t{2}}, {"widths", std::vector<int64_t>{1}}, {"classes", int64_t{2}}});
  // only the sum of the image matters: the convolution passes it on, the norm's running mean tells it
  at::Tensor& kernel = m.param("features.0.weight");
  kernel.data().zero_();
  kernel.data().slice(2, 1, 2).slice(3, 1, 2).fill_(1);
  at::Tensor images = at::zeros({4000, 8, 8});
  images.slice(1, 0, 1).slice(2, 0, 1).fill_(64);  // mean of an unmoved image: 1
  m.loss(images, labels(4000, 2));
  const double mean = m.param("features.1.running_mean").item().toDouble() / 0.1;  // momentum 0.1, from 0
  EXPECT_NEAR(mean, 0.36, 0.05);  // 6.6 standard deviations of sqrt(0.36 * 0.64 / 4000)

  call(m->set_mode(m.self, LH_MODE_EVAL));
  at::Tensor once = m.predict(images, labels(4000, 2)).clone();
  EXPECT_TRUE(once.equal(m.predict(images, labels(4000, 2))));
}

}  // namespace
