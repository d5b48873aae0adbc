// lhost/sdk/options.hpp - one declaration gives schema, default, help text and the filled struct:
//   struct Options {
//     double lr = 0.1;
//     static void describe(lhost::Describe<Options>& d) { d(&Options::lr, "lr", "learning rate").min(0.0); }
//   };
// Member types: bool, integers, floating point, std::string, Path, Size, Duration, Share, an enum (with choices),
// std::vector of int64_t, double or std::string, and std::optional of the scalar ones (no default).
#pragma once
#include <lhost/abi.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lhost {

inline lh_str str(std::string_view s) noexcept { return {s.data(), s.size()}; }
inline std::string_view view(lh_str s) noexcept { return {s.ptr, static_cast<size_t>(s.len)}; }

struct NoOptions {};  // for a component without any

struct Path {  // written relative to its manifest, arrives absolute; empty = not given
  std::string text;
};
struct Size {  // written "25MiB"
  int64_t bytes = 0;
};
struct Duration {  // written "90s" or "00:01:30"
  int64_t ns = 0;
};
struct Share {  // written "5%" or 0.05
  double value = 0;
};

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
constexpr int32_t option_type() {
  if constexpr (IsOptional<T>::value) return option_type<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>) return LH_T_BOOL;
  else if constexpr (std::is_enum_v<T>) return LH_T_ENUM;
  else if constexpr (std::is_integral_v<T>) return LH_T_INT;
  else if constexpr (std::is_floating_point_v<T>) return LH_T_FLOAT;
  else if constexpr (std::is_same_v<T, std::string>) return LH_T_STR;
  else if constexpr (std::is_same_v<T, Path>) return LH_T_PATH;
  else if constexpr (std::is_same_v<T, Size>) return LH_T_SIZE;
  else if constexpr (std::is_same_v<T, Duration>) return LH_T_DURATION;
  else if constexpr (std::is_same_v<T, Share>) return LH_T_SHARE;
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>) return LH_T_LIST_INT;
  else if constexpr (std::is_same_v<T, std::vector<double>>) return LH_T_LIST_FLOAT;
  else if constexpr (std::is_same_v<T, std::vector<std::string>>) return LH_T_LIST_STR;
  else static_assert(!sizeof(T), "this type cannot be an option");
}

// TOML literals, numbers in the shortest form that reads back exactly
inline std::string literal(bool v) { return v ? "true" : "false"; }
inline std::string literal(double v) {
  char b[40];
  std::string s(b, std::to_chars(b, b + sizeof b, v).ptr);
  return s.find_first_of(".en") == s.npos ? s + ".0" : s;
}
inline std::string literal(std::string_view v) {
  std::string s = "\"";
  for (char c : v) {
    if (c == '"' || c == '\\') s += '\\';
    s += c;
  }
  return s + '"';
}
template <class T>
std::string literal(const T& v) {
  if constexpr (std::is_integral_v<T>) return std::to_string(v);
  else if constexpr (std::is_floating_point_v<T>) return literal(static_cast<double>(v));
  else if constexpr (std::is_same_v<T, std::string>) return literal(std::string_view(v));
  else if constexpr (std::is_same_v<T, Path>) return v.text.empty() ? "" : literal(std::string_view(v.text));
  else if constexpr (std::is_same_v<T, Size>) return std::to_string(v.bytes);
  else if constexpr (std::is_same_v<T, Share>) return literal(v.value);
  else if constexpr (std::is_same_v<T, Duration>)
    return literal(literal(1e-9 * static_cast<double>(v.ns)) + "s");
  else if constexpr (std::is_enum_v<T>) return {};  // set by choices()
  else if constexpr (IsOptional<T>::value) return v ? literal(*v) : std::string();
  else {
    std::string s = "[";
    for (const auto& x : v) s += (s.size() > 1 ? ", " : "") + literal(x);
    return s + "]";
  }
}

template <class T>
void assign(T& x, const lh_value& v) {
  if constexpr (IsOptional<T>::value) {
    if (v.type == LH_T_NONE) x.reset();
    else assign(x.emplace(), v);
  } else if (v.type == LH_T_NONE) {
    return;  // keeps the struct's initialiser
  } else if constexpr (std::is_same_v<T, bool>) x = v.u.b != 0;
  else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) x = static_cast<T>(v.u.i);
  else if constexpr (std::is_floating_point_v<T>) x = static_cast<T>(v.u.f);
  else if constexpr (std::is_same_v<T, std::string>) x.assign(v.u.s.ptr, v.u.s.len);
  else if constexpr (std::is_same_v<T, Path>) x.text.assign(v.u.s.ptr, v.u.s.len);
  else if constexpr (std::is_same_v<T, Size>) x.bytes = v.u.i;
  else if constexpr (std::is_same_v<T, Duration>) x.ns = v.u.i;
  else if constexpr (std::is_same_v<T, Share>) x.value = v.u.f;
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>) x.assign(v.u.li, v.u.li + v.n);
  else if constexpr (std::is_same_v<T, std::vector<double>>) x.assign(v.u.lf, v.u.lf + v.n);
  else {
    x.clear();
    for (uint32_t i = 0; i < v.n; ++i) x.emplace_back(view(v.u.ls[i]));
  }
}

}  // namespace detail

