#include "plugin/loader.hpp"

#include <filesystem>
#include <optional>

namespace fs = std::filesystem;

namespace lhost {
namespace {

std::optional<Installation>& current() {
  static std::optional<Installation> i;
  return i;
}

// <prefix>/bin/lhost; the build tree has the same layout.
Installation of_this_process() {
  std::error_code ec;
  const fs::path host = fs::read_symlink("/proc/self/exe", ec);
  const fs::path prefix = host.parent_path().parent_path();
  const fs::path lib = prefix / "lib" / "lhost";
  return {(lib / "plugins" / std::to_string(LH_ABI_MAJOR)).string(), (lib / "liblhost_engine.so").string(),
          (prefix / "share" / "lhost" / "defaults.toml").string(), host.string(),
          (lib / "libtorch").string()};
}

}  // namespace

const Installation& installation() {
  if (!current()) current() = of_this_process();
  return *current();
}

void set_installation(Installation i) { current() = std::move(i); }

}  // namespace lhost
