// mock_data.cpp - samples that can be computed by hand. Sample i of every split has
//   x[j] = ((i + j) mod 5) / 4  float32 [features]     label = i mod classes  int64     index = i  int64
#include <lhost/sdk/data.hpp>

#include <chrono>
#include <thread>

namespace {

struct Options {
  int64_t samples = 8, val_samples = 4, test_samples = 0, predict_samples = 0;
  int64_t features = 2, classes = 2;
  int64_t fail_at = -1, slow_ms = 0;
  bool describe_fails = false;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::samples, "samples", "samples to train on").min(0);
    d(&Options::val_samples, "val_samples", "samples to validate on; 0 = no such split").min(0);
    d(&Options::test_samples, "test_samples", "samples to test on; 0 = no such split").min(0);
    d(&Options::predict_samples, "predict_samples", "samples to predict; 0 = no such split").min(0);
    d(&Options::features, "features", "length of x").min(1);
    d(&Options::classes, "classes", "number of labels").min(1);
    d(&Options::fail_at, "fail_at", "index of a sample that cannot be read; -1 = none").min(-1);
    d(&Options::slow_ms, "slow_ms", "milliseconds that each fetch takes").min(0);
    d(&Options::describe_fails, "describe_fails", "fail when asked what there is");
  }
};

class MockData : public lhost::Data {
 public:
  explicit MockData(const Options& o) : o_(o) {}

  lhost::SplitInfo describe(int32_t split) override {
    if (o_.describe_fails) throw lhost::Error(LH_NOT_FOUND, "told to fail in describe");
    const int64_t samples[] = {o_.samples, o_.val_samples, o_.test_samples, o_.predict_samples};
    return {samples[split],
            {{"x", {LH_DT_FLOAT, 32, 1}, {o_.features}},
             {"label", {LH_DT_INT, 64, 1}, {}},
             {"index", {LH_DT_INT, 64, 1}, {}}}};
  }

  void fetch(int32_t, const int64_t* indices, uint64_t n, int64_t, void* const* dst) const override {
    if (o_.slow_ms) std::this_thread::sleep_for(std::chrono::milliseconds(o_.slow_ms));
    auto* x = static_cast<float*>(dst[0]);
    auto* label = static_cast<int64_t*>(dst[1]);
    auto* index = static_cast<int64_t*>(dst[2]);
    for (uint64_t k = 0; k < n; ++k) {
      const int64_t i = indices[k];
      if (i == o_.fail_at) throw lhost::Error(LH_DATA_LOSS, "sample " + std::to_string(i) + ": told to fail");
      for (int64_t j = 0; j < o_.features; ++j) *x++ = static_cast<float>((i + j) % 5) / 4;
      *label++ = i % o_.classes;
      *index++ = i;
    }
  }

 private:
  Options o_;
};

}  // namespace
LHOST_DATA(MockData, Options, "mock_data", "1.0.0")
