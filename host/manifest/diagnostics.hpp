// host/manifest/diagnostics.hpp - all errors of a manifest, collected, then printed together.
//   bad.toml:8:1: error: trainer.max_epoch: unknown key; did you mean "max_epochs"?
//      8 | max_epoch = 10
//        | ^~~~~~~~~
#pragma once
#include "manifest/node.hpp"

namespace lhost {

struct Diagnostic {
  Source source;
  std::string key;       // dotted: "optimizer.lr"; empty for syntax errors
  std::string message;   // "found the string \"1e-3\", expected a number > 0; remove the quotes"
  bool warning = false;  // a deprecated key: printed, stops nothing
  bool secret = false;   // without excerpt: the line holds a secret value
};

class Diagnostics {
 public:
  void add(Source s, std::string key, std::string message) {
    list_.push_back({s, std::move(key), std::move(message)});
  }
  void add(Diagnostic d) { list_.push_back(std::move(d)); }
  bool empty() const;  // no error; there may be warnings in the list
  const std::vector<Diagnostic>& list() const { return list_; }
  // Sorted by text and position, each with its excerpt; last line "3 errors in bad.toml. Nothing was started."
  // (left out if there are only warnings).
  std::string render(const Texts&, bool colour) const;

 private:
  std::vector<Diagnostic> list_;
};

// The closest of `known` to what was written, or empty if none is close (Damerau-Levenshtein <= max(2, len/3),
// and never more than half of what was written).
std::string closest(std::string_view written, const std::vector<std::string>& known);

}  // namespace lhost
