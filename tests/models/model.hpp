// model.hpp - one model plugin on LibTorch tensors, with a metrics service that keeps what was logged.
#pragma once
#include "support/component.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <lhost/model.h>
#include <lhost/trainer.h>

namespace lhost_test {

inline lh_tensor* handle(const at::Tensor& t) {
  return reinterpret_cast<lh_tensor*>(const_cast<at::Tensor*>(&t));
}
inline at::Tensor& tensor(lh_tensor* h) { return *reinterpret_cast<at::Tensor*>(h); }

struct Logs {
  std::vector<std::pair<std::string, uint32_t>> declared;
  std::map<std::string, double> values;
};
inline Logs& logs() {
  static Logs l;
  return l;
}
inline const lh_metrics_v0 metrics_table = {
    sizeof(lh_metrics_v0), 0,
    [](lh_run*, lh_str name, uint32_t flags, int32_t, uint32_t* id) -> lh_status {
      *id = static_cast<uint32_t>(logs().declared.size());
      logs().declared.emplace_back(text(name), flags);
      return nullptr;
    },
    [](lh_run*, uint32_t id, lh_tensor* value, double) -> lh_status {
      logs().values[logs().declared.at(id).first] = tensor(value).item().toDouble();
      return nullptr;
    },
    nullptr};
inline const lh_trainer_v0 trainer_table = [] {
  lh_trainer_v0 t{};
  t.size = sizeof t;
  return t;
}();

struct ModelTest : testing::Test {
  ModelTest() {
    logs() = {};
    services()[LH_METRICS_SERVICE] = &metrics_table;
    services()[LH_TRAINER_SERVICE] = &trainer_table;
  }
};

class Model : public Component<lh_model, lh_model_v0> {
 public:
  explicit Model(const std::string& name, const Options& options = {}) : Component("model", name, options) {}

  // "net.0.weight[128, 64]", buffers with a star
  std::vector<std::string> params() const {
    std::vector<std::string> all;
    for (uint32_t i = 0; i < table.param_count(self); ++i) {
      lh_param_info p{};
      p.size = sizeof p;
      lh_tensor* t = nullptr;
      call(table.param(self, i, &p, &t));
      std::string s = text(p.name) + "[";
      for (int32_t d = 0; d < p.ndim; ++d) s += (d ? ", " : "") + std::to_string(p.shape[d]);
      all.push_back(s + "]" + (p.flags & LH_P_BUFFER ? "*" : ""));
    }
    return all;
  }
  at::Tensor& param(const std::string& name) const {
    for (uint32_t i = 0; i < table.param_count(self); ++i) {
      lh_param_info p{};
      p.size = sizeof p;
      lh_tensor* t = nullptr;
      call(table.param(self, i, &p, &t));
      if (text(p.name) == name) return tensor(t);
    }
    throw std::runtime_error("no parameter " + name);
  }

  // One call with a batch of images and labels.
  template <class F>
  lh_status with_batch(const at::Tensor& images, const at::Tensor& labels, F f) const {
    const lh_str names[] = {LH_STR("image"), LH_STR("label")};
    lh_tensor* const tensors[] = {handle(images), handle(labels)};
    const lh_batch batch = {sizeof batch, 2, names, tensors, images.size(0), images.size(0)};
    return f(&batch);
  }
  lh_status validate(const at::Tensor& images, const at::Tensor& labels) const {
    return with_batch(images, labels, [&](const lh_batch* b) { return table.validation_step(self, b); });
  }
  at::Tensor loss(const at::Tensor& images, const at::Tensor& labels) const {
    lh_step_out out{};
    out.size = sizeof out;
    call(with_batch(images, labels, [&](const lh_batch* b) { return table.training_step(self, b, &out); }));
    return tensor(out.loss);
  }
  at::Tensor predict(const at::Tensor& images, const at::Tensor& labels) const {
    lh_tensor* const* outs = nullptr;
    uint64_t n = 0;
    call(with_batch(images, labels,
                    [&](const lh_batch* b) { return table.predict_step(self, b, &outs, &n); }));
    return tensor(outs[0]);
  }
};

inline at::Tensor labels(int64_t n, int64_t classes) { return at::arange(n, at::kLong).remainder(classes); }

}  // namespace lhost_test
