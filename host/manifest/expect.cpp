// host/manifest/expect.cpp - the words of a refusal: what was found, what was expected, a way out.
#include "manifest/convert.hpp"
#include "manifest/parse.hpp"
#include "manifest/text.hpp"
#include "manifest/units.hpp"

#include <charconv>
#include <cmath>

namespace lhost {
namespace {

std::string shown(double v) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr};
}

bool is_list(int32_t type) {
  return type == LH_T_LIST_INT || type == LH_T_LIST_FLOAT || type == LH_T_LIST_STR;
}

bool is_text(int32_t type) {
  return type == LH_T_STR || type == LH_T_PATH || type == LH_T_ENUM || type == T_REGEX ||
         type == LH_T_LIST_STR;
}

std::string choices(const std::vector<std::string>& names) {
  std::string s;
  for (size_t i = 0; i < names.size(); ++i) {
    s += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + in_quotes(names[i]);
  }
  return s;
}

std::string range(const OptionSpec& spec) {
  const Bound lo = bound_of(spec, spec.min), hi = bound_of(spec, spec.max);
  if (lo.set && hi.set && !lo.open && !hi.open) return " in " + lo.shown + ".." + hi.shown;
  const std::string least = lo.set ? (lo.open ? " > " : " >= ") + lo.shown : "";
  const std::string most = hi.set ? (hi.open ? " < " : " <= ") + hi.shown : "";
  return least + (lo.set && hi.set ? " and" : "") + most;
}

std::string list_of(const OptionSpec& spec, const char* elements) {
  const std::string s = "a list of " + (spec.min_len ? "at least " + std::to_string(spec.min_len) + " " : "");
  return s + (spec.choices.empty() ? elements + range(spec) : choices(spec.choices));
}

bool fits(const Node& v, const OptionSpec& spec, const std::string& key, const Texts& texts) {
  return Conversion(spec, key, texts, nullptr).run(v).has_value();
}

std::string as_written(const Node& v, const Texts& texts) {
  const std::string_view s = written(texts, v.source);
  return s.empty() || v.source.text < 0 ? to_toml(v) : std::string(s);
}

}  // namespace

