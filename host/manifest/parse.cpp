// host/manifest/parse.cpp - see parse.hpp.
#include "manifest/parse.hpp"

#include "manifest/text.hpp"

#include <algorithm>
#include <sstream>

#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 32  // with kDeepestKey: trees that are safe to recurse over
#include <toml++/toml.h>

namespace lhost {
namespace {

constexpr int kDeepestKey = 32;  // toml++ itself overflows the stack on a.a.a.a... of a few thousand parts

class Builder {
 public:
  // skip: columns of the first line that are not the user's
  Builder(int text, Origin origin, int skip = 0) : text_(text), origin_(origin), skip_(skip) {}

  Node node(const toml::node& n) const {
    Node out;
    out.source = source(n.source());
    if (const auto* t = n.as_table()) {
      table(*t, out);
    } else if (const auto* a = n.as_array()) {
      out.type = Node::Type::array;
      for (const toml::node& x : *a) out.array.push_back(node(x));
    } else {
      scalar(n, out);
    }
    return out;
  }

 private:
  void table(const toml::table& t, Node& out) const {
    out.type = Node::Type::table;
    for (auto&& [key, value] : t) {
      out.table.push_back({std::string(key.str()), node(value), source(key.source())});
    }
    std::sort(out.table.begin(), out.table.end(), [](const Node::Entry& a, const Node::Entry& b) {
      return std::pair(a.key_source.line, a.key_source.column) < std::pair(b.key_source.line, b.key_source.column);
    });
  }

  static void scalar(const toml::node& n, Node& out) {
    if (const auto* b = n.as_boolean()) out.type = Node::Type::boolean, out.boolean = b->get();
    else if (const auto* i = n.as_integer()) out.type = Node::Type::integer, out.integer = i->get();
    else if (const auto* f = n.as_floating_point()) out.type = Node::Type::floating, out.floating = f->get();
    else if (const auto* s = n.as_string()) out.type = Node::Type::string, out.string = s->get();
    else {
      std::ostringstream text;
      if (const auto* d = n.as_date()) text << *d;
      else if (const auto* t = n.as_time()) text << *t;
      else if (const auto* dt = n.as_date_time()) text << *dt;
      out.type = Node::Type::datetime;
      out.string = text.str();
    }
  }

  Source source(const toml::source_region& r) const {
    const int line = static_cast<int>(r.begin.line), skip = line == 1 ? skip_ : 0;
    const int column = static_cast<int>(r.begin.column) - skip;
    const int end = r.end.line == r.begin.line ? static_cast<int>(r.end.column) - skip : column + 1;
    return {origin_, text_, line, column, std::max(end, column + 1)};
  }

