// plugins/logger/common/append_file.hpp - what file loggers share: a file that only grows, through a
// buffer, with a known position. Errors are lhost::Error with the path and the system's reason. One thread
// at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

class AppendFile {
 public:
  AppendFile() = default;
  AppendFile(AppendFile&& other) noexcept { *this = std::move(other); }
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  // Makes the file and its folder; one that is there already is an error: another logger writes it.
  void create(const std::string& path);
  // Opens the file that a run left, cut back to `keep` bytes; makes one if it is gone.
  void reopen(const std::string& path, int64_t keep);

  // After an error what was not written stays in the buffer, for the next try.
  void append(std::string_view bytes);
  void flush();
  void rename_to(const std::string& path);  // atomically over what is there
  void close();                             // flushes first; closed in any case

  int64_t position() const { return written_ + static_cast<int64_t>(buffer_.size()); }
  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* doing) const;
  void release() noexcept;
  int fd_ = -1;
  int64_t written_ = 0;
  std::string path_, buffer_;
};

// The place of a logger's `file` or `dir` option below the run's folder; refuses what would lead out of it.
std::string checked_name(const std::string& option, const std::string& value);

// What a resumed run left in a file; empty if there is none.
std::string read_back(const std::string& path);

// The shortest text that reads back as the same number; nan, inf, -inf.
void append_number(std::string& to, double value);
void append_number(std::string& to, int64_t value);
void append_seconds(std::string& to, int64_t unix_time_ns);  // with microseconds