Bound bound_of(const OptionSpec& spec, const std::string& literal) {
  Bound b;
  std::string_view text = literal;
  if (text.size() > 2 && text.front() == '"' && (text[1] == '<' || text[1] == '>') && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  if (!text.empty() && (text.front() == '<' || text.front() == '>')) b.open = true, text.remove_prefix(1);
  if (text.empty()) return Bound{};
  const auto v = parse_value(text);
  if (!v) return Bound{};
  if (v->type == Node::Type::string) {
    const auto n = spec.type == LH_T_DURATION ? parse_duration(v->string) : parse_size(v->string);
    if (!n) return Bound{};
    b.i = *n, b.f = static_cast<double>(*n), b.whole = true, b.shown = v->string;
  } else if (v->type == Node::Type::integer) {
    b.i = v->integer, b.f = static_cast<double>(v->integer), b.whole = true,
    b.shown = std::to_string(v->integer);
  } else if (v->type == Node::Type::floating) {
    b.f = v->floating, b.shown = shown(v->floating);
  } else {
    return Bound{};
  }
  b.set = true;
  return b;
}

std::string expectation(const OptionSpec& spec) {
  switch (spec.type) {
    case LH_T_BOOL:
      return "true or false";
    case LH_T_INT:
      return spec.min == spec.max && !spec.min.empty() ? spec.min : "an integer" + range(spec);
    case LH_T_FLOAT:
      return "a number" + range(spec);
    case LH_T_STR:
      return spec.min_len || (spec.flags & LH_O_REQUIRED) ? "a string that is not empty" : "a string";
    case LH_T_PATH:
      return "a path (a string that is not empty)";
    case LH_T_ENUM:
      return choices(spec.choices);
    case LH_T_SIZE:
      return "a size" + range(spec) + " such as \"25MiB\"";
    case LH_T_DURATION:
      return "a duration" + range(spec) + " such as \"90s\" or \"00:30:00\"";
    case LH_T_LIST_INT:
      return list_of(spec, "integers");
    case LH_T_LIST_FLOAT:
      return list_of(spec, "numbers");
    case LH_T_LIST_STR:
      return list_of(spec, "strings");
    case LH_T_SHARE:
      return "a share" + (range(spec).empty() ? " in 0..1" : range(spec)) + " such as \"5%\" or 0.05";
    case LH_T_CADENCE:
      return "a cadence such as { steps = 500 }";
    case T_LIMIT:
      return "a number of batches (an integer >= 0) or a share of them (0.0 to 1.0)";
    case T_DEVICES:
      return "\"auto\", a number of devices >= 1 or a list such as [0, 2]";
    case T_WARMUP:
      return "an integer >= 0 or a share such as \"5%\"";
    case T_SAVE_LAST:
      return "true, false or \"link\"";
    case T_REGEX:
      return "a regular expression (a string that is not empty)";
    default:
      return "nothing";
  }
}

std::string found(const Node& v, const OptionSpec& spec, const Texts& texts) {
  if (spec.flags & LH_O_SECRET) return type_name(v.type);
  switch (v.type) {
    case Node::Type::string: {
      if (v.string.empty()) return "an empty string";
      const size_t most = 60;
      if (v.string.size() <= most) return "the string " + in_quotes(v.string);
      return "the string " + in_quotes(v.string.substr(0, byte_of_column(v.string, 40))) + "...";
    }
    case Node::Type::boolean:
    case Node::Type::integer:
    case Node::Type::floating:
      return as_written(v, texts);
    case Node::Type::datetime:
      return "the date or time " + as_written(v, texts);
    case Node::Type::array:
      return is_list(spec.type) ? "a list of " + std::to_string(v.array.size())
             : v.array.empty()  ? "an empty list"
                                : "a list";
    default:
      return type_name(v.type);
  }
}

std::string hint(const Node& v, const OptionSpec& spec, const std::string& key, const Texts& texts) {
  if (spec.flags & LH_O_SECRET) return "";
  if (v.type == Node::Type::string && !is_text(spec.type)) {
    const auto inner = parse_value(v.string);
    if (inner && fits(*inner, spec, key, texts)) return "remove the quotes";
  }
  if (v.type == Node::Type::floating && std::abs(v.floating) < 9e15 && v.floating == std::floor(v.floating)) {
    Node whole;
    whole.type = Node::Type::integer;
    whole.integer = static_cast<int64_t>(v.floating);
    if (fits(whole, spec, key, texts)) return "write " + std::to_string(whole.integer);
  }
  const bool scalar = v.type != Node::Type::array && v.type != Node::Type::table;
  if (is_list(spec.type) && scalar) {
    Node list;
    list.type = Node::Type::array;
    list.array.push_back(v);
    if (fits(list, spec, key, texts)) return "write [" + as_written(v, texts) + "]";
  }
  if (spec.type == LH_T_ENUM && v.type == Node::Type::string) {
    const std::string near = closest(v.string, spec.choices);
    return near.empty() ? "" : "did you mean " + in_quotes(near) + "?";
  }
  if (v.type != Node::Type::string && scalar &&
      (is_text(spec.type) || spec.type == LH_T_DURATION || spec.type == T_WARMUP)) {
    Node text;
    text.type = Node::Type::string;
    text.string = as_written(v, texts);
    if (fits(text, spec, key, texts)) return "write " + in_quotes(text.string);
  }
  if (v.type == Node::Type::integer && v.integer >= 0 && v.integer < 9000000000) {
    const std::string n = std::to_string(v.integer);
    if (spec.type == LH_T_BOOL && v.integer <= 1) return v.integer ? "write true" : "write false";
    if (spec.type == LH_T_DURATION) return "write \"" + n + "s\"";
    if (spec.type == LH_T_CADENCE && v.integer > 0) return "write { steps = " + n + " }";
  }
  if (v.type != Node::Type::string) return "";
  if (spec.type == LH_T_SIZE) return "units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";
  if (spec.type == LH_T_DURATION) return "units: ns, us, ms, s, m, h, d";
  return "";
}

}  // namespace lhost
