// raw_loop.cpp - the same work as `lhost run tests/bench/step.toml`, written by hand against LibTorch: an MLP 64-128-10 on the
// digits, batch 32, the fused SGD kernel with momentum, batches copied row by row into one reused buffer. Same rows,
// order and initial weights, so the losses must be equal: else no figure counts.
//   raw_loop <train images> <train labels> <steps|pace> <warm-up steps> [fused|torch]
// torch: torch::optim::SGD instead of the fused kernel, as a tutorial has it. Prints one line of JSON; with "pace" one for
// each slice that driver.py asks for (pace.hpp).
#include "pace.hpp"

#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_sgd.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::vector<uint8_t> read_idx(const std::string& path, unsigned header) {
  std::vector<uint8_t> bytes(1 << 20);
  gzFile f = gzopen(path.c_str(), "rb");
  if (!f || gzread(f, bytes.data(), header) < static_cast<int>(header))
    throw std::runtime_error("cannot read " + path);
  bytes.resize(static_cast<size_t>(gzread(f, bytes.data(), static_cast<unsigned>(bytes.size()))));
  gzclose(f);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5)
    return std::fputs("usage: raw_loop <images> <labels> <steps|pace> <warm-up> [fused|torch]\n", stderr), 2;
  const bool paced = std::string(argv[3]) == "pace";
  const int64_t steps = paced ? INT64_MAX : std::stoll(argv[3]), warm_up = std::stoll(argv[4]), batch = 32;
  const bool fused = argc < 6 || std::string(argv[5]) == "fused";
  at::set_num_threads(1);
  at::globalContext().setFlushDenormal(true);
  torch::manual_seed(42);
  torch::nn::Sequential net{torch::nn::Linear(64, 128), torch::nn::ReLU(), torch::nn::Linear(128, 10)};

  const auto pixels = read_idx(argv[1], 16);
  const auto labels = read_idx(argv[2], 8);
  const int64_t rows = static_cast<int64_t>(labels.size());
  std::vector<float> images(pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) images[i] = static_cast<float>(pixels[i]) * 0.0625f;
  auto x = torch::empty({batch, 8, 8}), y = torch::empty({batch}, torch::kLong);
  float* to_x = x.mutable_data_ptr<float>();
  int64_t* to_y = y.mutable_data_ptr<int64_t>();

  auto params = net->parameters();
  torch::optim::SGD optimizer(params, torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<at::Tensor> momentum, grads;
  for (auto& p : params) momentum.push_back(torch::zeros_like(p.detach()));
  using Clock = std::chrono::steady_clock;
  Pace pace;
  if (paced && !pace.wait()) return 0;
  auto start = Clock::now();
  double loss_value = 0;
  for (int64_t step = 0, row = 0; step < steps; ++step) {
    if (row + batch > rows) row = 0;
    for (int64_t i = 0; i < batch; ++i) {
      std::memcpy(to_x + i * 64, images.data() + (row + i) * 64, 64 * sizeof(float));
      to_y[i] = labels[static_cast<size_t>(row + i)];
    }
    row += batch;
    for (auto& p : params) p.mutable_grad().reset();
    auto loss = torch::nn::functional::cross_entropy(net->forward(x.flatten(1)), y);
    loss.backward();
    loss_value = *loss.const_data_ptr<float>();
    if (fused) {
      const torch::NoGradGuard off;
      grads.clear();
      for (auto& p : params) grads.push_back(p.grad());
      at::_fused_sgd_(params, grads, momentum, 0.0, 0.9, 0.1, 0.0, false, false, step == 0);
    } else {
      optimizer.step();
    }
    if (step + 1 == warm_up) start = Clock::now();
    if (paced && pace.step()) {
      pace.answer(loss_value);
      if (!pace.wait()) std::_Exit(0);
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("{\"steps_per_s\": %.1f, \"loss\": %.9g}\n", static_cast<double>(steps - warm_up) / seconds,
              loss_value);
  std::fflush(nullptr);
  std::_Exit(0);
}
