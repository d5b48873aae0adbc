// host/manifest/node.cpp - looking things up in the tree and putting things into it.
#include "manifest/node.hpp"
#include "manifest/path.hpp"

#include <algorithm>

namespace lhost {

bool Node::is_array_of_tables() const {
  return type == Type::array &&
         std::all_of(array.begin(), array.end(), [](const Node& n) { return n.is_table(); });
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& e : table) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) {
  for (Entry& e : table) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

const Node* Node::at_path(std::string_view dotted) const {
  const KeyPath path = parse_path(dotted);
  const Node* node = path.steps.empty() ? nullptr : this;
  for (const KeyStep& step : path.steps) {
    if (!node) break;
    if (!step.index) node = node->find(step.key);
    else node = *step.index < node->array.size() ? &node->array[*step.index] : nullptr;
  }
  return node;
}

void put(Node& table, std::string_view dotted, Node value) {
  Node* node = &table;
  for (size_t dot; (dot = dotted.find('.')) != dotted.npos; dotted.remove_prefix(dot + 1)) {
    const std::string_view key = dotted.substr(0, dot);
    node->type = Node::Type::table;
    if (!node->find(key)) node->table.push_back({std::string(key), {}, value.source});
    node = node->find(key);
  }
  node->type = Node::Type::table;
  if (Node* old = node->find(dotted)) *old = std::move(value);
  else node->table.push_back({std::string(dotted), std::move(value), {}});
}

const char* type_name(Node::Type type) {
  switch (type) {
    case Node::Type::none:
      return "nothing";
    case Node::Type::boolean:
      return "true or false";
    case Node::Type::integer:
      return "an integer";
    case Node::Type::floating:
      return "a number";
    case Node::Type::string:
      return "a string";
    case Node::Type::datetime:
      return "a date or time";
    case Node::Type::array:
      return "a list";
    case Node::Type::table:
      return "a table";
  }
  return "nothing";
}

}  // namespace lhost
