#include "base/failure.hpp"
#include "plugin/loader.hpp"
#include "plugin/registry.hpp"

#include <lhost/abi.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace lhost {
namespace {

// Not read in a set-uid process: whoever starts it must not choose the code that it runs.
std::string environment(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}

void add_option(SearchPath& path, const std::string& folder) {
  std::error_code ec;
  if (!fs::is_directory(folder, ec))
    throw Failure(Exit::usage, "--plugin-dir: found \"" + folder + "\", expected a folder that exists");
  if (access(folder.c_str(), R_OK | X_OK) != 0)
    throw Failure(Exit::environment, "--plugin-dir: " + folder + " cannot be read; check its permissions");
  path.folders.push_back({fs::canonical(folder).string(), "--plugin-dir"});
}

void add_environment(SearchPath& path, const std::string& list) {
  for (size_t from = 0; from <= list.size();) {
    const size_t end = std::min(list.find(':', from), list.size());
    const std::string folder = list.substr(from, end - from);
    from = end + 1;
    if (folder.empty()) continue;
    if (folder[0] != '/')
      throw Failure(Exit::usage,
                    "LHOST_PLUGIN_PATH: found the relative folder \"" + folder +
                        "\", expected absolute ones: plugins never come from the current directory");
    path.folders.push_back({folder, "LHOST_PLUGIN_PATH"});
  }
}

std::string user_folder() {
  std::string data = environment("XDG_DATA_HOME");
  if (data.empty() || data[0] != '/') {
    const std::string home = environment("HOME");
    if (home.empty() || home[0] != '/') return {};
    data = home + "/.local/share";
  }
  return data + "/lhost/plugins/" + std::to_string(LH_ABI_MAJOR);
}

}  // namespace

SearchPath search_path(const std::vector<std::string>& plugin_dirs) {
  SearchPath path;
  for (const std::string& folder : plugin_dirs) add_option(path, folder);
  add_environment(path, environment("LHOST_PLUGIN_PATH"));
  if (const std::string user = user_folder(); !user.empty()) path.folders.push_back({user, "user"});
  if (!installation().plugins.empty()) path.folders.push_back({installation().plugins, "installation"});
  return path;
}

}  // namespace lhost
