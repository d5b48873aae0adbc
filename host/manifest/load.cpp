// host/manifest/load.cpp - reads the texts and lays them over one another; see manifest.hpp for the order.
#include "base/failure.hpp"
#include "manifest/manifest.hpp"
#include "manifest/merge.hpp"
#include "manifest/overrides.hpp"
#include "manifest/parse.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace lhost {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLargest = 16u << 20;  // bytes; a manifest is a page or two
constexpr size_t kDeepest = 32;         // files that extend one another

std::string read_stream(std::istream& in, std::string& problem) {
  std::string s;
  char block[1 << 14];
  while (in && s.size() <= kLargest) {
    in.read(block, sizeof block);
    s.append(block, static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) problem = "cannot be read";
  if (s.size() > kLargest) problem = "is larger than 16 MiB; this is no manifest";
  if (s.rfind("\xEF\xBB\xBF", 0) == 0) s.erase(0, 3);  // a byte order mark is in no column
  return s;
}

// `problem`: what is wrong with the file, as the end of a sentence that begins with its name.
std::string read_file(const fs::path& path, std::string& problem) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) problem = "does not exist";
  else if (fs::is_directory(status)) problem = "is a folder, not a manifest";
  if (!problem.empty()) return {};
  std::ifstream in(path, std::ios::binary);
  if (!in) problem = "cannot be read; is reading it permitted?";
  return problem.empty() ? read_stream(in, problem) : std::string();
}

std::string current_folder() {
  std::error_code error;
  std::string folder = fs::current_path(error).string();
  if (error)
    throw Failure(Exit::environment, "the current folder does not exist any more; change to another one");
  return folder;
}

class Loader {
 public:
  explicit Loader(Diagnostics& out) : out_(out) {}

  Manifest run(const ManifestInput& input) {
    snapshot_ = &input.snapshot;
    Node user = main_file(input.path);
    Node& root = m_.root;
    root = defaults(input.defaults_path);
    merge_tables(root, std::move(user), "");
    if (input.lhost_set) {
      const int text = add("LHOST_SET", current_folder(), *input.lhost_set);
      for (const auto& [begin, end] : split_items(*input.lhost_set)) {
        apply_override(root, text, begin, end, Origin::environment, m_.texts, out_);
      }
    }
    for (const std::string& item : input.overrides) {
      const int text = add("command line", current_folder(), item);
      apply_override(root, text, 0, item.size(), Origin::command_line, m_.texts, out_);
    }
    check_shape(root);
    for (const auto& [table, entries] : always_) put_at_end(root, table, entries);
    return std::move(m_);
  }

 private:
  int add(std::string name, std::string folder, std::string content) {
    m_.texts.push_back({std::move(name), std::move(folder), std::move(content)});
    return static_cast<int>(m_.texts.size()) - 1;
  }

  std::string content_of(const fs::path& path, std::string& problem) {
    const auto kept = snapshot_->find(path.string());
    std::string content = kept != snapshot_->end() ? kept->second
                          : path == "-"            ? read_stream(std::cin, problem)
                                                   : read_file(path, problem);
    if (problem.empty()) m_.files[path.string()] = content;
    return content;
  }

  Node main_file(const std::string& path) {
    std::string problem, content;
    if (path == "-") {
      m_.path = path;
      content = content_of(path, problem);
      if (!problem.empty()) throw Failure(Exit::usage, "the manifest on standard input " + problem);
      return tree(add("standard input", current_folder(), std::move(content)), {});
    }
    const fs::path absolute = (fs::path(current_folder()) / path).lexically_normal();
    m_.path = absolute.string();
    content = content_of(absolute, problem);
    if (!problem.empty()) throw Failure(Exit::usage, "the manifest " + path + " " + problem);
    return tree(add(path, absolute.parent_path().string(), std::move(content)), {absolute});
  }

  // The text with everything that it extends below it. `chain`: the files that led here, this one last.
  Node tree(int text, const std::vector<fs::path>& chain) {
    std::optional<Node> parsed = parse_toml(text, Origin::file, m_.texts, out_);
    m_.complete = m_.complete && parsed;
    if (!parsed) return empty_table();
    Node merged = empty_table();
    if (const Node* extends = parsed->find("extends")) {
      const std::vector<Node> one = {*extends};
      const auto& bases = extends->type == Node::Type::array ? extends->array : one;
      for (const Node& base : bases) merge_tables(merged, base_file(base, text, chain), "");
      std::erase_if(parsed->table, [](const Node::Entry& e) { return e.key == "extends"; });
    }
    merge_tables(merged, std::move(*parsed), "");
    return merged;
  }

