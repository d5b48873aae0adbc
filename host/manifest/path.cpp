// host/manifest/path.cpp - see path.hpp.
#include "manifest/path.hpp"

#include <charconv>

namespace lhost {
namespace {

constexpr size_t kMostSteps = 32;  // no schema is deeper; keeps trees shallow enough to recurse over

class PathParser {
 public:
  explicit PathParser(std::string_view s) : s_(s) {}

  KeyPath run() {
    bool more = true;
    while (more && path_.error.empty()) {
      key();
      while (path_.error.empty() && at('[')) index();
      more = at('.');
      if (more) ++i_;
    }
    if (path_.error.empty() && i_ < s_.size()) fail("expected a key such as trainer.max_epochs");
    if (path_.steps.size() > kMostSteps)
      fail("this key has more than " + std::to_string(kMostSteps) + " parts");
    if (!path_.error.empty()) path_.steps.clear();
    return std::move(path_);
  }

 private:
  bool at(char c) const { return i_ < s_.size() && s_[i_] == c; }
  void fail(std::string why) {
    if (path_.error.empty()) path_.error = std::move(why), path_.error_at = i_;
  }
  static bool bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }

  void key() {
    const size_t begin = i_;
    if (at('"') || at('\'')) {
      const size_t end = s_.find(s_[i_], i_ + 1);
      if (end == s_.npos) return fail("the quoted key is not closed");
      path_.steps.push_back({std::string(s_.substr(i_ + 1, end - i_ - 1)), {}, begin, end + 1});
      i_ = end + 1;
      return;
    }
    while (i_ < s_.size() && bare(s_[i_])) ++i_;
    if (i_ == begin) return fail("expected a key such as trainer.max_epochs");
    path_.steps.push_back({std::string(s_.substr(begin, i_ - begin)), {}, begin, i_});
  }

  void index() {
    const size_t begin = i_++;
    size_t n = 0;
    const auto [end, error] = std::from_chars(s_.data() + i_, s_.data() + s_.size(), n);
    const size_t stop = static_cast<size_t>(end - s_.data());
    if (error != std::errc() || stop >= s_.size() || s_[stop] != ']')
      return fail("expected an index such as [0]");
    i_ = stop + 1;
    path_.steps.push_back({{}, n, begin, i_});
  }

  std::string_view s_;
  size_t i_ = 0;
  KeyPath path_;
};

}  // namespace

KeyPath parse_path(std::string_view s) { return PathParser(s).run(); }

}  // namespace lhost
