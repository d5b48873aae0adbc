// tests/plugins/data/data_source.hpp - a data component with what tests ask of it.
#pragma once
#include <lhost/data.h>

#include <vector>

#include "support/component.hpp"
#include "support/temp_dir.hpp"

namespace lhost_test {

class DataSource {
 public:
  DataSource(const std::string& name, const Options& options) : component_("data", name, options) {}

  lh_split describe(int32_t split) {
    lh_split s{};
    s.size = sizeof s;
    call(component_->describe(component_.self, split, &s));
    return s;
  }
  std::string describe_failure(int32_t split) {
    lh_split s{};
    s.size = sizeof s;
    return failure(component_->describe(component_.self, split, &s));
  }

  // The first field of the samples, and the second as T.
  template <class T>
  struct Rows {
    std::vector<float> inputs;
    std::vector<T> labels;
  };
  template <class T>
  Rows<T> fetch(int32_t split, const std::vector<int64_t>& indices, int64_t epoch = 0) {
    const lh_split s = describe(split);
    Rows<T> rows;
    int64_t row = 1;
    for (int32_t i = 0; i < s.fields[0].ndim; ++i) row *= s.fields[0].shape[i];
    rows.inputs.resize(indices.size() * static_cast<size_t>(row));
    if (s.n_fields > 1) rows.labels.resize(indices.size());
    void* const dst[] = {rows.inputs.data(), rows.labels.data()};
    call(component_->fetch(component_.self, split, indices.data(), indices.size(), epoch, dst));
    return rows;
  }
  std::string fetch_failure(int32_t split, int64_t index) {
    std::vector<float> inputs(4096);
    int64_t label = 0;
    void* const dst[] = {inputs.data(), &label};
    return failure(component_->fetch(component_.self, split, &index, 1, 0, dst));
  }

 private:
  Component<lh_data, lh_data_v0> component_;
};

}  // namespace lhost_test