  Node base_file(const Node& name, int from, const std::vector<fs::path>& chain) {
    if (name.type != Node::Type::string || name.string.empty() ||
        name.string.find('\0') != std::string::npos) {
      const std::string what =
          name.type == Node::Type::string ? in_quotes(name.string) : type_name(name.type);
      return refuse(name, "found " + what + ", expected a manifest's path or a list of paths");
    }
    const Text& text = m_.texts[static_cast<size_t>(from)];
    const fs::path absolute = (fs::path(text.folder) / name.string).lexically_normal();
    if (const auto known = done_.find(absolute); known != done_.end()) return known->second;
    if (std::find(chain.begin(), chain.end(), absolute) != chain.end()) {
      std::string way;
      for (auto i = std::find(chain.begin(), chain.end(), absolute); i != chain.end(); ++i)
        way += i->filename().string() + " -> ";
      return refuse(name,
                    "these manifests extend one another in a circle: " + way + absolute.filename().string());
    }
    if (chain.size() >= kDeepest)
      return refuse(name, "more than " + std::to_string(kDeepest) + " manifests extend one another");
    std::string problem;
    std::string content = content_of(absolute, problem);
    if (!problem.empty()) return refuse(name, "the manifest " + absolute.string() + " " + problem);
    std::string shown = (fs::path(text.name).parent_path() / name.string).lexically_normal().string();
    std::vector<fs::path> longer = chain;
    longer.push_back(absolute);
    return done_[absolute] =
               tree(add(std::move(shown), absolute.parent_path().string(), std::move(content)), longer);
  }

  Node refuse(const Node& extends, std::string why) {
    out_.add(extends.source, "extends", std::move(why));
    m_.complete = false;
    return empty_table();
  }

  static Node empty_table() {
    Node n;
    n.type = Node::Type::table;
    return n;
  }

  Node defaults(const std::string& path) {
    if (path.empty()) return empty_table();
    std::string problem, content = content_of(path, problem);
    if (!problem.empty()) {
      throw Failure(Exit::environment, "the installation is incomplete: " + path + " " + problem);
    }
    const int text = add(path, fs::path(path).parent_path().string(), std::move(content));
    std::optional<Node> root = parse_toml(text, Origin::defaults_file, m_.texts, out_);
    m_.complete = m_.complete && root;
    if (!root) return empty_table();
    for (const KindTable& kind : kind_tables()) {
      Node* list = kind.list ? root->find(kind.table) : nullptr;
      if (list) std::erase_if(list->array, [&](Node& n) { return take_always(n, kind.table); });
    }
    return std::move(*root);
  }

  bool take_always(Node& entry, const char* table) {
    const Node* flag = entry.find("always");
    const bool always = flag && flag->boolean;
    std::erase_if(entry.table, [](const Node::Entry& e) { return e.key == "always"; });
    if (always) always_[table].push_back(entry);
    return always;
  }

  static void put_at_end(Node& root, const std::string& table, const std::vector<Node>& entries) {
    Node none;
    none.type = Node::Type::array;
    if (!root.find(table)) put(root, table, none);
    std::vector<Node>& list = root.find(table)->array;
    std::vector<Node> unnamed;
    for (const Node& entry : entries) {
      const bool named = std::any_of(list.begin(), list.end(), [&](const Node& n) {
        const Node *a = n.find("use"), *b = entry.find("use");
        return a && b && a->string == b->string;
      });
      if (!named) unnamed.push_back(entry);
    }
    list.insert(list.end(), unnamed.begin(), unnamed.end());
  }

  // Known tables are tables, known lists are lists of tables; what is not is an error and goes.
  void check_shape(Node& root) {
    std::erase_if(root.table, [&](Node::Entry& e) {
      const KindTable* kind = kind_table(e.key);
      if (kind && kind->list) return !is_list(e.value, e.key);
      const bool known = kind || e.key == "run" || e.key == "trainer" || e.key == "resume";
      return known && !is_table(e.value, e.key);
    });
    Node* optimizer = root.find("optimizer");
    if (optimizer) {
      std::erase_if(optimizer->table,
                    [&](Node::Entry& e) { return e.key == "group" && !is_list(e.value, "optimizer.group"); });
    }
  }

  bool is_table(const Node& n, const std::string& place) {
    if (n.is_table()) return true;
    out_.add(n.source, place,
             "found " + what(n) + ", expected a table; write [" + place + "]" +
                 (n.type == Node::Type::array ? ", once" : ""));
    return false;
  }

  bool is_list(Node& n, const std::string& place) {
    if (n.type != Node::Type::array) {
      out_.add(n.source, place, "found " + what(n) + ", expected a list of tables; write [[" + place + "]]");
      return false;
    }
    size_t i = 0;
    std::erase_if(n.array, [&](const Node& x) {
      const std::string at = place + "[" + std::to_string(i++) + "]";
      if (x.is_table()) return false;
      const std::string help =
          x.type == Node::Type::string ? "; write { use = " + in_quotes(x.string) + " }" : "";
      out_.add(x.source, at, "found " + what(x) + ", expected a table" + help);
      return true;
    });
    return true;
  }

  static std::string what(const Node& n) {
    return n.type == Node::Type::string ? "the string " + in_quotes(n.string) : type_name(n.type);
  }

  Diagnostics& out_;
  const std::map<std::string, std::string>* snapshot_ = nullptr;
  Manifest m_;
  std::map<fs::path, Node> done_;                    // files that several others extend
  std::map<std::string, std::vector<Node>> always_;  // of the defaults file, by table
};

}  // namespace

Manifest load_manifest(const ManifestInput& input, Diagnostics& out) { return Loader(out).run(input); }

}  // namespace lhost
