// tests/mock_engine/tensor.hpp - the mock engine's tensor, which mock models share with it as real models
// share at::Tensor with LibTorch: a handle is the address of a mock::Tensor, a Tensor is a counted pointer
// to shape, bytes and gradient. Always contiguous and on the CPU. One thread at a time per tensor; the
// counts are atomic.
#pragma once
#include <lhost/tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mock {

enum class Type { f32, f64, i64, u8 };

inline size_t bytes_of(Type t) { return t == Type::f32 ? 4 : t == Type::u8 ? 1 : 8; }
inline lh_dtype to_dlpack(Type t) {
  switch (t) {
    case Type::f32:
      return {LH_DT_FLOAT, 32, 1};
    case Type::f64:
      return {LH_DT_FLOAT, 64, 1};
    case Type::i64:
      return {LH_DT_INT, 64, 1};
    default:
      return {LH_DT_UINT, 8, 1};
  }
}
inline Type from_dlpack(lh_dtype d) {
  for (Type t : {Type::f32, Type::f64, Type::i64, Type::u8})
    if (const lh_dtype k = to_dlpack(t); k.code == d.code && k.bits == d.bits && d.lanes == 1) return t;
  throw std::invalid_argument("the mock engine has float32, float64, int64 and uint8, not dtype code " +
                              std::to_string(d.code) + " with " + std::to_string(d.bits) + " bits");
}

