// host/manifest/merge.cpp - see merge.hpp.
#include "manifest/merge.hpp"

#include <algorithm>

namespace lhost {
namespace {

bool same_text(const Node* a, const Node* b) {
  return a && b && a->type == b->type && a->string == b->string;
}

bool selects_other(const Node& table, const Node& selection) {
  for (const char* key : {"use", "plugin"}) {
    const Node* wanted = selection.find(key);
    if (wanted && !same_text(wanted, table.find(key))) return table.find("use") || table.find("plugin");
  }
  return false;
}

bool belongs_to_host(std::string_view key, const KindTable& kind) {
  if (key == "name") return true;
  const Schema& schema = host_part(kind.kind);
  return key != "group" && std::any_of(schema.begin(), schema.end(), [&](const OptionSpec& spec) {
           return spec.key == key || spec.key.rfind(std::string(key) + ".", 0) == 0;
         });
}

// Remove what was written below `layer`; true if nothing is left.
bool prune(Node& n, Origin layer) {
  if (!n.is_table()) return n.source.origin < layer;
  const size_t before = n.table.size();
  std::erase_if(n.table, [&](Node::Entry& e) { return prune(e.value, layer); });
  return n.table.empty() && (before > 0 || n.source.origin < layer);
}

// { steps = 500 } over { epochs = 1 } is another cadence, not both.
bool is_cadence(const Node& n) {
  static const std::vector<std::string> units = {"steps", "batches", "samples", "epochs", "seconds"};
  return n.table.size() == 1 && std::find(units.begin(), units.end(), n.table[0].key) != units.end();
}

// Errors about a table point to the file that wrote it, not to an override that only reached into it.
bool takes_place(const Source& lower, const Source& upper) {
  return upper.origin <= Origin::file || lower.origin < Origin::file;
}

}  // namespace

const KindTable* kind_table(std::string_view table) {
  for (const KindTable& t : kind_tables()) {
    if (table == t.table) return &t;
  }
  return nullptr;
}

void drop_options_of_other(Node& table, const Node& selection, const KindTable& kind, Origin layer) {
  if (!table.is_table() || !selects_other(table, selection)) return;
  std::erase_if(table.table,
                [&](Node::Entry& e) { return !belongs_to_host(e.key, kind) && prune(e.value, layer); });
}

void merge_tables(Node& lower, Node upper, const std::string& place) {
  const KindTable* kind = kind_table(std::string_view(place).substr(0, place.find('[')));
  const Origin all = static_cast<Origin>(static_cast<int>(Origin::command_line) + 1);
  if (kind && kind->list == (place.back() == ']')) drop_options_of_other(lower, upper, *kind, all);
  const size_t known = lower.table.size();  // the upper table's keys differ from one another
  for (Node::Entry& e : upper.table) {
    const auto end = lower.table.begin() + static_cast<std::ptrdiff_t>(known);
    const auto old = std::find_if(lower.table.begin(), end, [&](const auto& x) { return x.key == e.key; });
    if (old == end) {
      lower.table.push_back(std::move(e));
      continue;
    }
    const bool both =
        old->value.is_table() && e.value.is_table() && !(is_cadence(old->value) && is_cadence(e.value));
    if (!both || takes_place(old->key_source, e.key_source)) old->key_source = e.key_source;
    if (both) merge_tables(old->value, std::move(e.value), place.empty() ? e.key : place + "." + e.key);
    else old->value = std::move(e.value);
  }
  if (takes_place(lower.source, upper.source)) lower.source = upper.source;
}

}  // namespace lhost
