// host/manifest/to_toml.cpp - nodes back to TOML, so that reading it again gives the same values.
#include "manifest/node.hpp"

#include <charconv>
#include <cmath>

namespace lhost {
namespace {

std::string float_literal(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  std::string s(buffer,
                std::to_chars(buffer, buffer + sizeof buffer, v).ptr);  // shortest that reads back exactly
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

std::string key_literal(const std::string& key) {
  const char* bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !key.empty() && key.find_first_not_of(bare) == key.npos ? key : in_quotes(key);
}

std::string list_literal(const std::vector<Node>& list) {
  std::string s = "[";
  for (const Node& n : list) s += (s.size() > 1 ? ", " : "") + to_toml(n);
  return s + "]";
}

std::string table_literal(const std::vector<Node::Entry>& table) {
  if (table.empty()) return "{}";
  std::string s = "{ ";
  for (const Node::Entry& e : table) {
    if (e.value.type == Node::Type::none) continue;
    s += (s.size() > 2 ? ", " : "") + key_literal(e.key) + " = " + to_toml(e.value);
  }
  return s.size() > 2 ? s + " }" : "{}";
}

class Document {
 public:
  std::string run(const Node& root) {
    body(root, "", 0);
    return std::move(out_);
  }

 private:
  // What gets its own [header]: tables and lists of tables, down to [[optimizer.group]]; deeper ones stand inline.
  static bool is_section(const Node& n, int depth) {
    return depth == 0 ? n.is_table() || is_list(n) : depth == 1 && is_list(n);
  }
  static bool is_list(const Node& n) { return n.is_array_of_tables() && !n.array.empty(); }

  void body(const Node& table, const std::string& place, int depth) {
    for (const Node::Entry& e : table.table) {
      if (e.value.type == Node::Type::none || is_section(e.value, depth)) continue;
      out_ += key_literal(e.key) + " = " + to_toml(e.value) + "\n";
    }
    for (const Node::Entry& e : table.table) {
      if (!is_section(e.value, depth)) continue;
      const std::string name = place.empty() ? key_literal(e.key) : place + "." + key_literal(e.key);
      if (e.value.is_table()) {
        section("[" + name + "]", e.value, name, depth);
      } else {
        for (const Node& n : e.value.array) section("[[" + name + "]]", n, name, depth);
      }
    }
  }

  void section(const std::string& header, const Node& table, const std::string& name, int depth) {
    out_ += (out_.empty() ? "" : "\n") + header + "\n";
    body(table, name, depth + 1);
  }

  std::string out_;
};

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string s = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') s += '\\', s += c;
    else if (c == '\n') s += "\\n";
    else if (c == '\t') s += "\\t";
    else if (c == '\r') s += "\\r";
    else if (code < 0x20 || code == 0x7F) {
      const char* hex = "0123456789ABCDEF";
      s += "\\u00", s += hex[code >> 4], s += hex[code & 15u];
    } else s += c;
  }
  return s + '"';
}

std::string to_toml(const Node& n) {
  if (n.secret && n.type != Node::Type::none) return "\"***\"";
  switch (n.type) {
    case Node::Type::none:
      return "";
    case Node::Type::boolean:
      return n.boolean ? "true" : "false";
    case Node::Type::integer:
      return std::to_string(n.integer);
    case Node::Type::floating:
      return float_literal(n.floating);
    case Node::Type::string:
      return in_quotes(n.string);
    case Node::Type::datetime:
      return n.string;
    case Node::Type::array:
      return list_literal(n.array);
    case Node::Type::table:
      return table_literal(n.table);
  }
  return "";
}

std::string to_toml_document(const Node& table) { return Document().run(table); }

}  // namespace lhost