// Bytes that begin at a cache line and can be freed and made again under the tensors that share them.
class Storage {
 public:
  explicit Storage(size_t bytes) { resize(bytes); }
  ~Storage() { resize(0); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  void resize(size_t bytes) {  // all zero afterwards
    if (data_) ::operator delete (data_, std::align_val_t{64});
    data_ = bytes ? static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})) : nullptr;
    size_ = bytes;
    if (data_) std::memset(data_, 0, bytes);
  }
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(Type type, std::vector<int64_t> shape) : impl_(std::make_shared<Impl>()) {
    impl_->type = type;
    impl_->shape = std::move(shape);
    set_strides();
    impl_->storage = std::make_shared<Storage>(static_cast<size_t>(numel()) * bytes_of(type));
  }

  bool defined() const { return impl_ != nullptr; }
  void reset() { impl_.reset(); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }
  bool unique() const { return impl_.use_count() == 1 && impl_->storage.use_count() == 1; }
  Type type() const { return impl_->type; }
  bool floating() const { return type() == Type::f32 || type() == Type::f64; }
  std::vector<int64_t>& shape() const { return impl_->shape; }
  std::vector<int64_t>& strides() const { return impl_->strides; }
  const std::shared_ptr<Storage>& storage() const { return impl_->storage; }
  int64_t offset() const { return impl_->offset; }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d : impl_->shape) n *= d;
    return n;
  }
  // NULL when the storage has been freed.
  std::byte* data() const {
    std::byte* start = impl_->storage->data();
    return start ? start + static_cast<size_t>(impl_->offset) * bytes_of(type()) : nullptr;
  }

  // Elements as doubles, in row-major order.
  double get(int64_t i) const {
    const std::byte* p = element(i);
    const auto read = [p](auto x) {
      std::memcpy(&x, p, sizeof x);
      return static_cast<double>(x);
    };
    switch (type()) {
      case Type::f32:
        return read(float{});
      case Type::f64:
        return read(double{});
      case Type::i64:
        return read(int64_t{});
      default:
        return read(uint8_t{});
    }
  }
  void set(int64_t i, double v) const {
    std::byte* p = element(i);
    const auto write = [p](auto x) { std::memcpy(p, &x, sizeof x); };
    switch (type()) {
      case Type::f32:
        return write(static_cast<float>(v));
      case Type::f64:
        return write(v);
      case Type::i64:
        return write(integer<int64_t>(v));
      default:
        return write(integer<uint8_t>(v));
    }
  }
  void fill(double v) const {
    for (int64_t i = 0; i < numel(); ++i) set(i, v);
  }
  void copy_from(const Tensor& src) const {  // casts
    if (src.numel() != numel())
      throw std::invalid_argument("copy of " + std::to_string(src.numel()) + " elements to " +
                                  std::to_string(numel()));
    if (src.type() == type()) {
      if (numel() && src.data() != data())
        std::memmove(data(), src.data(), static_cast<size_t>(numel()) * bytes_of(type()));
    } else {
      for (int64_t i = 0; i < numel(); ++i) set(i, src.get(i));
    }
  }
  Tensor cast(Type t) const {
    Tensor out(t, shape());
    out.copy_from(*this);
    return out;
  }

  // A tensor on the same bytes: `at` counts elements from the start of this one.
  Tensor view(int64_t at, std::vector<int64_t> shape) const {
    Tensor out;
    out.impl_ = std::make_shared<Impl>();
    out.impl_->type = type();
    out.impl_->shape = std::move(shape);
    out.set_strides();
    out.impl_->storage = impl_->storage;
    out.impl_->offset = impl_->offset + at;
    return out;
  }
  // Every Tensor of this identity now lies where `place` does, as after at::Tensor::set_data().
  void set_data(const Tensor& place) const {
    impl_->type = place.type();
    impl_->storage = place.storage();
    impl_->offset = place.offset();
  }

  // --- autograd, the little that the mock has of it
  bool requires_grad() const { return impl_->requires_grad; }
  void set_requires_grad(bool on) const { impl_->requires_grad = on; }
  Tensor& grad() const { return *impl_->grad; }  // undefined until something was accumulated
  bool has_grad() const { return impl_->accumulated; }
  void forget_grad() const { impl_->accumulated = false; }
  // The model's backward: `value(i)` is added to element i of the gradient, then whoever listens is told.
  template <class F>
  void accumulate(F value) const {
    if (!requires_grad()) return;
    if (!grad().defined()) grad() = Tensor(type(), shape());
    for (int64_t i = 0; i < numel(); ++i) grad().set(i, grad().get(i) + value(i));
    impl_->accumulated = true;
    if (impl_->on_grad) impl_->on_grad();
  }
  // The model's backward has the gradient of this input or result of a unit.
  void reached() const {
    if (impl_->on_reached) impl_->on_reached();
  }
  std::function<void()>& on_grad() const { return impl_->on_grad; }
  std::function<void()>& on_reached() const { return impl_->on_reached; }
  // Of a loss: adds seed * d loss / d parameter to the parameters' gradients, last parameter first.
  std::function<void(double seed)>& backward() const { return impl_->backward; }

 private:
  struct Impl {
    Type type = Type::f32;
    std::vector<int64_t> shape, strides;
    std::shared_ptr<Storage> storage;
    int64_t offset = 0;  // in elements
    bool requires_grad = false;
    bool accumulated = false;
    std::unique_ptr<Tensor> grad = std::make_unique<Tensor>();
    std::function<void()> on_grad, on_reached;
    std::function<void(double)> backward;
  };

  void set_strides() const {
    impl_->strides.resize(impl_->shape.size());
    int64_t step = 1;
    for (size_t i = impl_->shape.size(); i-- > 0; step *= impl_->shape[i]) impl_->strides[i] = step;
  }
  std::byte* element(int64_t i) const {
    const size_t n = bytes_of(type());
    if (i < 0 || static_cast<size_t>(impl_->offset + i + 1) * n > impl_->storage->size())
      throw std::out_of_range("element " + std::to_string(i) + " of a tensor whose storage has " +
                              std::to_string(impl_->storage->size()) + " bytes");
    return impl_->storage->data() + static_cast<size_t>(impl_->offset + i) * n;
  }
  template <class T>
  static T integer(double v) {
    // the greatest double below 2^63 is what an int64_t may be cast from
    constexpr double top = sizeof(T) == 8 ? 9223372036854774784.0 : 255.0;
    if (!(v >= static_cast<double>(std::numeric_limits<T>::min()) && v <= top))
      throw std::invalid_argument(std::to_string(v) + " does not fit into an integer tensor");
    return static_cast<T>(v);
  }

  std::shared_ptr<Impl> impl_;
};

inline lh_tensor* handle(const Tensor& t) { return reinterpret_cast<lh_tensor*>(const_cast<Tensor*>(&t)); }
inline Tensor& tensor(lh_tensor* h) { return *reinterpret_cast<Tensor*>(h); }

// Service of the mock engine alone: its default generator, which rng_save and rng_load keep.
#define MOCK_RANDOM_SERVICE "mock.random/0"
struct RandomService {
  uint32_t size, rsvd0;
  double (*uniform)(lh_run*);  // in [0, 1)
};

}  // namespace mock
