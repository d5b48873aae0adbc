// tests/e2e/checkpoint_file.hpp - a file of torch.save, read by the installed checkpointer, and how far two tensors are
// apart.
#pragma once
#include "assembly/execute.hpp"
#include "train/checkpoint_tree.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace e2e {

class File {
 public:
  explicit File(const std::string& path) : engine_(lhost::start_engine("")), tree_(engine_) {
    static const lhost::Checkpointer torch = [] {
      lhost::Selection s;
      s.kind = "checkpointer";
      s.name = "torch";
      s.path = LHOST_TEST_PLUGINS "/checkpointer/torch.so";
      return lhost::Checkpointer(lhost::create_component(s, nullptr));
    }();
    tree_.load(torch, path);
  }
  std::vector<const lhost::TreeLeaf*> below(const std::string& key) const { return tree_.below({key}); }
  const lhost::TreeLeaf* find(const lhost::TreePath& path) const { return tree_.find(path); }

 private:
  lhost::Engine engine_;
  lhost::CheckpointTree tree_;
};

inline size_t elements(const lhost::TreeLeaf& leaf) {
  int64_t n = 1;
  for (int64_t extent : leaf.shape) n *= extent;
  return static_cast<size_t>(n);
}

inline std::vector<double> numbers(const lhost::TreeLeaf& leaf) {
  const auto as_double = [&](auto type) {
    std::vector<decltype(type)> v(elements(leaf));
    std::memcpy(v.data(), leaf.data, v.size() * sizeof type);
    return std::vector<double>(v.begin(), v.end());
  };
  if (leaf.dtype.code == LH_DT_INT) return as_double(int64_t{});
  return leaf.dtype.bits == 64 ? as_double(double{}) : as_double(float{});
}

// Greatest difference of two lists over the greatest absolute value of the expected one; NaN counts as infinite.
inline double difference(const std::vector<double>& found, const std::vector<double>& expected) {
  double scale = 0, most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double d = std::abs(found[i] - expected[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
    scale = std::max(scale, std::abs(expected[i]));
  }
  return most == 0 ? 0 : most / scale;
}

}  // namespace e2e
