#include "event_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "crc32c.hpp"

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) == 0) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string host_name() {
  char text[256] = {};
  if (::gethostname(text, sizeof text - 1) != 0 || !*text) return "localhost";
  return text;
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

bool EventFiles::any() const { return !event_files(folder_).empty(); }

bool EventFiles::cut_back(const std::string& name, int64_t position) const {
  const std::vector<std::string> names = event_files(folder_);
  if (std::find(names.begin(), names.end(), name) == names.end()) return false;
  AppendFile file;
  file.reopen(folder_ + "/" + name, position);
  file.close();
  for (const std::string& later : names)
    if (later > name) std::filesystem::remove(folder_ + "/" + later);
  return true;
}

void EventFiles::begin(int64_t unix_time_s) {
  for (const std::string& name : event_files(folder_))
    unix_time_s = std::max<int64_t>(unix_time_s, std::atoll(name.c_str() + kPrefix.size()) + 1);
  file_.create(folder_ + "/" + std::string(kPrefix) + std::to_string(unix_time_s) + "." + host_name() + "." +
               std::to_string(::getpid()) + ".0");
}

void EventFiles::write(std::string_view message) {
  char head[12];
  const uint64_t length = message.size();  // little-endian, like every machine that the ABI knows
  std::memcpy(head, &length, 8);
  const uint32_t length_crc = masked_crc({head, 8}), crc = masked_crc(message);
  std::memcpy(head + 8, &length_crc, 4);
  char tail[4];
  std::memcpy(tail, &crc, 4);
  file_.append({head, sizeof head});
  file_.append(message);
  file_.append({tail, sizeof tail});
}
