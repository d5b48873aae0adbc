// host/manifest/convert.cpp - see convert.hpp.
#include "manifest/convert.hpp"

#include "manifest/units.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace lhost {
namespace {

struct Cadence {
  const char* name;
  uint32_t unit;
};
constexpr Cadence kCadences[] = {{"steps", LH_EVERY_STEPS},
                                 {"batches", LH_EVERY_BATCHES},
                                 {"samples", LH_EVERY_SAMPLES},
                                 {"epochs", LH_EVERY_EPOCHS},
                                 {"seconds", LH_EVERY_SECONDS}};

bool is_number(const Node& v) { return v.type == Node::Type::integer || v.type == Node::Type::floating; }
double number_of(const Node& v) {
  return v.type == Node::Type::integer ? static_cast<double>(v.integer) : v.floating;
}

std::string absolute_path(const std::string& text, const Source& s, const Texts& texts) {
  const size_t i = s.text < 0 ? 0 : static_cast<size_t>(s.text);  // a default: relative to the manifest
  const std::string folder = i < texts.size() ? texts[i].folder : "";
  return (std::filesystem::path(folder) / text).lexically_normal().string();
}

}  // namespace

std::optional<Plain> Conversion::run(const Node& v) {
  plain_ = Plain{};
  plain_.node = v;
  plain_.node.secret = (spec_.flags & LH_O_SECRET) != 0;
  plain_.value.type = spec_.type;
  if (!dispatch(v)) return std::nullopt;
  return std::move(plain_);
}

bool Conversion::dispatch(const Node& v) {
  switch (spec_.type) {
    case LH_T_BOOL:
      return boolean(v);
    case LH_T_INT:
      return integer(v);
    case LH_T_FLOAT:
      return floating(v);
    case LH_T_STR:
      return string(v);
    case LH_T_PATH:
      return path(v);
    case LH_T_ENUM:
      return choice(v);
    case LH_T_SIZE:
      return united(v, parse_size);
    case LH_T_DURATION:
      return united(v, parse_duration);
    case LH_T_LIST_INT:
      return list(v, LH_T_INT);
    case LH_T_LIST_FLOAT:
      return list(v, LH_T_FLOAT);
    case LH_T_LIST_STR:
      return list(v, spec_.choices.empty() ? LH_T_STR : LH_T_ENUM);
    case LH_T_SHARE:
      return share(v);
    case LH_T_CADENCE:
      return cadence(v);
    case T_LIMIT:
      return limit(v);
    case T_DEVICES:
      return devices(v);
    case T_WARMUP:
      return warmup(v);
    case T_SAVE_LAST:
      return save_last(v);
    case T_REGEX:
      return regex(v);
    default:
      return fail(v.source, key_,
                  "this host does not know the option's type " + std::to_string(spec_.type) +
                      "; the plugin needs a newer lhost");
  }
}

bool Conversion::fail(Source source, const std::string& key, std::string message) {
  if (out_) {
    Diagnostic d{source, key, std::move(message)};
    d.secret = (spec_.flags & LH_O_SECRET) != 0;
    out_->add(std::move(d));
  }
  return false;
}

bool Conversion::fail(const Node& v) {
  if (!out_) return false;
  const std::string help = hint(v, spec_, key_, texts_);
  return fail(v.source, key_,
              "found " + found(v, spec_, texts_) + ", expected " + expectation(spec_) +
                  (help.empty() ? "" : "; " + help));
}

bool Conversion::in_range(int64_t v) const {
  const Bound lo = bound_of(spec_, spec_.min), hi = bound_of(spec_, spec_.max);
  const auto d = static_cast<double>(v);
  if (lo.set && (lo.whole ? v < lo.i || (lo.open && v == lo.i) : d < lo.f || (lo.open && d == lo.f)))
    return false;
  return !hi.set || (hi.whole ? v < hi.i || (!hi.open && v == hi.i) : d < hi.f || (!hi.open && d == hi.f));
}

bool Conversion::in_range(double v) const {
  const Bound lo = bound_of(spec_, spec_.min), hi = bound_of(spec_, spec_.max);
  if (lo.set && (v < lo.f || (lo.open && v == lo.f))) return false;
  return !hi.set || v < hi.f || (!hi.open && v == hi.f);
}

bool Conversion::boolean(const Node& v) {
  plain_.value.u.b = v.boolean ? 1 : 0;
  return v.type == Node::Type::boolean || fail(v);
}

bool Conversion::integer(const Node& v) {
  plain_.value.u.i = v.integer;
  return (v.type == Node::Type::integer && in_range(v.integer)) || fail(v);
}

