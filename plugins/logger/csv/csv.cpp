// plugins/logger/csv/csv.cpp - logger "csv": one row a record, one column a metric (RFC 4180, LF at the end):
//   global_step,epoch,samples,unix_time,<metrics in the order of their first appearance>
// unix_time is in seconds with microseconds. A metric that first appears later widens the table: the file
// is written anew beside the old one and renamed over it, and earlier rows have empty cells. That alone
// rewrites anything.
#include <lhost/sdk/logger.hpp>
#include <limits>
#include <map>
#include <optional>

#include "../common/append_file.hpp"

namespace {

constexpr std::string_view kFixed = "global_step,epoch,samples,unix_time";

struct Options {
  std::string file = "metrics.csv";
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::file, "file", "name of the file in the run's folder");
  }
};

std::string quoted(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == name.npos) return name;
  std::string s = "\"";
  for (const char c : name) s.append(c == '"' ? 2 : 1, c);
  return s + '"';
}

// The cells of the header; `end` is where the rows begin, npos if the header is not complete.
std::vector<std::string> parse_header(std::string_view text, size_t& end) {
  std::vector<std::string> cells(1);
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && inside && i + 1 < text.size() && text[i + 1] == '"') cells.back() += text[++i];
    else if (c == '"') inside = !inside;
    else if (c == ',' && !inside) cells.emplace_back();
    else if (c == '\n' && !inside) return end = i + 1, cells;
    else cells.back() += c;
  }
  end = text.npos;
  return cells;
}

class CsvLogger final : public lhost::Logger {
 public:
  static constexpr const char* summary = "metrics.csv: a row a record, a column a metric";
  explicit CsvLogger(const Options& o) : name_(checked_name("file", o.file)) {}

  // Rows, not bytes: a header that became wider since moves every byte.
  void save_state(const lhost::StateOut& s) override {
    flush();
    s.put("rows", rows_);
  }
  void load_state(const lhost::StateIn& s) override { s.get("rows", keep_rows_); }

  void open(const lh_run_info& run) override {
    const std::string path = std::string(lhost::view(run.dir)) + "/" + name_;
    if (run.flags & LH_RUN_RESUMED) resume(path);
    else file_.create(path);
  }

  void record(const lh_record& r) override {
    place(r);
    line_.clear();
    for (const int64_t counter : {r.global_step, r.epoch, r.samples}) {
      append_number(line_, counter);
      line_ += ',';
    }
    append_seconds(line_, r.unix_time_ns);
    for (std::optional<double>& cell : cells_) {
      line_ += ',';
      if (cell) append_number(line_, *cell);
      cell.reset();
    }
    line_ += '\n';
    ++rows_;
    file_.append(line_);
  }

  void flush() override { file_.flush(); }
  void close(lh_code, std::string_view) override { file_.close(); }

 private:
  using Columns = std::map<std::string, size_t, std::less<>>;

  // Puts the record's values into cells_, after making room for those that are new.
  void place(const lh_record& r) {
    Columns columns;
    std::string added;
    for (uint64_t i = 0; i < r.n_scalars; ++i) {
      const std::string_view name = lhost::view(r.scalars[i].name);
      if (columns_.count(name) || !columns.emplace(name, columns_.size() + columns.size()).second) continue;
      added += "," + quoted(std::string(name));
    }
    if (!columns.empty() || header_.empty()) widen(columns, added);
    for (uint64_t i = 0; i < r.n_scalars; ++i)
      cells_[columns_.find(lhost::view(r.scalars[i].name))->second] = r.scalars[i].value;
  }

  void widen(Columns& columns, const std::string& added) {
    const std::string header = (header_.empty() ? std::string(kFixed) : header_) + added;
    if (rows_ == 0 && header_.empty()) {
      file_.append(header + '\n');
    } else {
      rewrite(header, std::string(columns.size(), ','));
    }
    header_ = header;
    columns_.merge(columns);
    cells_.resize(columns_.size());
  }

  void rewrite(const std::string& header, const std::string& empty_cells) {
    file_.flush();
    const std::string path = file_.path(), temporary = path + ".tmp";
    const std::string text = read_back(path);
    AppendFile wide;
    wide.reopen(temporary, 0);
    try {
      wide.append(header + '\n');
      for (size_t at = header_.size() + 1, end = 0; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        if (end == text.npos) break;
        wide.append(std::string_view(text).substr(at, end - at));
        wide.append(empty_cells + '\n');
      }
      wide.flush();
      wide.rename_to(path);
    } catch (...) {
      std::remove(temporary.c_str());
      throw;
    }
    file_ = std::move(wide);
  }

  void resume(const std::string& path) {
    const std::string text = read_back(path);
    size_t at = 0;
    const std::vector<std::string> header = parse_header(text, at);
    if (at == text.npos) {  // nothing, or the first write did not even finish the header
      file_.reopen(path, 0);
      return;
    }
    if (text.compare(0, kFixed.size(), kFixed) != 0)
      throw lhost::Error(LH_INVALID_ARGUMENT, path + ": begins with \"" + text.substr(0, text.find('\n')) +
                                                  "\", expected \"" + std::string(kFixed) +
                                                  "\"; it is not of this logger, move it away");
    header_ = text.substr(0, at - 1);
    for (size_t i = 4; i < header.size(); ++i) columns_.emplace(header[i], i - 4);
    cells_.resize(columns_.size());
    for (size_t end = 0; rows_ < keep_rows_ && (end = text.find('\n', at)) != text.npos; at = end + 1)
      ++rows_;
    file_.reopen(path, static_cast<int64_t>(at));
  }

  const std::string name_;
  int64_t keep_rows_ = std::numeric_limits<int64_t>::max();  // all complete ones
  AppendFile file_;
  std::string header_, line_;
  Columns columns_;
  std::vector<std::optional<double>> cells_;
  int64_t rows_ = 0;
};

}  // namespace

LHOST_LOGGER(CsvLogger, Options, "csv", "0.1.0")
