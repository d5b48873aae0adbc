// plugins/logger/tensorboard/event_file.hpp - a run's event files in one folder: names that sort by age,
// records in TFRecord framing (length, its masked crc32c, data, its masked crc32c). One thread at a time.
#pragma once
#include <string>
#include <string_view>

#include "../common/append_file.hpp"

class EventFiles {
 public:
  void use(const std::string& folder) { folder_ = folder; }

  bool any() const;
  // Cuts `name` back to `position` and removes the files that came after it. False: `name` is gone,
  // nothing was done.
  bool cut_back(const std::string& name, int64_t position) const;
  // Begins a new file, which sorts after those that are there: TensorBoard reads them in this order.
  void begin(int64_t unix_time_s);

  void write(std::string_view message);
  void flush() { file_.flush(); }
  void close() { file_.close(); }
  std::string name() const { return file_.path().substr(file_.path().rfind('/') + 1); }
  int64_t position() const { return file_.position(); }

 private:
  std::string folder_;
  AppendFile file_;
};
