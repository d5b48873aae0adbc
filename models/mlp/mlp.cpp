// mlp - a classifier: linear layers with an activation between them. A sample of any shape is flattened.
// Parameters are named as in Python's nn.Sequential: net.0.weight, net.0.bias, net.2.weight, ...
#include <lhost/sdk/model.hpp>
namespace F = torch::nn::functional;

namespace {

enum class Activation { kRelu, kGelu, kTanh };

struct Options {
  int64_t inputs = 64, classes = 10;
  std::vector<int64_t> hidden = {128, 64};
  Activation activation = Activation::kRelu;
  double dropout = 0;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::inputs, "inputs", "values of one sample").min(1);
    d(&Options::classes, "classes", "labels are 0 .. classes - 1").min(1);
    d(&Options::hidden, "hidden", "widths of the hidden layers").min(1);
    d(&Options::activation, "activation", "function after each hidden layer")
        .choices({"relu", "gelu", "tanh"});
    d(&Options::dropout, "dropout", "share of activations set to zero in training; 0 = no such layer")
        .range(0.0, 1.0);
  }
};

struct Mlp : lhost::Model {
  static constexpr const char* summary = "a classifier: linear layers with an activation between them";
  torch::nn::Sequential net;
  const int64_t inputs;

  explicit Mlp(const Options& o) : inputs(o.inputs) {
    int64_t width = o.inputs;
    for (int64_t next : o.hidden) {
      net->push_back(torch::nn::Linear(width, next));
      push_activation(o.activation);
      if (o.dropout > 0) net->push_back(torch::nn::Dropout(o.dropout));
      width = next;
    }
    net->push_back(torch::nn::Linear(width, o.classes));
    register_module("net", net);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = x.flatten(1);
    if (x.size(1) != inputs)
      throw lhost::Error(LH_INVALID_ARGUMENT, "a sample has " + std::to_string(x.size(1)) +
                                                  " values, but model.inputs = " + std::to_string(inputs));
    return net->forward(x);
  }
  torch::Tensor training_step(const lhost::Batch& batch) override {
    return F::cross_entropy(forward(batch.first()), batch["label"]);
  }
  void validation_step(const lhost::Batch& batch) override {
    auto logits = forward(batch.first());
    log("val_loss", F::cross_entropy(logits, batch["label"]), {.prog_bar = true});
    log("val_acc", lhost::accuracy(logits, batch["label"]), {.prog_bar = true});
  }

 private:
  void push_activation(Activation a) {
    if (a == Activation::kRelu) net->push_back(torch::nn::ReLU());
    if (a == Activation::kGelu) net->push_back(torch::nn::GELU());
    if (a == Activation::kTanh) net->push_back(torch::nn::Tanh());
  }
};

}  // namespace
LHOST_MODEL(Mlp, Options, "mlp", "1.0.0")
