#include "plugin/describe_cache.hpp"

#include "base/files.hpp"
#include "plugin/description_json.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace lhost {
namespace {

using nlohmann::json;

std::string cache_file() {
  const char* xdg = secure_getenv("XDG_CACHE_HOME");
  const char* home = secure_getenv("HOME");
  if (xdg && *xdg == '/') return std::string(xdg) + "/lhost/plugins-1.json";
  if (home && *home == '/') return std::string(home) + "/.cache/lhost/plugins-1.json";
  return {};
}

int64_t nanoseconds(const timespec& t) { return t.tv_sec * int64_t{1000000000} + t.tv_nsec; }

json to_json(const DescribeCache::Entry& e) {
  json j = {{"path", e.key.path}, {"stamp", e.key.stamp}, {"broken", e.described.broken}};
  if (e.described.broken.empty()) j["plugin"] = to_json(e.described.plugin);
  return j;
}
DescribeCache::Entry entry_from_json(const json& j) {
  DescribeCache::Entry e;
  j.at("path").get_to(e.key.path);
  j.at("stamp").get_to(e.key.stamp);
  j.at("broken").get_to(e.described.broken);
  if (e.described.broken.empty()) e.described.plugin = description_from_json(j.at("plugin"));
  else e.described.code = Exit::plugin;
  return e;
}

}  // namespace

FileKey file_key(const std::string& path) {
  std::error_code ec;
  const fs::path target = fs::canonical(path, ec);
  struct stat s {};
  if (ec || stat(target.c_str(), &s) != 0) throw Failure(Exit::usage, path + ": no such file");
  return {target.string(),
          {static_cast<int64_t>(s.st_dev), static_cast<int64_t>(s.st_ino), s.st_size, nanoseconds(s.st_mtim),
           nanoseconds(s.st_ctim)}};
}

DescribeCache::DescribeCache() {
  try {
    const std::string file = cache_file();
    if (file.empty() || !fs::is_regular_file(file)) return;
    const json all = json::parse(read_file(file));
    if (all.at("host") != LHOST_VERSION) return;
    for (const json& j : all.at("plugins")) entries_.push_back(entry_from_json(j));
  } catch (const std::exception&) {
    entries_.clear();
  }
}

const Described* DescribeCache::find(const FileKey& key) const {
  for (const Entry& e : entries_)
    if (e.key.path == key.path && e.key.stamp == key.stamp) return &e.described;
  return nullptr;
}

void DescribeCache::put(const FileKey& key, const Described& described) {
  const auto stale = [&](const Entry& e) { return e.key.path == key.path || !fs::exists(e.key.path); };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), stale), entries_.end());
  entries_.push_back({key, described});
  changed_ = true;
}

void DescribeCache::save() const try {
  const std::string file = cache_file();
  if (!changed_ || file.empty()) return;
  json plugins = json::array();
  for (const Entry& e : entries_) plugins.push_back(to_json(e));
  make_folders(fs::path(file).parent_path().string());
  write_atomically(file, one_line({{"host", LHOST_VERSION}, {"plugins", std::move(plugins)}}) + "\n");
} catch (const std::exception&) {  // no cache, then
}

}  // namespace lhost
