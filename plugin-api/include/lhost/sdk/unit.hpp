// lhost/sdk/unit.hpp - LHOST_UNIT(Block) in place of TORCH_MODULE(Block).
// BlockImpl then is a unit: strategies, activation checkpointing and profilers see when it is entered and left, in
// direct calls and inside Sequential; parameter names do not change. When nobody listens, the bracket is one test
// of a null pointer. BlockImpl::forward must not be overloaded, a template, or have default arguments.
#pragma once
#include <lhost/model.h>
#include <lhost/sdk/plugin.hpp>
#include <lhost/sdk/torch.hpp>

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace lhost {

// Found by dynamic_cast when the plugin walks its modules; filled in at attach().
struct UnitTag {
  const lh_unit_calls* calls = nullptr;  // NULL: do not bracket
  uint32_t unit = LH_ROOT_UNIT;
  virtual ~UnitTag() = default;
};

namespace detail {

using Handles = std::vector<lh_tensor*>;

// Every tensor in an argument or a result. A type of your own: write lhost_visit(f, value), which calls f on each
// member, beside it. A type that cannot be walked does not compile: its tensors would miss their events.
template <class V>
void collect(Handles& out, V& v);
template <class V>
void collect_all(Handles& out, V& container) {
  for (auto& x : container) collect(out, x);
}
template <class V, class = void>
struct Collect {
  template <class X>
  static void run(Handles& out, X& v) {
    lhost_visit([&](auto& member) { collect(out, member); }, v);
  }
};
template <>
struct Collect<torch::Tensor> {
  static void run(Handles& out, torch::Tensor& t) { out.push_back(handle(t)); }
};
template <class V>
struct Collect<
    V, std::enable_if_t<std::is_arithmetic_v<V> || std::is_enum_v<V> || std::is_same_v<V, std::string>>> {
  static void run(Handles&, V&) {}
};
template <class T>
struct Collect<std::optional<T>> {
  static void run(Handles& out, std::optional<T>& v) {
    if (v) collect(out, *v);
  }
};
template <class T>
struct Collect<std::vector<T>> {
  static void run(Handles& out, std::vector<T>& v) { collect_all(out, v); }
};
template <class T, size_t n>
struct Collect<std::array<T, n>> {
  static void run(Handles& out, std::array<T, n>& v) { collect_all(out, v); }
};
template <class K, class T>
struct Collect<std::map<K, T>> {
  static void run(Handles& out, std::map<K, T>& v) {
    for (auto& entry : v) collect(out, entry.second);
  }
};
template <class A, class B>
struct Collect<std::pair<A, B>> {
  static void run(Handles& out, std::pair<A, B>& v) {
    collect(out, v.first);
    collect(out, v.second);
  }
};
template <class... T>
struct Collect<std::tuple<T...>> {
  static void run(Handles& out, std::tuple<T...>& v) {
    std::apply([&](auto&... x) { (collect(out, x), ...); }, v);
  }
};
template <class V>
void collect(Handles& out, V& v) {
  Collect<V>::run(out, v);
}

}  // namespace detail

// A forward() of the same signature, not a template: Sequential and AnyModule take its address.
template <class Impl, class Forward = decltype(&Impl::forward)>
class Unit;

template <class Impl, class R, class C, class... A>
class Unit<Impl, R (C::*)(A...)> : public Impl, public UnitTag {
 public:
  using Impl::Impl;

  R forward(A... args) {
    if (!calls) return Impl::forward(std::forward<A>(args)...);
    std::tuple<std::decay_t<A>...> in(std::forward<A>(args)...);
    bracket(calls->enter, in);
    R out = std::apply([this](auto&... x) { return Impl::forward(std::forward<A>(x)...); }, in);
    bracket(calls->exit, out);
    return out;
  }

 private:
  template <class F, class V>
  void bracket(F call, V& value) {
    detail::Handles io;
    detail::collect(io, value);
    check(call(calls->ctx, unit, io.data(), io.size()));
  }
};

}  // namespace lhost

#define LHOST_UNIT(Name)                                                      \
  class Name : public ::torch::nn::ModuleHolder<::lhost::Unit<Name##Impl>> {  \
   public:                                                                    \
    using ::torch::nn::ModuleHolder<::lhost::Unit<Name##Impl>>::ModuleHolder; \
    using Impl [[maybe_unused]] = ::lhost::Unit<Name##Impl>;                  \
  }
