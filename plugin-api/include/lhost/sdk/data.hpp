// lhost/sdk/data.hpp - write a data component: derive from lhost::Data, end the file with LHOST_DATA(...).
#pragma once
#include <lhost/data.h>
#include <lhost/sdk/plugin.hpp>

namespace lhost {

struct Field {
  std::string name;
  lh_dtype dtype;
  std::vector<int64_t> shape;  // of one sample; empty = a scalar
};
struct SplitInfo {
  int64_t samples = 0;  // 0: no such split
  std::vector<Field> fields;
};

class Data : public Component {
 public:
  using Handle = lh_data;
  // What a split (LH_SPLIT_*) holds. Called once per split; the host keeps asking the answer that was given.
  virtual SplitInfo describe(int32_t split) = 0;
  // Samples indices[0..n) into dst[field], contiguous. From any thread, several at once.
  virtual void fetch(int32_t split, const int64_t* indices, uint64_t n, int64_t epoch,
                     void* const* dst) const = 0;

 private:
  friend struct DataKind;
  struct Described {
    bool known = false;
    SplitInfo info;
    std::vector<lh_field> fields;
  };
  Described splits_[4];
  void answer(int32_t split, lh_split& out) {
    if (split < LH_SPLIT_TRAIN || split > LH_SPLIT_PREDICT) throw std::invalid_argument("unknown split");
    Described& d = splits_[split];
    if (!d.known) {
      d.info = describe(split);
      for (const Field& f : d.info.fields)
        d.fields.push_back({sizeof(lh_field), static_cast<int32_t>(f.shape.size()), str(f.name), f.dtype, 0,
                            f.shape.data()});
      d.known = true;
    }
    out.n_fields = static_cast<uint32_t>(d.fields.size());
    out.samples = d.info.samples;
    out.fields = d.fields.data();
  }
};

struct DataKind {
  static constexpr const char* kind = LH_DATA_KIND;
  using Base = Data;
  static void bind() {}
  template <class D>
  static lh_data_v0 table() {
    using detail::self;
    auto t = detail::object_table<D, Data, lh_data_v0>();
    t.describe = [](lh_data* h, int32_t split, lh_split* out) noexcept {
      return guard("describe", [&] { self<Data>(h).answer(split, *out); });
    };
    t.fetch = [](lh_data* h, int32_t split, const int64_t* indices, uint64_t n, int64_t epoch,
                 void* const* dst) noexcept {
      return guard("fetch", [&] { self<Data>(h).fetch(split, indices, n, epoch, dst); });
    };
    return t;
  }
};

}  // namespace lhost

#define LHOST_DATA(Class, Options, name, version) \
  LHOST_SINGLE_PLUGIN(::lhost::DataKind, LH_DATA_KIND, Class, Options, name, version, "", 0)
