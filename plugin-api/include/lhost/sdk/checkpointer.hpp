// lhost/sdk/checkpointer.hpp - write a file format: derive from lhost::Checkpointer, end with LHOST_CHECKPOINTER(...).
#pragma once
#include <lhost/checkpointer.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

class Checkpointer : public Component {
 public:
  using Handle = lh_checkpointer;
  virtual const char* suffix() noexcept = 0;  // ".ckpt"
  virtual void save(const lh_leaf* leaves, uint64_t n, const lh_sink& sink) = 0;
  virtual void load(lh_bytes file, const lh_leaf_visitor& visitor) = 0;
};

struct CheckpointerKind {
  static constexpr const char* kind = LH_CHECKPOINTER_KIND;
  using Base = Checkpointer;
  static void bind() {}
  template <class D>
  static lh_checkpointer_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Checkpointer, lh_checkpointer_v0>();
    t.suffix = [](lh_checkpointer* h) noexcept { return str(self<Checkpointer>(h).suffix()); };
    t.save = [](lh_checkpointer* h, const lh_leaf* l, uint64_t n, const lh_sink* s) noexcept {
      return guard("save", [&] { self<Checkpointer>(h).save(l, n, *s); });
    };
    t.load = [](lh_checkpointer* h, lh_bytes file, const lh_leaf_visitor* v) noexcept {
      return guard("load", [&] { self<Checkpointer>(h).load(file, *v); });
    };
    return t;
  }
};

}  // namespace lhost

#define LHOST_CHECKPOINTER(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::CheckpointerKind, LH_CHECKPOINTER_KIND, Class, Options, name, version, "", 0)
