// convnet - a small image classifier: blocks of convolution, batch norm, ReLU and pooling, then a linear head.
// Images [N, H, W] or [N, C, H, W] of any size that can be halved once per block.
#include <lhost/sdk/batch_norm.hpp>
#include <lhost/sdk/model.hpp>
namespace F = torch::nn::functional;

namespace {

constexpr int64_t kGrid = 2;  // the head sees the last block averaged to 2 x 2 places

struct Options {
  int64_t channels = 1, classes = 10;
  std::vector<int64_t> widths = {32, 64};
  double dropout = 0;
  int64_t shift = 0;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::channels, "channels", "channels of an image").min(1);
    d(&Options::classes, "classes", "labels are 0 .. classes - 1").min(1);
    d(&Options::widths, "widths", "channels after each block").min(1).min_len(1);
    d(&Options::dropout, "dropout", "share of the head's inputs set to zero in training").range(0.0, 1.0);
    d(&Options::shift, "shift", "training images are moved at random by up to so many pixels each way")
        .min(0);
  }
};

struct ConvNet : lhost::Model {
  static constexpr const char* summary = "a classifier of images: convolutions, then a linear layer";
  torch::nn::Sequential features, head;
  const int64_t channels, shift, least;

  explicit ConvNet(const Options& o)
      : channels(o.channels), shift(o.shift), least(int64_t{1} << std::min<size_t>(o.widths.size(), 30)) {
    int64_t in = o.channels;
    for (int64_t width : o.widths) {
      features->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, width, 3).padding(1).bias(false)));
      features->push_back(lhost::BatchNorm2d(width));
      features->push_back(torch::nn::ReLU());
      features->push_back(torch::nn::MaxPool2d(2));
      in = width;
    }
    features->push_back(torch::nn::AdaptiveAvgPool2d(kGrid));
    head->push_back(torch::nn::Flatten());
    head->push_back(torch::nn::Dropout(o.dropout));
    head->push_back(torch::nn::Linear(in * kGrid * kGrid, o.classes));
    register_module("features", features);
    register_module("head", head);
  }

  torch::Tensor forward(torch::Tensor images) {
    return head->forward(features->forward(with_channels(images)));
  }

  torch::Tensor training_step(const lhost::Batch& batch) override {
    return F::cross_entropy(forward(moved(with_channels(batch.first()))), batch["label"]);
  }
  void validation_step(const lhost::Batch& batch) override {
    auto logits = forward(batch.first());
    log("val_loss", F::cross_entropy(logits, batch["label"]), {.prog_bar = true});
    log("val_acc", lhost::accuracy(logits, batch["label"]), {.prog_bar = true});
  }

 private:
  torch::Tensor with_channels(torch::Tensor x) const {
    if (x.dim() == 3) x = x.unsqueeze(1);
    if (x.dim() != 4 || x.size(1) != channels || std::min(x.size(2), x.size(3)) < least)
      throw lhost::Error(LH_INVALID_ARGUMENT, "a batch of images has the shape " + shape(x) +
                                                  ", expected [N, " + std::to_string(channels) +
                                                  ", H, W] with H and W of at least " +
                                                  std::to_string(least) + " (model.channels, model.widths)");
    return x;
  }
  static std::string shape(const torch::Tensor& x) {
    std::string s = "[";
    for (int64_t n : x.sizes()) s += (s.size() > 1 ? ", " : "") + std::to_string(n);
    return s + "]";
  }
  // Each image moved by its own random offset; what comes in from outside is zero.
  torch::Tensor moved(const torch::Tensor& x) const {
    if (shift == 0) return x;
    const int64_t n = x.size(0), places = 2 * shift + 1;
    const auto windows =  // [N, C, places, places, H, W]
        F::pad(x, F::PadFuncOptions({shift, shift, shift, shift}))
            .unfold(2, x.size(2), 1)
            .unfold(3, x.size(3), 1);
    auto any = [&] { return torch::randint(places, {n}, x.options().dtype(torch::kLong)); };
    const auto rows = torch::arange(n, x.options().dtype(torch::kLong));
    return windows.index({rows, torch::indexing::Slice(), any(), any()});
  }
};

}  // namespace
LHOST_MODEL(ConvNet, Options, "convnet", "1.0.0")
