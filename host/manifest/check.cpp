// host/manifest/check.cpp - a whole table against its schema.
#include "manifest/convert.hpp"
#include "manifest/parse.hpp"

#include <set>

namespace lhost {
namespace {

std::string join(const std::string& prefix, std::string_view key) {
  return prefix.empty() ? std::string(key) : prefix + "." + std::string(key);
}

// The keys under "train." in the schema, as a model of what a table there looks like.
std::string example(const Schema& schema, const std::string& place) {
  std::string s;
  for (const OptionSpec& spec : schema) {
    if (spec.key.rfind(place + ".", 0) == 0)
      s += (s.empty() ? "" : ", ") + spec.key.substr(place.size() + 1) + " = ...";
  }
  return "{ " + s + " }";
}

class TableCheck {
 public:
  TableCheck(const Node& table, const std::string& prefix, const Schema& schema, const Texts& texts,
             Diagnostics& out)
      : table_(table), prefix_(prefix), schema_(schema), texts_(texts), out_(out) {
    if (table.is_table() || table.type == Node::Type::none) return;
    out.add(table.source, prefix, "found " + found(table, {}, texts) + ", expected a table");
    blocked_ = true;
  }

  const Node* lookup(const OptionSpec& spec) {
    const Node* node = &table_;
    size_t begin = 0;
    blocked_here_ = blocked_;
    while (node) {
      const size_t dot = spec.key.find('.', begin);
      node = node->find(spec.key.substr(begin, dot - begin));
      if (!node || dot == spec.key.npos) return node;
      if (!node->is_table()) {
        not_a_table(*node, spec.key.substr(0, dot));
        return nullptr;
      }
      begin = dot + 1;
    }
    return nullptr;
  }

  Plain value(const OptionSpec& spec, const Node* node) {
    const std::string key = join(prefix_, spec.key);
    for (const std::string& bound : {spec.min, spec.max}) {
      if (!bound.empty() && !bound_of(spec, bound).set) {
        out_.add({}, key, "its own limit " + bound + " cannot be read: a bug of the component");
      }
    }
    if (node) {
      if (spec.flags & LH_O_DEPRECATED) deprecated(spec, key, *node);
      if (auto plain = Conversion(spec, key, texts_, &out_).run(*node)) return std::move(*plain);
    } else if ((spec.flags & LH_O_REQUIRED) && !blocked_here_) {
      out_.add(table_.source, key,
               "missing; expected " + expectation(spec) + (spec.doc.empty() ? "" : " (" + spec.doc + ")"));
    }
    return default_of(spec, key);
  }

 private:
  void not_a_table(const Node& node, const std::string& place) {
    blocked_here_ = true;
    if (!blamed_.insert(place).second) return;
    out_.add(node.source, join(prefix_, place),
             "found " + found(node, {}, texts_) + ", expected a table such as " + example(schema_, place));
  }

  void deprecated(const OptionSpec& spec, const std::string& key, const Node& node) {
    Diagnostic d{node.source, key,
                 "this key is deprecated" +
                     (spec.replaced_by.empty() ? "" : "; write " + in_quotes(spec.replaced_by))};
    d.secret = (spec.flags & LH_O_SECRET) != 0;
    d.warning = true;
    for (const OptionSpec& other : schema_) {
      if (other.key != spec.replaced_by || !lookup(other)) continue;
      d.warning = false;
      d.message = "given together with " + in_quotes(other.key) + ", which replaces it; remove this one";
    }
    out_.add(std::move(d));
  }

  Plain default_of(const OptionSpec& spec, const std::string& key) {
    Plain none;
    none.node.secret = (spec.flags & LH_O_SECRET) != 0;
    if (spec.def.empty()) return none;
    if (const auto node = parse_value(spec.def)) {
      OptionSpec lenient = spec;  // a default may be the empty text that stands for "none"
      lenient.min_len = 0;
      if (auto plain = Conversion(lenient, key, texts_, nullptr).run(*node)) return std::move(*plain);
    }
    out_.add({}, key,
             "its own default " + spec.def + " is not " + expectation(spec) + ": a bug of the component");
    return none;
  }

  const Node& table_;
  const std::string& prefix_;
  const Schema& schema_;
  const Texts& texts_;
  Diagnostics& out_;
  std::set<std::string> blamed_;  // nested tables that are none, each reported once
  bool blocked_ = false, blocked_here_ = false;
};

}  // namespace

Values check_table(const Node& table, const std::string& prefix, const Schema& schema, const Texts& texts,
                   Diagnostics& out) {
  Values values;
  values.schema_ = schema;
  TableCheck check(table, prefix, schema, texts, out);
  for (const OptionSpec& spec : schema) {
    if (spec.type == LH_T_NONE) {
      values.keep({});
      values.given_.push_back(false);
      continue;
    }
    const Node* node = check.lookup(spec);
    values.keep(check.value(spec, node));
    values.given_.push_back(node && node->source.origin >= Origin::file);
  }
  return values;
}

}  // namespace lhost
