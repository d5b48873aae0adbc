// host/manifest/unknown.cpp - keys that nobody knows, and the one that was probably meant.
#include "manifest/merge.hpp"
#include "manifest/option.hpp"

#include <algorithm>

namespace lhost {
namespace {

// "logger[0]" and "logger" are one table, as are "optimizer.group[1]" and "optimizer.group".
std::string without_indices(const std::string& place) {
  std::string s;
  bool inside = false;
  for (char c : place) {
    inside = c == '[' || (inside && c != ']');
    if (!inside && c != ']') s += c;
  }
  return s;
}

class UnknownKeys {
 public:
  UnknownKeys(const std::string& prefix, const std::vector<const Schema*>& known, const KnownKeys& everything,
              Diagnostics& out)
      : prefix_(prefix), everything_(everything), out_(out) {
    for (const Schema* schema : known) {
      for (const OptionSpec& spec : *schema) keys_.push_back(spec.key);
    }
  }

  // `below`: where in the table we are, with its dot: "train."
  void walk(const Node& table, const std::string& below) {
    for (const Node::Entry& e : table.table) {
      const std::string key = below + e.key;
      if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) continue;
      const bool inner = std::any_of(keys_.begin(), keys_.end(),
                                     [&](const std::string& k) { return k.rfind(key + ".", 0) == 0; });
      if (!inner) report(e, below);
      else if (e.value.is_table()) walk(e.value, key + ".");
    }
  }

 private:
  void report(const Node::Entry& e, const std::string& below) {
    const std::string place = prefix_.empty() ? below : prefix_ + "." + below;
    const bool table = place.empty() && (e.value.is_table() || e.value.is_array_of_tables());
    std::string near = closest(e.key, siblings(below)), message = table ? "unknown table" : "unknown key";
    if (table) {
      if (!near.empty()) message += "; did you mean [" + near + "]?";
    } else if (!near.empty()) {
      message += "; did you mean \"" + near + "\"?";
    } else {
      const std::string other = elsewhere(e.key);
      message += other.empty() ? choice(siblings(below)) : other;
    }
    out_.add(e.key_source, place + e.key, message);
  }

  std::vector<std::string> siblings(const std::string& below) const {
    std::vector<std::string> names;
    for (const std::string& k : keys_) {
      if (k.rfind(below, 0) != 0) continue;
      std::string name = k.substr(below.size(), k.find('.', below.size()) - below.size());
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    return names;
  }

  std::string choice(const std::vector<std::string>& names) const {
    if (names.size() > 12) return "; lhost inspect " + without_indices(prefix_) + " lists all";
    std::string s;
    for (const std::string& name : names) s += (s.empty() ? "; there are " : ", ") + name;
    return s;
  }

  // The closest key of all other tables.
  std::string elsewhere(const std::string& key) const {
    const std::string own = without_indices(prefix_);
    std::vector<std::string> all;
    for (const auto& [table, keys] : everything_) {
      if (table != own) all.insert(all.end(), keys.begin(), keys.end());
    }
    const std::string near = closest(key, all);
    for (const auto& [table, keys] : everything_) {
      if (near.empty() || table == own || std::find(keys.begin(), keys.end(), near) == keys.end()) continue;
      if (table.empty() && kind_table(near))
        return "; write [" + near + "] use = \"...\", a table of its own";
      const std::string what = table.empty() ? "a key of the manifest's top, before the first [table]"
                               : table.find(' ') != table.npos ? "an option of " + table
                                                               : "a key of [" + table + "]";
      return near == key ? "; it is " + what : "; did you mean \"" + near + "\"? it is " + what;
    }
    return "";
  }

  const std::string& prefix_;
  const KnownKeys& everything_;
  Diagnostics& out_;
  std::vector<std::string> keys_;
};

}  // namespace

void report_unknown(const Node& table, const std::string& prefix, const std::vector<const Schema*>& known,
                    const KnownKeys& everything, Diagnostics& out) {
  UnknownKeys(prefix, known, everything, out).walk(table, "");
}

}  // namespace lhost
