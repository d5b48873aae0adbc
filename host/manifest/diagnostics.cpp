// host/manifest/diagnostics.cpp - how errors look on the screen, and "did you mean".
#include "manifest/diagnostics.hpp"

#include "manifest/text.hpp"

#include <algorithm>
#include <tuple>

namespace lhost {
namespace {

constexpr int kWidest = 100;        // columns of an excerpt
constexpr size_t kMostShown = 100;  // nobody reads more, and each has to be looked up in its text

// One line in safe, single-width characters: tabs as one blank, what a terminal could act on as "?".
std::string plain(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const auto c = static_cast<unsigned char>(s[i]);
    const bool c1 = c == 0xC2 && i + 1 < s.size() && static_cast<unsigned char>(s[i + 1]) < 0xA0;
    if (c == '\t') out += ' ';
    else if (c < 0x20 || c == 0x7F) out += '?';
    else if (c1) out += '?', ++i;
    else out += s[i];
  }
  if (valid_utf8(out)) return out;
  for (char& c : out) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return out;
}

struct Paint {
  bool on;
  std::string operator()(const char* code, const std::string& s) const {
    return on ? "\033[" + std::string(code) + "m" + s + "\033[0m" : s;
  }
};

// The line and its carets; a long line is cut to a window around the mark.
std::string excerpt(const Text& text, const Source& s, Paint paint) {
  const std::string line = plain(line_of(text, s.line));
  const int length = columns_in(line);
  const int mark = std::clamp(s.column, 1, length + 1);
  const int end = std::clamp(s.end_column, mark + 1, std::max(length, mark) + 1);
  const int first = mark <= kWidest * 3 / 4 || length <= kWidest ? 1 : mark - kWidest / 4;
  const int last = std::min(length, first + kWidest - 1);
  const size_t from = byte_of_column(line, first), to = byte_of_column(line, last + 1);
  const std::string before = first > 1 ? "..." : "", after = last < length ? "..." : "";
  const int stop = std::max(mark + 1, std::min(end, last + 1));
  std::string number = std::to_string(s.line);
  number.insert(0, number.size() < 4 ? 4 - number.size() : 0, ' ');
  std::string out = number + " | " + before + line.substr(from, to - from) + after + "\n";
  out += std::string(number.size(), ' ') + " | " +
         std::string(before.size() + static_cast<size_t>(mark - first), ' ');
  return out + paint("31;1", "^" + std::string(static_cast<size_t>(stop - mark - 1), '~')) + "\n";
}

const Text* text_of(const Texts& texts, const Diagnostic& d) {
  const bool known = d.source.text >= 0 && static_cast<size_t>(d.source.text) < texts.size();
  return known ? &texts[static_cast<size_t>(d.source.text)] : nullptr;
}

std::string one(const Diagnostic& d, const Texts& texts, Paint paint) {
  const Text* text = text_of(texts, d);
  const bool placed = text && d.source.line > 0;
  std::string place = text ? text->name : texts.empty() ? "manifest" : texts[0].name;
  if (placed) place += ":" + std::to_string(d.source.line) + ":" + std::to_string(d.source.column);
  std::string s = paint("1", plain(place) + ":") + " " +
                  (d.warning ? paint("33;1", "warning:") : paint("31;1", "error:")) + " ";
  s += (d.key.empty() ? "" : plain(d.key) + ": ") + plain(d.message) + "\n";
  return placed && !d.secret ? s + excerpt(*text, d.source, paint) : s;
}

std::string closing(const std::vector<const Diagnostic*>& sorted, const Texts& texts) {
  std::vector<std::string> names;
  size_t errors = 0;
  for (const Diagnostic* d : sorted) {
    if (d->warning) continue;
    ++errors;
    const Text* text = text_of(texts, *d);
    std::string name = plain(text ? text->name : texts.empty() ? "the manifest" : texts[0].name);
    if (name == "command line") name = "the command line";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (errors == 0) return "";
  std::string where;
  for (size_t i = 0; i < names.size(); ++i) {
    where += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  const std::string shown =
      sorted.size() > kMostShown ? "; the first " + std::to_string(kMostShown) + " are shown" : "";
  return std::to_string(errors) + (errors == 1 ? " error in " : " errors in ") + where + shown +
         ". Nothing was started.\n";
}

}  // namespace

bool Diagnostics::empty() const {
  return std::all_of(list_.begin(), list_.end(), [](const Diagnostic& d) { return d.warning; });
}

std::string Diagnostics::render(const Texts& texts, bool colour) const {
  std::vector<const Diagnostic*> sorted;
  for (const Diagnostic& d : list_) sorted.push_back(&d);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic* a, const Diagnostic* b) {
    auto place = [](const Source& s) { return std::tuple(s.text < 0, s.text, s.line, s.column); };
    return place(a->source) < place(b->source);
  });
  std::string out;
  for (size_t i = 0; i < std::min(sorted.size(), kMostShown); ++i)
    out += one(*sorted[i], texts, Paint{colour});
  return out + closing(sorted, texts);
}

std::string closest(std::string_view written, const std::vector<std::string>& known) {
  const size_t n = written.size();
  if (n == 0 || n > 200) return {};
  size_t best = std::max<size_t>(1, std::min(std::max<size_t>(2, n / 3), n / 2)) + 1;
  std::string found;
  for (const std::string& k : known) {
    if (k.size() > n + best || n > k.size() + best) continue;
    std::vector<std::vector<size_t>> d(n + 1, std::vector<size_t>(k.size() + 1));
    for (size_t i = 0; i <= n; ++i) d[i][0] = i;
    for (size_t j = 0; j <= k.size(); ++j) d[0][j] = j;
    for (size_t i = 1; i <= n; ++i) {
      for (size_t j = 1; j <= k.size(); ++j) {
        const size_t change = written[i - 1] == k[j - 1] ? 0 : 1;
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
        const bool swapped = i > 1 && j > 1 && written[i - 1] == k[j - 2] && written[i - 2] == k[j - 1];
        if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
    if (d[n][k.size()] < best) best = d[n][k.size()], found = k;
  }
  return found;
}

}  // namespace lhost
