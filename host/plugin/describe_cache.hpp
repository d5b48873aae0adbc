// host/plugin/describe_cache.hpp - what the child said of files that have not changed since.
// $XDG_CACHE_HOME/lhost/plugins-1.json (else ~/.cache/...). A cache that cannot be read is empty, one that
// cannot be written is not kept; neither is an error. Used by describe.cpp. [main]
#pragma once
#include "plugin/describe.hpp"

#include <array>

namespace lhost {

// Two files with the same key are the same bytes: ctime moves with every change of content, and the inode
// with every replacement.
struct FileKey {
  std::string path;                // canonical
  std::array<int64_t, 5> stamp{};  // device, inode, size, mtime, ctime (ns)
};
FileKey file_key(const std::string& path);  // throws Failure(Exit::usage) if there is no such file

class DescribeCache {
 public:
  struct Entry {
    FileKey key;
    Described described;
  };
  DescribeCache();
  const Described* find(const FileKey&) const;
  void put(const FileKey&, const Described&);
  void save() const;  // does nothing if nothing was put

 private:
  std::vector<Entry> entries_;
  bool changed_ = false;
};

}  // namespace lhost
