// plugins/data/idx/idx.cpp - data component "idx": images and labels from idx files (the MNIST format),
// plain or gzip. Fields: "image" (float32, the pixels times `scale`) and "label" (int64). A split is read
// as a whole when it is described (4 bytes a pixel in memory); fetch only copies.
#include <lhost/sdk/data.hpp>

#include "idx_file.hpp"

namespace {

struct Options {
  lhost::Path train_images, train_labels, val_images, val_labels;
  lhost::Path test_images, test_labels, predict_images, predict_labels;
  double scale = 1.0;
  int64_t classes = 0;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::train_images, "train.images", "idx file with the training images, plain or gzip")
        .must_exist();
    d(&Options::train_labels, "train.labels", "idx file with their labels").must_exist();
    d(&Options::val_images, "val.images", "images for validation; see also the host's key split")
        .must_exist();
    d(&Options::val_labels, "val.labels", "their labels").must_exist();
    d(&Options::test_images, "test.images", "images for the test").must_exist();
    d(&Options::test_labels, "test.labels", "their labels").must_exist();
    d(&Options::predict_images, "predict.images", "images to predict").must_exist();
    d(&Options::predict_labels, "predict.labels", "their labels, if there are any").must_exist();
    d(&Options::scale, "scale", "what each pixel (0 to 255) is multiplied by");
    d(&Options::classes, "classes", "check that labels are 0 to classes - 1; 0 = no check").min(int64_t{0});
  }
};

const char* const kSplitNames[] = {"train", "val", "test", "predict"};

class Idx final : public lhost::Data {
 public:
  static constexpr const char* summary = "images and labels from idx files (MNIST), plain or gzip";
  explicit Idx(const Options& o)
      : files_{{o.train_images.text, o.train_labels.text},
               {o.val_images.text, o.val_labels.text},
               {o.test_images.text, o.test_labels.text},
               {o.predict_images.text, o.predict_labels.text}},
        scale_(o.scale),
        classes_(o.classes) {}

  lhost::SplitInfo describe(int32_t split) override {
    const Files& files = files_[split];
    if (files.images.empty() && files.labels.empty()) return {};
    if (files.images.empty() || (files.labels.empty() && split != LH_SPLIT_PREDICT)) {
      const std::string name = kSplitNames[split];
      const bool no_images = files.images.empty();
      throw lhost::Error(LH_INVALID_ARGUMENT, name + (no_images ? ".labels" : ".images") + " is set but " +
                                                  name + (no_images ? ".images" : ".labels") +
                                                  " is not; set both");
    }
    Samples s;
    lhost::SplitInfo info;
    const std::vector<int64_t> shape = read_images(files, s);
    info.samples = static_cast<int64_t>(s.count);
    info.fields.push_back({"image", {LH_DT_FLOAT, 32, 1}, shape});
    if (!files.labels.empty()) {
      read_labels(files, s);
      info.fields.push_back({"label", {LH_DT_INT, 64, 1}, {}});
    }
    splits_[split] = std::move(s);
    return info;
  }

  void fetch(int32_t split, const int64_t* indices, uint64_t n, int64_t, void* const* dst) const override {
    const Samples& s = splits_[split];
    auto* pixels = static_cast<float*>(dst[0]);
    for (uint64_t i = 0; i < n; ++i) {
      const auto at = static_cast<uint64_t>(indices[i]);
      if (at >= s.count)
        throw lhost::Error(LH_OUT_OF_RANGE, "there is no sample " + std::to_string(indices[i]) + ": " +
                                                kSplitNames[split] + " has " + std::to_string(s.count));
      std::memcpy(pixels + i * s.row, s.pixels.data() + at * s.row, s.row * sizeof(float));
    }
    if (s.labels.empty()) return;
    auto* labels = static_cast<int64_t*>(dst[1]);
    for (uint64_t i = 0; i < n; ++i) labels[i] = s.labels[static_cast<size_t>(indices[i])];
  }

 private:
  struct Files {
    std::string images, labels;
  };
  struct Samples {
    uint64_t count = 0, row = 0;
    std::vector<float> pixels;
    std::vector<int64_t> labels;
  };

  // Returns the shape of one image.
  std::vector<int64_t> read_images(const Files& files, Samples& s) const {
    const IdxFile file = read_idx(files.images);
    if (file.shape.size() < 2)
      throw lhost::Error(LH_INVALID_ARGUMENT, files.images +
                                                  ": has one dimension like a file of labels, expected "
                                                  "samples x height x width; are images and labels swapped?");
    s.count = static_cast<uint64_t>(file.shape[0]);
    s.row = file.values.size() / s.count;
    s.pixels.resize(file.values.size());
    const auto scale = static_cast<float>(scale_);
    for (size_t i = 0; i < file.values.size(); ++i) s.pixels[i] = static_cast<float>(file.values[i]) * scale;
    return {file.shape.begin() + 1, file.shape.end()};
  }

  void read_labels(const Files& files, Samples& s) const {
    const IdxFile file = read_idx(files.labels);
    if (file.shape.size() != 1)
      throw lhost::Error(LH_INVALID_ARGUMENT,
                         files.labels + ": has " + std::to_string(file.shape.size()) +
                             " dimensions, a file of labels has one; are images and labels "
                             "swapped?");
    if (file.values.size() != s.count)
      throw lhost::Error(LH_INVALID_ARGUMENT, files.labels + ": holds " + std::to_string(file.values.size()) +
                                                  " labels for the " + std::to_string(s.count) +
                                                  " images of " + files.images);
    s.labels.assign(file.values.begin(), file.values.end());
    for (size_t i = 0; classes_ > 0 && i < s.labels.size(); ++i)
      if (s.labels[i] >= classes_)
        throw lhost::Error(LH_INVALID_ARGUMENT, files.labels + ": label " + std::to_string(s.labels[i]) +
                                                    " of sample " + std::to_string(i) + " is outside 0.." +
                                                    std::to_string(classes_ - 1));
  }

  const Files files_[4];
  const double scale_;
  const int64_t classes_;
  Samples splits_[4];  // filled by describe, constant afterwards
};

}  // namespace

LHOST_DATA(Idx, Options, "idx", "0.1.0")