  int text_;
  Origin origin_;
  int skip_;
};

bool replace(std::string& s, std::string_view from, std::string_view to) {
  const size_t at = s.find(from);
  if (at != s.npos) s.replace(at, from.size(), to);
  return at != s.npos;
}

const Node::Entry* last_named(const Node& n, std::string_view key) {
  const Node::Entry* best = nullptr;
  auto better = [&](const Node::Entry* e) {
    if (e && (!best || best->key_source.line <= e->key_source.line)) best = e;
  };
  for (const Node::Entry& e : n.table) {
    if (e.key == key) better(&e);
    better(last_named(e.value, key));
  }
  for (const Node& x : n.array) better(last_named(x, key));
  return best;
}

// Where the key that an error calls redefined stands first: the text before the error is known to be good.
int first_line_of(const std::string& key, bool header, const std::string& content, uint32_t error_line) {
  size_t end = 0;
  for (uint32_t i = 1; i < error_line && end != content.npos; ++i) end = content.find('\n', end) + 1;
  const auto before = toml::parse(std::string_view(content).substr(0, end));
  if (!before) return 0;
  const Node root = Builder(0, Origin::file).node(before.table());
  if (header) {
    const Node* n = root.at_path(key);
    return n ? n->source.line : 0;
  }
  const Node::Entry* e = last_named(root, key);
  return e ? e->key_source.line : 0;
}

std::string redefined_key(const std::string& what) {
  const size_t open = what.find('\''), close = what.find('\'', open + 1);
  const bool known = what.find("cannot redefine") != what.npos && open != what.npos && close != what.npos;
  return known ? what.substr(open + 1, close - open - 1) : "";
}

std::string explain_twice(const std::string& what, const std::string& content, uint32_t line) {
  const bool header = what.find("table header") != what.npos;
  const std::string key = redefined_key(what);
  if (key.empty()) return "this key is given twice; remove one of the two";
  const int first = first_line_of(key, header, content, line);
  std::string s = (header ? "the table [" + key + "]" : "the key \"" + key + "\"") + " is given twice";
  return s + (first ? ", first in line " + std::to_string(first) : "") + (header ? "; merge the two" : "; remove one of the two");
}

// toml++'s "Error while parsing decimal integer: expected digit, saw 'M'", said to a user.
std::string explain(std::string what, const std::string& content, uint32_t line) {
  if (what.find("cannot redefine") != what.npos) return explain_twice(what, content, line);
  std::string where;
  if (replace(what, "Error while parsing ", "")) {
    const size_t colon = what.find(": ");
    if (colon != what.npos) where = what.substr(0, colon), what.erase(0, colon + 2);
  }
  replace(what, "encountered end-of-file", "the file ends");
  replace(what, " (TOML_MAX_NESTED_VALUES)", "");
  if (replace(what, "could not determine value type", "this is not a value")) return what + "; a text needs quotes";
  replace(where, "array", "list");
  std::string s = what + (where.empty() ? "" : " (in a " + where + ")");
  const bool number = where.find("integer") != where.npos || where.find("floating") != where.npos;
  if (what.find("not representable") != what.npos) return s;
  if (number || where == "boolean" || where == "date" || where == "time") s += "; a text or a value with a unit needs quotes";
  return s;
}

// The line with a key of too many parts, or 0. No lexer: parts in a row, and dots beside quotes ("a b"."c d") in a line.
int too_deep_line(std::string_view s) {
  auto bare = [](char c) {
    return (static_cast<unsigned char>(c) | 32u) - 'a' < 26u || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  auto quote = [](char c) { return c == '"' || c == '\''; };
  int line = 1, row = 0, beside_quotes = 0;
  char last = '\n', before_dot = '\n';  // last character that is no blank
  bool blank = false;
  for (char c : s) {
    if (c == ' ' || c == '\t') {
      blank = true;
      continue;
    }
    if (c == '\n') ++line, beside_quotes = 0;
    if (c == '.') before_dot = last;
    if (last == '.' && (quote(c) || quote(before_dot))) ++beside_quotes;
    if (last == '.' && bare(c) && (bare(before_dot) || quote(before_dot))) ++row;
    else if (!bare(c) && c != '.') row = 0;
    else if (bare(c) && bare(last) && blank) row = 0;
    if (row > kDeepestKey || beside_quotes > kDeepestKey) return line;
    last = c;
    blank = false;
  }
  return 0;
}

}  // namespace

std::optional<Node> parse_toml(int text, Origin origin, const Texts& texts, Diagnostics& out) {
  const std::string& content = texts[static_cast<size_t>(text)].content;
  if (const int line = too_deep_line(content)) {
    out.add({origin, text, line, 1, 2}, "", "a key of more than " + std::to_string(kDeepestKey) + " parts");
    return std::nullopt;
  }
  const toml::parse_result result = toml::parse(content);
  if (result) return Builder(text, origin).node(result.table());
  const std::string what(result.error().description());
  const auto at = result.error().source().begin;
  const int line = std::max(1, static_cast<int>(at.line)), column = std::max(1, static_cast<int>(at.column));
  Source source{origin, text, line, column, column + 1};
  if (const std::string key = redefined_key(what); !key.empty()) {  // toml++ points behind the value
    const std::string_view shown = line_of(texts[static_cast<size_t>(text)], line);
    const size_t begin = shown.rfind(key, byte_of_column(shown, column));
    if (begin != shown.npos) {
      source.column = 1 + columns_in(shown.substr(0, begin));
      source.end_column = source.column + columns_in(key);
    }
  }
  out.add(source, "", explain(what, content, at.line));
  return std::nullopt;
}

std::optional<Node> parse_value(std::string_view value, std::string* why) {
  auto fail = [&](std::string s) {
    if (why) *why = std::move(s);
    return std::nullopt;
  };
  if (too_deep_line(value)) return fail("a key of too many parts");
  const std::string content = "v=" + std::string(value);
  const toml::parse_result result = toml::parse(content);
  if (!result) return fail(explain(std::string(result.error().description()), content, 1));
  const toml::node* v = result.table().get("v");
  if (!v || result.table().size() != 1) return fail("expected one value");
  const auto end = v->source().end;
  const Text text{"", "", content};
  const std::string_view last = line_of(text, static_cast<int>(end.line));
  const size_t stop =
      static_cast<size_t>(last.data() - text.content.data()) + byte_of_column(last, static_cast<int>(end.column));
  if (text.content.find_first_not_of(" \t", stop) != content.npos) return fail("expected one value and nothing after it");
  return Builder(-1, Origin::component_default, 2).node(*v);
}

}  // namespace lhost