bool Conversion::floating(const Node& v) {
  const double d = number_of(v);
  plain_.value.u.f = d;
  return (is_number(v) && std::isfinite(d) && in_range(d)) || fail(v);
}

bool Conversion::string(const Node& v) {
  plain_.text = v.string;
  if (v.string.find('\0') != std::string::npos)  // names and files end there for every function of C
    return fail(v.source, key_, "holds the character \\u0000, which no text here may have; remove it");
  const uint32_t least = std::max<uint32_t>(spec_.min_len, (spec_.flags & LH_O_REQUIRED) ? 1 : 0);
  return (v.type == Node::Type::string && v.string.size() >= least) || fail(v);
}

bool Conversion::path(const Node& v) {
  if (v.type != Node::Type::string || v.string.empty() || v.string.find('\0') != std::string::npos)
    return fail(v);
  plain_.text = absolute_path(v.string, v.source, texts_);
  plain_.node.string = plain_.text;
  return true;
}

bool Conversion::choice(const Node& v) {
  const auto at = std::find(spec_.choices.begin(), spec_.choices.end(), v.string);
  plain_.text = v.string;
  plain_.value.u.i = at - spec_.choices.begin();
  return (v.type == Node::Type::string && at != spec_.choices.end()) || fail(v);
}

bool Conversion::united(const Node& v, std::optional<int64_t> (*parse)(std::string_view)) {
  std::optional<int64_t> n;
  if (v.type == Node::Type::string) n = parse(v.string);
  if (v.type == Node::Type::integer && spec_.type == LH_T_SIZE && v.integer >= 0) n = v.integer;
  plain_.value.u.i = n.value_or(0);
  return (n && in_range(*n)) || fail(v);
}

bool Conversion::share(const Node& v) {
  std::optional<double> d;
  if (v.type == Node::Type::string) d = parse_share(v.string);
  if (is_number(v)) d = number_of(v);
  plain_.value.u.f = d.value_or(0);
  return (d && *d >= 0 && *d <= 1 && in_range(*d)) || fail(v);
}

bool Conversion::cadence(const Node& v) {
  if (!v.is_table() || v.table.size() != 1) return fail(v);
  const Node::Entry& e = v.table[0];
  std::vector<std::string> names;
  for (const Cadence& c : kCadences) {
    names.emplace_back(c.name);
    if (e.key != c.name) continue;
    OptionSpec count = spec_;
    count.type = c.unit == LH_EVERY_SECONDS ? LH_T_FLOAT : LH_T_INT;
    count.min = c.unit == LH_EVERY_SECONDS ? ">0" : "1";
    count.max = c.unit == LH_EVERY_SECONDS ? "9e9" : "";
    const std::string key = key_ + "." + e.key;
    const auto n = Conversion(count, key, texts_, out_).run(e.value);
    if (!n) return false;
    plain_.value.n = c.unit;
    plain_.value.u.i = c.unit == LH_EVERY_SECONDS ? std::llround(n->value.u.f * 1e9) : n->value.u.i;
    return true;
  }
  const std::string near = closest(e.key, names);
  return fail(e.key_source, key_ + "." + e.key,
              "unknown unit" + (near.empty() ? std::string() : "; did you mean \"" + near + "\"?") +
                  " (steps, batches, samples, epochs, seconds)");
}

bool Conversion::list(const Node& v, int32_t element_type) {
  if (v.type != Node::Type::array || v.array.size() < spec_.min_len) return fail(v);
  OptionSpec element = spec_;
  element.type = element_type;
  element.min_len = 0;
  element.flags &= ~static_cast<uint32_t>(LH_O_REQUIRED);
  bool good = true;
  for (size_t i = 0; i < v.array.size(); ++i) {
    const std::string key = key_ + "[" + std::to_string(i) + "]";
    const auto x = Conversion(element, key, texts_, out_).run(v.array[i]);
    good = good && x;
    if (!x) continue;
    if (element_type == LH_T_INT) plain_.ints.push_back(x->value.u.i);
    if (element_type == LH_T_FLOAT) plain_.floats.push_back(x->value.u.f);
    const auto& seen = plain_.strings;
    if (element_type == LH_T_ENUM && std::find(seen.begin(), seen.end(), x->text) != seen.end()) {
      good = fail(v.array[i].source, key, in_quotes(x->text) + " is given twice; remove one of the two");
    }
    if (element_type == LH_T_STR || element_type == LH_T_ENUM) plain_.strings.push_back(x->text);
  }
  plain_.value.n = static_cast<uint32_t>(v.array.size());
  return good;
}

}  // namespace lhost
