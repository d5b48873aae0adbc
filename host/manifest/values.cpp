// host/manifest/values.cpp - schemas out of C tables; reading checked values.
#include "manifest/convert.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace lhost {
namespace {

std::string text_of(lh_str s) { return s.ptr ? std::string(s.ptr, s.len) : std::string(); }

}  // namespace

Schema schema_of(const lh_option* options, uint32_t n, uint32_t stride) {
  Schema schema;
  for (uint32_t i = 0; options && i < n; ++i) {
    const char* at = reinterpret_cast<const char*>(options) + size_t{i} * stride;
    uint32_t size = 0;
    std::memcpy(&size, at, sizeof size);
    lh_option o{};  // a smaller one is an older plugin's: what it lacks stays zero
    std::memcpy(&o, at, std::min({size_t{size}, size_t{stride}, sizeof o}));
    OptionSpec spec{text_of(o.key),
                    o.type,
                    o.flags,
                    text_of(o.doc),
                    text_of(o.def),
                    text_of(o.min),
                    text_of(o.max),
                    text_of(o.replaced_by),
                    {},
                    o.min_len};
    for (uint32_t c = 0; o.choices && c < o.n_choices; ++c) spec.choices.push_back(text_of(o.choices[c]));
    schema.push_back(std::move(spec));
  }
  return schema;
}

size_t Values::index(std::string_view key) const {
  for (size_t i = 0; i < schema_.size(); ++i) {
    if (schema_[i].key == key) return i;
  }
  throw std::out_of_range("no option " + std::string(key) + " in this schema");
}

const lh_value& Values::operator[](std::string_view key) const { return values_[index(key)]; }
bool Values::given(std::string_view key) const { return given_[index(key)]; }
Source Values::source(std::string_view key) const { return nodes_[index(key)].source; }
const Node& Values::node(std::string_view key) const { return nodes_[index(key)]; }

std::string Values::text(std::string_view key) const {
  const size_t i = index(key);
  const lh_value& v = values_[i];
  if (v.type == LH_T_ENUM) return schema_[i].choices[static_cast<size_t>(v.u.i)];
  const bool string = v.type == LH_T_STR || v.type == LH_T_PATH || v.type == T_REGEX;
  return string ? text_of(v.u.s) : std::string();
}

void Values::keep(Plain&& p) {
  switch (p.value.type) {
    case LH_T_STR:
    case LH_T_PATH:
    case T_REGEX: {
      const std::string& s = strings_.emplace_back(std::move(p.text));
      p.value.u.s = {s.data(), s.size()};
      break;
    }
    case LH_T_LIST_INT:
    case T_DEVICES:
      p.value.u.li = ints_.emplace_back(std::move(p.ints)).data();
      break;
    case LH_T_LIST_FLOAT:
      p.value.u.lf = floats_.emplace_back(std::move(p.floats)).data();
      break;
    case LH_T_LIST_STR: {
      std::vector<lh_str>& list = string_lists_.emplace_back();
      for (std::string& x : p.strings) {
        const std::string& s = strings_.emplace_back(std::move(x));
        list.push_back({s.data(), s.size()});
      }
      p.value.u.ls = list.data();
      break;
    }
    default:
      break;
  }
  values_.push_back(p.value);
  nodes_.push_back(std::move(p.node));
}

}  // namespace lhost
