// plugins/data/csv/csv.cpp - data component "csv": numbers from files of separated values, read as a whole
// when a split is described. Fields: "features" (float32, one per chosen column) and "label" (int64 classes
// or float32).
#include <charconv>
#include <cmath>
#include <lhost/sdk/data.hpp>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "table.hpp"

namespace {

enum class LabelType { Class, Number };

struct Options {
  lhost::Path train, val, test, predict;
  std::string label = "label";
  std::vector<std::string> features;
  bool header = true;
  std::string delimiter = ",";
  LabelType label_type = LabelType::Class;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::train, "train", "file with the training rows").must_exist();
    d(&Options::val, "val", "rows for validation; see also the host's key split").must_exist();
    d(&Options::test, "test", "rows for the test").must_exist();
    d(&Options::predict, "predict", "rows to predict; a label column in it is not read").must_exist();
    d(&Options::label, "label", "column with the label; empty = there is none");
    d(&Options::features, "features", "columns to learn from, in this order; empty = all others");
    d(&Options::header, "header", "the first row has the columns' names; else they are 0, 1, 2 and so on");
    d(&Options::delimiter, "delimiter", "the character between two cells");
    d(&Options::label_type, "label_type", "class: whole numbers from 0; number: any number")
        .choices({"class", "number"});
  }
};

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text.substr(0, 40)) s += static_cast<unsigned char>(c) < 32 ? '?' : c;
  return s + (text.size() > 40 ? "...\"" : "\"");
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string_view trim(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t");
  if (begin == s.npos) return {};
  return s.substr(begin, s.find_last_not_of(" \t") - begin + 1);
}

using Names = std::vector<std::string>;

[[noreturn]] void refuse_twice(const std::string& path, const std::string& name) {
  throw lhost::Error(LH_INVALID_ARGUMENT, path + ": two columns are named " + quoted(name));
}

size_t find_column(const std::string& path, const Names& columns, const std::string& name) {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end() && std::find(found + 1, columns.end(), name) != columns.end())
    refuse_twice(path, name);
  if (found != columns.end()) return static_cast<size_t>(found - columns.begin());
  size_t best = name.size() / 2 + 1;
  const std::string* close = nullptr;
  std::string list;
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t distance = edit_distance(name, columns[i]);
    if (distance < best) best = distance, close = &columns[i];
    if (i < 20) list += (i ? ", " : "") + columns[i];
  }
  if (columns.size() > 20) list += " and " + std::to_string(columns.size() - 20) + " more";
  throw lhost::Error(LH_INVALID_ARGUMENT, path + ": there is no column " + quoted(name) +
                                              (close ? "; did you mean " + quoted(*close) + "?" : "") + " (" +
                                              list + ")");
}

const char* const kSplitNames[] = {"train", "val", "test", "predict"};

class Csv final : public lhost::Data {
 public:
  static constexpr const char* summary = "numbers from files of separated values";
  explicit Csv(const Options& o) : o_(o), paths_{o.train.text, o.val.text, o.test.text, o.predict.text} {
    if (o.delimiter.size() != 1 || o.delimiter == "\"" || o.delimiter == "\n" || o.delimiter == "\r")
      throw lhost::Error(LH_INVALID_ARGUMENT, "delimiter: found " + quoted(o.delimiter) +
                                                  ", expected one character such as \",\", \";\" or \"\\t\"");
  }

  lhost::SplitInfo describe(int32_t split) override {
    if (paths_[split].empty()) return {};
    Samples s;
    read(split, s);
    lhost::SplitInfo info;
    info.samples = static_cast<int64_t>(s.count);
    info.fields.push_back({"features", {LH_DT_FLOAT, 32, 1}, {static_cast<int64_t>(s.width)}});
    if (!s.classes.empty()) info.fields.push_back({"label", {LH_DT_INT, 64, 1}, {}});
    if (!s.numbers.empty()) info.fields.push_back({"label", {LH_DT_FLOAT, 32, 1}, {}});
    splits_[split] = std::move(s);
    return info;
  }

  void fetch(int32_t split, const int64_t* indices, uint64_t n, int64_t, void* const* dst) const override {
    const Samples& s = splits_[split];
    auto* rows = static_cast<float*>(dst[0]);
    for (uint64_t i = 0; i < n; ++i) {
      const auto at = static_cast<uint64_t>(indices[i]);
      if (at >= s.count)
        throw lhost::Error(LH_OUT_OF_RANGE, "there is no sample " + std::to_string(indices[i]) + ": " +
                                                kSplitNames[split] + " has " + std::to_string(s.count));
      std::memcpy(rows + i * s.width, s.features.data() + at * s.width, s.width * sizeof(float));
      if (!s.classes.empty()) static_cast<int64_t*>(dst[1])[i] = s.classes[at];
      if (!s.numbers.empty()) static_cast<float*>(dst[1])[i] = s.numbers[at];
    }
  }

