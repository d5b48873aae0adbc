// host/manifest/overrides.cpp - see overrides.hpp.
#include "manifest/overrides.hpp"

#include "manifest/merge.hpp"
#include "manifest/parse.hpp"
#include "manifest/path.hpp"
#include "manifest/text.hpp"

#include <algorithm>

namespace lhost {
namespace {

class Override {
 public:
  Override(int text, size_t begin, size_t end, Origin origin, const Texts& texts, Diagnostics& out)
      : all_(texts[static_cast<size_t>(text)].content),
        begin_(begin),
        text_(text),
        origin_(origin),
        out_(out) {
    item_ = all_.substr(begin, end - begin);
  }

  void apply(Node& root) {
    const size_t equals = item_.find('=');
    if (!valid_utf8(all_)) return fail(0, 1, "", "this is not valid UTF-8");
    if (equals == item_.npos || equals == 0)
      return fail(0, item_.size(), "", "expected KEY=VALUE, such as trainer.max_epochs=3");
    append_ = item_[equals - 1] == '+';
    const std::string_view key = item_.substr(0, append_ ? equals - 1 : equals);
    path_ = parse_path(key);
    if (!path_.error.empty()) return fail(path_.error_at, path_.error_at + 1, "", path_.error);
    key_ = std::string(key);
    if (path_.steps.front().key == "extends")
      return fail(0, key.size(), key_,
                  "only a file can extend others; write it there, or make a manifest of both");
    if (!read_value(equals + 1)) return;
    if (Node* parent = walk(root)) set(*parent);
  }

 private:
  Source source(size_t begin, size_t end) const {
    const std::string_view before = all_.substr(0, begin_ + begin);
    const int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const int column = 1 + columns_in(before.substr(before.rfind('\n') + 1));  // npos + 1 = 0
    return {origin_, text_, line, column, column + std::max(1, columns_in(item_.substr(begin, end - begin)))};
  }
  Source source(const KeyStep& step) const { return source(step.begin, step.end); }
  void fail(size_t begin, size_t end, const std::string& key, std::string why) {
    out_.add(source(begin, end), key, std::move(why));
  }
  std::string place(size_t steps) const { return key_.substr(0, steps ? path_.steps[steps - 1].end : 0); }

  // A TOML value, or a string if it is none and does not begin like one.
  bool read_value(size_t begin) {
    const std::string_view text = item_.substr(begin);
    std::string why;
    if (auto value = parse_value(text, &why)) {
      value_ = std::move(*value);
      move_source(value_, source(begin, begin + 1));
      return true;
    }
    const size_t first = text.find_first_not_of(" \t");
    if (first != text.npos && std::string_view("[{\"'").find(text[first]) != text.npos) {
      fail(begin, item_.size(), key_, "this is not a TOML value: " + why + "; a text goes in quotes");
      return false;
    }
    value_.type = Node::Type::string;
    value_.string = std::string(text);
    value_.source = source(begin, std::max(begin + 1, item_.size()));
    return true;
  }

  // From places in the value to places in the text.
  void move_source(Node& n, const Source& first) const {
    move_source(n.source, first);
    for (Node& x : n.array) move_source(x, first);
    for (Node::Entry& e : n.table) {
      move_source(e.key_source, first);
      move_source(e.value, first);
    }
  }
  static void move_source(Source& s, const Source& first) {
    const int shift = s.line == 1 ? first.column - 1 : 0;
    s = {first.origin, first.text, s.line + first.line - 1, s.column + shift, s.end_column + shift};
  }

  // The table or list that the last step is in; makes the tables on the way.
  Node* walk(Node& root) {
    Node* node = &root;
    for (size_t i = 0; i + 1 < path_.steps.size() && node; ++i) node = child(*node, i, true);
    return node;
  }

  Node* child(Node& node, size_t i, bool make) {
    const KeyStep& step = path_.steps[i];
    if (step.index) {
      if (node.type != Node::Type::array) return refuse(i, node, "a list");
      if (*step.index < node.array.size()) return &node.array[*step.index];
      fail(step.begin, step.end, place(i + 1),
           "there is no entry " + std::to_string(*step.index) + ", the list has " +
               std::to_string(node.array.size()) + "; add one with " + place(i) + "+=...");
      return nullptr;
    }
    if (!node.is_table()) return refuse(i, node, "a table");
    if (Node* known = node.find(step.key)) return known;
    if (!make) return nullptr;
    Node table;
    table.type = Node::Type::table;
    table.source = source(step);
    node.table.push_back({step.key, std::move(table), source(step)});
    return &node.table.back().value;
  }

