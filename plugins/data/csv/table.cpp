#include "table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <lhost/sdk/plugin.hpp>
#include <memory>

std::string read_text_file(const std::string& path) {
  const auto fail = [&](int e, const char* doing) {
    const lh_code code = e == ENOENT || e == ENOTDIR ? LH_NOT_FOUND
                         : e == EACCES               ? LH_PERMISSION
                                                     : LH_UNAVAILABLE;
    throw lhost::Error(code, path + ": " + doing + ": " + std::strerror(e));
  };
  const int fd =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO without a writer must not hang
  if (fd < 0) fail(errno, "cannot be opened");
  const auto close_fd = [](const int* f) { ::close(*f); };
  const std::unique_ptr<const int, decltype(close_fd)> owner(&fd, close_fd);
  struct stat st {};
  if (::fstat(fd, &st) != 0) fail(errno, "cannot be read");
  if (S_ISDIR(st.st_mode))
    throw lhost::Error(LH_INVALID_ARGUMENT, path + ": is a folder, expected a csv file");
  if (!S_ISREG(st.st_mode)) throw lhost::Error(LH_INVALID_ARGUMENT, path + ": is not a regular file");
  std::string text(static_cast<size_t>(st.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno, "cannot be read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  if (text.empty()) throw lhost::Error(LH_DATA_LOSS, path + ": is empty, expected a csv file");
  if (text.rfind("\xff\xfe", 0) == 0 || text.rfind("\xfe\xff", 0) == 0)
    throw lhost::Error(LH_INVALID_ARGUMENT, path + ": is UTF-16 text; save it as UTF-8");
  return text;
}

CsvReader::CsvReader(std::string path, std::string_view text, char delimiter)
    : path_(std::move(path)), text_(text), delimiter_(delimiter) {
  if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;  // a byte order mark, as spreadsheets write it
}

void CsvReader::fail(int64_t line, const std::string& what) const {
  throw lhost::Error(LH_INVALID_ARGUMENT, path_ + ":" + std::to_string(line) + ": " + what);
}

bool CsvReader::end_of_cell() const {
  return at_ == text_.size() || text_[at_] == delimiter_ || text_[at_] == '\n' ||
         (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
}

void CsvReader::quoted(std::string& out) {
  const int64_t begin = line_;
  for (++at_; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c == '"') {
      if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
      ++at_;
    }
    out += c;
  }
  if (at_ == text_.size()) fail(begin, "a quote is opened here and never closed");
  ++at_;
  if (!end_of_cell()) fail(line_, "text follows a closing quote; write a quote inside quotes as two");
}

void CsvReader::cell(std::string& out) {
  out.clear();
  if (at_ < text_.size() && text_[at_] == '"') return quoted(out);
  const size_t begin = at_;
  while (!end_of_cell()) ++at_;
  out.assign(text_, begin, at_ - begin);
}

bool CsvReader::next(CsvRow& row) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n';
  if (at_ == text_.size()) return false;
  row.line = line_;
  size_t n = 0;
  for (;;) {
    if (n == row.cells.size()) row.cells.emplace_back();
    cell(row.cells[n++]);
    if (at_ == text_.size() || text_[at_] != delimiter_) break;
    ++at_;
  }
  row.cells.resize(n);
  if (width_ == 0) width_ = n;
  if (n != width_)
    fail(row.line, "found " + std::to_string(n) + (n == 1 ? " cell" : " cells") + ", expected " +
                       std::to_string(width_) + " as in the first row");
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size() && text_[at_] == '\n') ++at_, ++line_;
  return true;
}
