// bench.log - the MLP 64-128-10 of step.toml that also logs a number of scalars in every step (C4).
#include <lhost/sdk/model.hpp>
namespace F = torch::nn::functional;

struct Options {
  int64_t scalars = 8;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::scalars, "scalars", "values logged in each step").min(0);
  }
};

struct LogModel : lhost::Model {
  torch::nn::Sequential net{torch::nn::Linear(64, 128), torch::nn::ReLU(), torch::nn::Linear(128, 10)};
  std::vector<std::string> names;

  explicit LogModel(const Options& o) {
    register_module("net", net);
    for (int64_t i = 0; i < o.scalars; ++i) names.push_back("scalar_" + std::to_string(i));
  }
  torch::Tensor training_step(const lhost::Batch& batch) override {
    auto loss = F::cross_entropy(net->forward(batch.first().flatten(1)), batch["label"]);
    for (const std::string& name : names) log(name, loss);
    return loss;
  }
};
LHOST_MODEL(LogModel, Options, "bench.log", "1.0.0")
