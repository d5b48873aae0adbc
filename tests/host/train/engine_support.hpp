// tests/host/train/engine_support.hpp - the mock engine in this process, and tensors of it as plain numbers.
#pragma once
#include "kinds/component.hpp"
#include "train/run_state.hpp"

#include <cstring>
#include <string>
#include <vector>

namespace train_test {

// Once a run was made the engine knows the host, so that it can report errors.
inline const lhost::Engine& engine() {
  static const lhost::Engine e = lhost::load_engine(LHOST_TEST_MOCK "/lib/mock_engine.so");
  static const lhost::RunHandle run(e, {sizeof(lh_engine_config), 1, 0, 0, 0});
  return e;
}

// An owned handle to a float64 tensor.
class Numbers {
 public:
  explicit Numbers(const std::vector<double>& values)
      : Numbers(values, {static_cast<int64_t>(values.size())}) {}
  Numbers(const std::vector<double>& values, const std::vector<int64_t>& shape) {
    lhost::check(engine().tensor.empty(nullptr, {LH_DEVICE_CPU, 0}, {LH_DT_FLOAT, 64, 1}, shape.data(),
                                       static_cast<uint32_t>(shape.size()), 0, &handle_));
    lh_view v{};
    lhost::check(engine().tensor.view(handle_, &v));
    if (!values.empty()) std::memcpy(v.data, values.data(), values.size() * sizeof(double));
  }
  ~Numbers() { engine().tensor.release(handle_); }
  Numbers(const Numbers&) = delete;
  lh_tensor* get() const { return handle_; }

 private:
  lh_tensor* handle_ = nullptr;
};

// The elements of a contiguous tensor of type T.
template <class T>
std::vector<T> elements(lh_tensor* t) {
  lh_view v{};
  lhost::check(engine().tensor.view(t, &v));
  int64_t n = 1;
  for (int32_t i = 0; i < v.ndim; ++i) n *= v.shape[i];
  std::vector<T> out(static_cast<size_t>(n));
  if (n) std::memcpy(out.data(), static_cast<const char*>(v.data) + v.byte_offset, out.size() * sizeof(T));
  return out;
}

// A component whose object is `self` and whose table is `table`; both live longer.
template <class C, class Table>
C component(const char* kind, const char* name, void* self, const Table& table) {
  return C(lhost::Created{self, &table, {kind, name, std::string(kind) + "[0]", "1.0.0", 0}});
}

}  // namespace train_test
