// plugins/data/csv/table.hpp - a file of separated values (RFC 4180) as rows of text: quotes, CRLF, a byte
// order mark, blank lines skipped. A row of another length than the first is an error with its line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct CsvRow {
  int64_t line;  // where it begins, from 1
  std::vector<std::string> cells;
};

// Walks over a text that must outlive it.
class CsvReader {
 public:
  CsvReader(std::string path, std::string_view text, char delimiter);
  // False at the end. The cells of `row` are reused.
  bool next(CsvRow& row);

 private:
  [[noreturn]] void fail(int64_t line, const std::string& what) const;
  void cell(std::string& out);
  void quoted(std::string& out);
  bool end_of_cell() const;

  const std::string path_;
  const std::string_view text_;
  const char delimiter_;
  size_t at_ = 0, width_ = 0;
  int64_t line_ = 1;
};

std::string read_text_file(const std::string& path);
