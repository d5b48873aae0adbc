// host/manifest/node.hpp - the manifest as a tree in which every key and value knows where it was written.
// Plain data, no toml++: parse.cpp is the only file that includes it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lhost {

enum class Origin { component_default, defaults_file, file, environment, command_line };

// A place in a text. `text` is an index into Texts (the manifest, a file it extends, an override, LHOST_SET).
struct Source {
  Origin origin = Origin::component_default;
  int text = -1;                             // -1: nowhere, a default
  int line = 0, column = 0, end_column = 0;  // from 1; end_column is one past the last character on that line
};

struct Node {
  enum class Type { none, boolean, integer, floating, string, datetime, array, table };
  struct Entry;

  Type type = Type::none;
  bool boolean = false;
  int64_t integer = 0;
  double floating = 0;
  std::string string;  // strings; a datetime's text
  std::vector<Node> array;
  std::vector<Entry> table;  // in the order of the file
  Source source;             // of the value; of a table its [header]
  bool secret = false;       // LH_O_SECRET, set by check_table: to_toml writes "***"

  bool is_table() const { return type == Type::table; }
  bool is_array_of_tables() const;               // an empty array is one
  const Node* find(std::string_view key) const;  // direct child of a table, or NULL
  Node* find(std::string_view key);
  const Node* at_path(std::string_view dotted) const;  // "data.train.images", "logger[1].use"
};
struct Node::Entry {
  std::string key;
  Node value;
  Source key_source;
};

const char* type_name(Node::Type);                // "a string", "an integer", ... for messages
std::string to_toml(const Node&);                 // a value as a TOML literal, on one line
std::string to_toml_document(const Node& table);  // a whole table as a TOML file, tables in [brackets]
std::string in_quotes(std::string_view);  // a TOML basic string: in quotes, control characters escaped
void put(Node& table, std::string_view dotted,
         Node value);  // makes the tables on the way; replaces what is there

// A manifest's texts, for excerpts under errors and for provenance.
struct Text {
  std::string name;    // "digits.toml", "command line", "LHOST_SET": what stands before :line:column
  std::string folder;  // absolute; relative paths in this text are relative to it
  std::string content;
};
using Texts = std::vector<Text>;

}  // namespace lhost