 private:
  struct Samples {
    uint64_t count = 0, width = 0;
    std::vector<float> features;
    std::vector<int64_t> classes;  // one of the two, or none without a label
    std::vector<float> numbers;
  };

  void read(int32_t split, Samples& s) {
    const std::string& path = paths_[split];
    const std::string text = read_text_file(path);
    CsvReader reader(path, text, o_.delimiter[0]);
    CsvRow row;
    bool more = reader.next(row);
    if (!more) throw lhost::Error(LH_DATA_LOSS, path + ": holds only blank lines, expected a csv file");
    Names columns;
    for (size_t i = 0; i < row.cells.size(); ++i)
      columns.push_back(o_.header ? std::string(trim(row.cells[i])) : std::to_string(i));
    const bool labelled = !o_.label.empty() && split != LH_SPLIT_PREDICT;
    const size_t label = labelled ? find_column(path, columns, o_.label) : columns.size();
    const std::vector<size_t> chosen = choose(path, columns);
    s.width = chosen.size();
    if (o_.header) more = reader.next(row);
    for (; more; more = reader.next(row)) {
      for (const size_t c : chosen) s.features.push_back(number(path, row, c, columns[c]));
      if (labelled && o_.label_type == LabelType::Class)
        s.classes.push_back(class_index(path, row, label, columns[label]));
      if (labelled && o_.label_type == LabelType::Number)
        s.numbers.push_back(number(path, row, label, columns[label]));
      ++s.count;
    }
    if (s.count == 0) throw lhost::Error(LH_DATA_LOSS, path + ": has a header but no rows");
  }

  // The feature columns of a file: those of the first split that was read, wherever they stand in this one.
  std::vector<size_t> choose(const std::string& path, const Names& columns) {
    if (names_.empty()) names_ = o_.features;
    if (names_.empty())
      for (const std::string& c : columns)
        if (c != o_.label) names_.push_back(c);
    if (names_.empty()) throw lhost::Error(LH_INVALID_ARGUMENT, path + ": has no column but the label");
    std::unordered_map<std::string_view, std::pair<size_t, bool>> places;  // and: is it there twice
    for (size_t i = 0; i < columns.size(); ++i)
      if (const auto [old, first] = places.try_emplace(columns[i], i, false); !first)
        old->second.second = true;
    std::vector<size_t> chosen;
    for (const std::string& n : names_) {
      const auto known = places.find(n);
      if (known == places.end()) find_column(path, columns, n);  // says what there is
      if (known->second.second) refuse_twice(path, n);
      chosen.push_back(known->second.first);
    }
    return chosen;
  }

  [[noreturn]] static void refuse(const std::string& path, const CsvRow& row, size_t c,
                                  const std::string& column, const std::string& expected) {
    throw lhost::Error(LH_INVALID_ARGUMENT, path + ":" + std::to_string(row.line) + ": column " +
                                                quoted(column) + ": found " + quoted(row.cells[c]) +
                                                ", expected " + expected);
  }

  static float number(const std::string& path, const CsvRow& row, size_t c, const std::string& column) {
    std::string_view text = trim(row.cells[c]);
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    double x = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    const bool whole = end == text.data() + text.size();
    if (error == std::errc::invalid_argument || !whole)
      refuse(path, row, c, column,
             "a number" + std::string(text.empty() ? "; fill it in or remove the row" : ""));
    if (std::isnan(x) || std::isinf(x))
      refuse(path, row, c, column, "a finite number; fill it in or remove the row");
    if (error == std::errc::result_out_of_range || std::abs(x) > std::numeric_limits<float>::max())
      refuse(path, row, c, column, "a number that fits into 32-bit floating point");
    return static_cast<float>(x);
  }

  static int64_t class_index(const std::string& path, const CsvRow& row, size_t c,
                             const std::string& column) {
    const std::string_view text = trim(row.cells[c]);
    int64_t x = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (error != std::errc() || end != text.data() + text.size() || x < 0)
      refuse(path, row, c, column,
             "a class, that is a whole number from 0; label_type = \"number\" takes any number");
    return x;
  }

  const Options o_;
  const std::string paths_[4];
  Names names_;        // of the features
  Samples splits_[4];  // filled by describe, constant afterwards
};

}  // namespace

LHOST_DATA(Csv, Options, "csv", "0.1.0")
