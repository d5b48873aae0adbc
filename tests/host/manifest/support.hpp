// tests/host/manifest/support.hpp - a folder of manifests for a test, and short ways to check and to compare.
#pragma once
#include "base/failure.hpp"
#include "manifest/convert.hpp"
#include "manifest/host_keys.hpp"
#include "manifest/manifest.hpp"
#include "manifest/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace lhost {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lhost-manifest-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& content) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
    return file.string();
  }
  std::string path(const std::string& name = "") const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string place(const Source& s) {
  return std::to_string(s.line) + ":" + std::to_string(s.column) + "-" + std::to_string(s.end_column);
}

// "8:1-10 trainer.max_epoch: unknown key" of every diagnostic, in order of reporting.
inline std::vector<std::string> lines(const Diagnostics& d) {
  std::vector<std::string> out;
  for (const Diagnostic& x : d.list())
    out.push_back(place(x.source) + " " + (x.key.empty() ? "" : x.key + ": ") + x.message);
  return out;
}

// One text as a tree, with its text kept for excerpts and paths.
struct Parsed {
  Texts texts;
  Node root;
  Diagnostics problems;
  explicit Parsed(std::string content, std::string folder = "/base") {
    texts.push_back({"bad.toml", std::move(folder), std::move(content)});
    if (auto tree = parse_toml(0, Origin::file, texts, problems)) root = std::move(*tree);
  }
};

inline OptionSpec option(const std::string& key, int32_t type) {
  OptionSpec spec;
  spec.key = key;
  spec.type = type;
  return spec;
}

// Same values, whatever the order of tables' keys and the places.
inline bool same(const Node& a, const Node& b) {
  if (a.type != b.type || a.array.size() != b.array.size() || a.table.size() != b.table.size()) return false;
  for (size_t i = 0; i < a.array.size(); ++i) {
    if (!same(a.array[i], b.array[i])) return false;
  }
  for (const Node::Entry& e : a.table) {
    const Node* other = b.find(e.key);
    if (!other || !same(e.value, *other)) return false;
  }
  const bool both_nan = a.floating != a.floating && b.floating != b.floating;
  return a.boolean == b.boolean && a.integer == b.integer && (a.floating == b.floating || both_nan) &&
         a.string == b.string;
}

}  // namespace lhost
