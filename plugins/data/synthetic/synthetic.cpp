// plugins/data/synthetic/synthetic.cpp - data component "synthetic": made-up samples that a model can
// learn, for trials and benchmarks. Every value is a pure function of (seed, split, sample, element): any
// thread, any order, any machine gives the same sample, and nothing is kept in memory. Fields: "image"
// (float32) and "label".
//   classification: image = centre of the class + noise, both of unit variance; label int64
//   regression:     image = noise; label = <image, w> / sqrt(n) + 0.1 noise, float32
#include <cmath>
#include <lhost/sdk/data.hpp>

namespace {

enum class Task { Classification, Regression };

struct Options {
  int64_t samples = 1024, val_samples = 256, test_samples = 256;
  std::vector<int64_t> shape{64};
  int64_t classes = 10;
  int64_t seed = 0;
  Task kind = Task::Classification;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::samples, "samples", "samples to train on").min(int64_t{0});
    d(&Options::val_samples, "val_samples", "samples to validate on").min(int64_t{0});
    d(&Options::test_samples, "test_samples", "samples to test on").min(int64_t{0});
    d(&Options::shape, "shape", "shape of one sample").min(int64_t{1}).min_len(1);
    d(&Options::classes, "classes", "number of classes").min(int64_t{1});
    d(&Options::seed, "seed", "another seed, another data set");
    d(&Options::kind, "kind", "what there is to learn").choices({"classification", "regression"});
  }
};

// splitmix64 (Steele, Lea, Flood 2014): `x + i * 0x9e37...` for i = 0, 1, 2... gives its stream
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Nearly normal with mean 0 and variance 1: the sum of four uniform 16-bit numbers. Integers only, hence
// the same bits with every compiler.
float normal(uint64_t key, uint64_t element) {
  const uint64_t r = mix(key + element * 0x9e3779b97f4a7c15u);
  const auto sum = static_cast<int32_t>((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48));
  return static_cast<float>(sum - 2 * 65535) * (1.0f / 37837.0f);  // sqrt(4 * (65536^2 - 1) / 12) = 37837.2
}

class Synthetic final : public lhost::Data {
 public:
  static constexpr const char* summary = "made-up samples that a model can learn";
  explicit Synthetic(const Options& o) : o_(o) {
    for (const int64_t d : o.shape)
      if (__builtin_mul_overflow(size_, static_cast<uint64_t>(d), &size_) || size_ > uint64_t{1} << 32)
        throw lhost::Error(LH_INVALID_ARGUMENT, "shape: one sample has more than 2^32 values");
  }

  lhost::SplitInfo describe(int32_t split) override {
    const int64_t samples[] = {o_.samples, o_.val_samples, o_.test_samples, 0};
    if (samples[split] == 0) return {};
    const lh_dtype label = regression() ? lh_dtype{LH_DT_FLOAT, 32, 1} : lh_dtype{LH_DT_INT, 64, 1};
    return {samples[split], {{"image", {LH_DT_FLOAT, 32, 1}, o_.shape}, {"label", label, {}}}};
  }

  void fetch(int32_t split, const int64_t* indices, uint64_t n, int64_t, void* const* dst) const override {
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t key = stream(1 + static_cast<uint64_t>(split), static_cast<uint64_t>(indices[i]));
      float* image = static_cast<float*>(dst[0]) + i * size_;
      if (regression()) static_cast<float*>(dst[1])[i] = regress(key, image);
      else static_cast<int64_t*>(dst[1])[i] = classify(key, image);
    }
  }

 private:
  bool regression() const { return o_.kind == Task::Regression; }
  // Domain 0 is what is to be learnt, 1 to 4 are the splits.
  uint64_t stream(uint64_t domain, uint64_t i) const {
    return mix(mix(mix(static_cast<uint64_t>(o_.seed)) + domain) + i);
  }

  int64_t classify(uint64_t key, float* image) const {
    const uint64_t label = mix(key) % static_cast<uint64_t>(o_.classes);
    const uint64_t centre = stream(0, label);
    for (uint64_t e = 0; e < size_; ++e) image[e] = normal(centre, e) + normal(key, e);
    return static_cast<int64_t>(label);
  }
  float regress(uint64_t key, float* image) const {
    const uint64_t weights = stream(0, 0);
    double sum = 0;
    for (uint64_t e = 0; e < size_; ++e) {
      image[e] = normal(key, e);
      sum += double{image[e]} * double{normal(weights, e)};
    }
    return static_cast<float>(sum / std::sqrt(static_cast<double>(size_))) + 0.1f * normal(key, size_);
  }

  const Options o_;
  uint64_t size_ = 1;
};

}  // namespace

LHOST_DATA(Synthetic, Options, "synthetic", "0.1.0")
