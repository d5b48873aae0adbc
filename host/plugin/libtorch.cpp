#include "base/failure.hpp"
#include "plugin/loader.hpp"
#include "plugin/shared_object.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

#ifndef LHOST_BUILD_LIBTORCH  // a build without LibTorch
#define LHOST_BUILD_LIBTORCH ""
#endif

namespace lhost {
namespace {

constexpr const char* kMinor = "2.11";
constexpr const char* kVersionHeader = "include/torch/headeronly/version.h";

[[noreturn]] void missing(const std::string& why) { throw Failure(Exit::environment, why); }

std::string content(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The digits behind `#define NAME`, or nothing.
std::string define(const std::string& header, const std::string& name) {
  const std::string words = "#define " + name + " ";
  const size_t at = header.find(words);
  if (at == header.npos) return {};
  const size_t from = at + words.size();
  return header.substr(from, header.find_first_not_of("0123456789", from) - from);
}

std::string version_of(const fs::path& root) {
  const std::string header = content(root / kVersionHeader);
  const std::string major = define(header, "TORCH_VERSION_MAJOR"),
                    minor = define(header, "TORCH_VERSION_MINOR"),
                    patch = define(header, "TORCH_VERSION_PATCH");
  if (!major.empty() && !minor.empty() && !patch.empty()) return major + "." + minor + "." + patch;
  const std::string build = content(root / "build-version");  // "2.11.0+cpu"
  if (const size_t end = build.find_first_not_of("0123456789."); end > 0 && !build.empty())
    return build.substr(0, end);
  missing(root.string() + ": a LibTorch without a version; expected " + kVersionHeader +
          " or build-version in it");
}

// `place` may be a LibTorch folder, `torch` itself or the site-packages that holds it.
std::string root_in(const fs::path& place) {
  for (const fs::path& root : {place, place / "torch"}) {
    std::error_code ec;
    if (fs::exists(root / "lib" / "libtorch_cpu.so", ec)) return fs::canonical(root).string();
  }
  return {};
}

LibTorch accepted(const std::string& root) {
  const std::string version = version_of(root);
  if (version.rfind(std::string(kMinor) + ".", 0) != 0)
    missing(root + " is LibTorch " + version + ", but lhost and its plugins are built for " + kMinor +
            ": LibTorch's C++ interface differs between minor versions. Set LHOST_LIBTORCH to a " + kMinor +
            ", or run scripts/setup");
  return {root, version};
}

}  // namespace

LibTorch find_libtorch() {
  if (const char* given = secure_getenv("LHOST_LIBTORCH"); given && *given) {
    const std::string root = root_in(given);
    if (root.empty())
      missing(std::string("LHOST_LIBTORCH: found no lib/libtorch_cpu.so in ") + given + " or " + given +
              "/torch; expected a LibTorch folder or a site-packages with torch in it");
    return accepted(root);
  }
  std::string looked;
  for (const std::string& place : {installation().libtorch, std::string(LHOST_BUILD_LIBTORCH)}) {
    if (place.empty()) continue;
    if (const std::string root = root_in(place); !root.empty()) return accepted(root);
    looked += "\n  " + place;
  }
  missing("LibTorch " + std::string(kMinor) + " was not found; looked for lib/libtorch_cpu.so in" + looked +
          "\nRun scripts/setup, or set LHOST_LIBTORCH to a LibTorch folder or a site-packages");
}

std::string libtorch_version_or_empty() {
  try {
    return find_libtorch().version;
  } catch (const Failure&) {
    return {};
  }
}

void load_libtorch() {
  static bool loaded = false;
  if (loaded) return;
  const std::string file = find_libtorch().root + "/lib/libtorch_cpu.so";
  try {
    open_shared_object(file);
  } catch (const Failure& f) {
    throw Failure(Exit::environment, f.what());
  }
  loaded = true;
}

}  // namespace lhost