  Node* refuse(size_t i, const Node& node, const char* expected) {
    const KeyStep& step = path_.steps[i];
    const std::string at = place(i);
    std::string why =
        (at.empty() ? "the manifest" : at) + " is " + type_name(node.type) + ", not " + expected;
    if (node.type == Node::Type::array && !step.index) {
      why += "; write " + at + "[0]." + std::string(key_.substr(step.begin)) + "=... or " + at + "+={...}";
    }
    fail(step.begin, step.end, key_, why);
    return nullptr;
  }

  void set(Node& parent) {
    const size_t last = path_.steps.size() - 1;
    const KeyStep& step = path_.steps[last];
    if (append_) return append(parent, last);
    drop_others(parent, step);
    if (step.index) {
      if (Node* element = child(parent, last, false)) assign(*element);
      return;
    }
    if (!parent.is_table()) {
      refuse(last, parent, "a table");
      return;
    }
    const auto old = std::find_if(parent.table.begin(), parent.table.end(),
                                  [&](const auto& e) { return e.key == step.key; });
    if (old == parent.table.end()) {
      parent.table.push_back({step.key, std::move(value_), source(step)});
      return;
    }
    if (!value_.is_table() || !old->value.is_table()) old->key_source = source(step);
    assign(old->value);
  }

  void append(Node& parent, size_t last) {
    const KeyStep& step = path_.steps[last];
    if (!step.index && parent.is_table() && !parent.find(step.key)) {
      Node list;
      list.type = Node::Type::array;
      list.source = value_.source;
      parent.table.push_back({step.key, std::move(list), source(step)});
    }
    Node* list = child(parent, last, false);
    if (!list) return;
    if (list->type == Node::Type::array) list->array.push_back(std::move(value_));
    else
      fail(step.begin, step.end, key_,
           place(last + 1) + " is " + type_name(list->type) + ", not a list; write = in place of +=");
  }

  // strategy.use=... and logger[0].use=...: the options of the component that was there go.
  void drop_others(Node& parent, const KeyStep& last) {
    const auto& steps = path_.steps;
    const bool single = steps.size() == 2, listed = steps.size() == 3 && steps[1].index;
    const KindTable* kind = single || listed ? kind_table(steps[0].key) : nullptr;
    if (!kind || kind->list != listed || (last.key != "use" && last.key != "plugin")) return;
    Node selection;
    selection.table.push_back({last.key, value_, {}});
    drop_options_of_other(parent, selection, *kind, origin_);
  }

  void assign(Node& old) {
    if (value_.is_table() && old.is_table()) merge_tables(old, std::move(value_), key_);
    else old = std::move(value_);
  }

  std::string_view all_, item_;
  size_t begin_;
  int text_;
  Origin origin_;
  Diagnostics& out_;
  std::string key_;
  KeyPath path_;
  bool append_ = false;
  Node value_;
};

}  // namespace

void apply_override(Node& root, int text, size_t begin, size_t end, Origin origin, const Texts& texts,
                    Diagnostics& out) {
  Override(text, begin, end, origin, texts, out).apply(root);
}

std::vector<std::pair<size_t, size_t>> split_items(std::string_view s) {
  std::vector<std::pair<size_t, size_t>> items;
  size_t begin = 0;
  int depth = 0;
  char quote = 0, last = '=';  // last: no blank; a quote opens only where a key or a value may begin
  auto close = [&](size_t end) {
    const size_t first = std::min(s.find_first_not_of(" \t\n", begin), end);
    while (end > first && (s[end - 1] == ' ' || s[end - 1] == '\t' || s[end - 1] == '\n')) --end;
    if (end > first) items.push_back({first, end});
  };
  for (size_t i = 0; i < s.size(); ++i) {
    if (quote) {
      if (s[i] == '\\' && quote == '"') ++i;
      else if (s[i] == quote) quote = 0;
    } else if ((s[i] == '"' || s[i] == '\'') &&
               std::string_view("=[{,.;").find(last) != std::string_view::npos) {
      quote = s[i];
    } else if (s[i] == '[' || s[i] == '{') {
      ++depth;
    } else if (s[i] == ']' || s[i] == '}') {
      depth = std::max(0, depth - 1);
    } else if (s[i] == ';' && depth == 0) {
      close(i);
      begin = i + 1;
    }
    if (i < s.size() && s[i] != ' ' && s[i] != '\t') last = s[i];
  }
  close(s.size());
  return items;
}

}  // namespace lhost