template <class Options>
class Describe {
 public:
  class Entry {  // what may follow d(...)
   public:
    Entry(Describe& d, size_t i) : d_(d), i_(i) {}
    template <class V>
    Entry& min(V v) {
      return text(&lh_option::min, detail::literal(v));
    }
    template <class V>
    Entry& max(V v) {
      return text(&lh_option::max, detail::literal(v));
    }
    template <class V>
    Entry& range(V lo, V hi) {
      return min(lo).max(hi);
    }
    Entry& above(double v) { return min(">" + detail::literal(v)); }  // exclusive
    Entry& below(double v) { return max("<" + detail::literal(v)); }
    Entry& min_len(uint32_t n) {
      option().min_len = n;
      return *this;
    }
    Entry& required() { return flag(LH_O_REQUIRED).text(&lh_option::def, ""); }
    Entry& secret() { return flag(LH_O_SECRET); }
    Entry& hyper() { return flag(LH_O_HYPER); }
    Entry& must_exist() { return flag(LH_O_MUST_EXIST); }  // of a Path: checked before a run starts
    Entry& deprecated(const char* new_key) {
      option().replaced_by = str(new_key);
      return flag(LH_O_DEPRECATED);
    }
    // the names of an enum's values 0, 1, 2...
    Entry& choices(std::vector<const char*> names) {
      std::vector<lh_str>& kept = d_.choices_.emplace_back();
      for (const char* n : names) kept.push_back(str(n));
      option().choices = kept.data();
      option().n_choices = static_cast<uint32_t>(kept.size());
      return text(&lh_option::def, detail::literal(std::string_view(names.at(d_.defaults_[i_]))));
    }

   private:
    lh_option& option() { return d_.list_[i_]; }
    Entry& flag(uint32_t f) {
      option().flags |= f;
      return *this;
    }
    Entry& text(lh_str lh_option::*field, std::string v) {
      option().*field = d_.keep(std::move(v));
      return *this;
    }
    Describe& d_;
    size_t i_;
  };

  template <class T>
  Entry operator()(T Options::*member, const char* key, const char* doc) {
    const Options initial{};
    lh_option o{};
    o.size = sizeof o;
    o.type = detail::option_type<T>();
    o.key = str(key);
    o.doc = str(doc);
    o.def = keep(detail::literal(initial.*member));  // the default is the struct's own initialiser
    list_.push_back(o);
    if constexpr (std::is_enum_v<T>) defaults_.push_back(static_cast<size_t>(initial.*member));
    else defaults_.push_back(0);
    setters_.push_back([member](Options& x, const lh_value& v) { detail::assign(x.*member, v); });
    return Entry(*this, list_.size() - 1);
  }

  const lh_option* data() const { return list_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(list_.size()); }
  Options read(const lh_create_args& a) const {
    Options o{};
    for (size_t i = 0; i < setters_.size() && i < a.n_values; ++i) setters_[i](o, a.values[i]);
    return o;
  }

 private:
  lh_str keep(std::string s) { return str(texts_.emplace_back(std::move(s))); }

  std::vector<lh_option> list_;
  std::vector<size_t> defaults_;
  std::vector<std::function<void(Options&, const lh_value&)>> setters_;
  std::deque<std::string> texts_;  // addresses stay
  std::deque<std::vector<lh_str>> choices_;
};

namespace detail {
template <class O, class = void>
struct HasDescribe : std::false_type {};
template <class O>
struct HasDescribe<O, std::void_t<decltype(O::describe(std::declval<Describe<O>&>()))>> : std::true_type {};

// One description per plugin and option type, living for ever as the ABI wants.
template <class Options>
const Describe<Options>& described() {
  static const Describe<Options>* d = [] {
    auto* x = new Describe<Options>;
    if constexpr (HasDescribe<Options>::value) Options::describe(*x);
    return x;
  }();
  return *d;
}
}  // namespace detail
}  // namespace lhost
