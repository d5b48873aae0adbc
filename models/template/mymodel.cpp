// mymodel.cpp - a classifier. In the manifest: [model] plugin = "build/mymodel.so"
#include <lhost/sdk/model.hpp>
namespace F = torch::nn::functional;

struct Options {
  std::vector<int64_t> hidden = {128, 64};
  double dropout = 0.1;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::hidden, "hidden", "widths of the hidden layers").min(1);
    d(&Options::dropout, "dropout", "share of activations set to zero in training").range(0.0, 1.0);
  }
};

struct MyModel : lhost::Model {
  torch::nn::Sequential net;

  explicit MyModel(const Options& o) {
    int64_t in = 64;
    for (int64_t width : o.hidden) {
      net->push_back(torch::nn::Linear(in, width));
      net->push_back(torch::nn::ReLU());
      net->push_back(torch::nn::Dropout(o.dropout));
      in = width;
    }
    net->push_back(torch::nn::Linear(in, 10));
    register_module("net", net);
  }
  torch::Tensor forward(torch::Tensor images) { return net->forward(images.flatten(1)); }

  torch::Tensor training_step(const lhost::Batch& batch) override {
    // image [N, 8, 8] float32, label [N] int64
    return F::cross_entropy(forward(batch["image"]), batch["label"]);
  }
  void validation_step(const lhost::Batch& batch) override {
    auto logits = forward(batch["image"]);
    log("val_loss", F::cross_entropy(logits, batch["label"]), {.prog_bar = true});
    log("val_acc", lhost::accuracy(logits, batch["label"]), {.prog_bar = true});
  }
};
LHOST_MODEL(MyModel, Options, "mymodel", "1.0.0")
