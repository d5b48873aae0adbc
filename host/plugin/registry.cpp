#include "plugin/registry.hpp"

#include "base/failure.hpp"
#include "plugin/kinds.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace lhost {
namespace {

void add_objects(const fs::path& folder, std::vector<fs::path>& out) {
  std::error_code ec;
  std::vector<fs::path> found;
  for (fs::directory_iterator i(folder, ec), end; !ec && i != end; i.increment(ec))
    if (i->path().extension() == ".so") found.push_back(i->path());
  std::sort(found.begin(), found.end());
  out.insert(out.end(), found.begin(), found.end());
}

// <folder>/*.so, then <folder>/<kind>/*.so; no deeper.
std::vector<fs::path> objects_in(const fs::path& folder) {
  std::vector<fs::path> list;
  add_objects(folder, list);
  for (std::string_view kind : known_kinds()) add_objects(folder / kind, list);
  return list;
}

Installed describe_file(const std::string& path, const std::string& origin, const std::string& libtorch) {
  Installed entry{path, origin, {}, {}};
  try {
    entry.note = read_note(path);
    entry.refused = refusal(entry.note, libtorch);
  } catch (const Failure& f) {
    entry.refused = f.what();
  }
  return entry;
}

bool offers(const Installed& entry, std::string_view kind, std::string_view name) {
  for (const NotedComponent& c : entry.note.components)
    if (c.kind == kind && c.name == name) return true;
  return false;
}

// A file whose note cannot be read still has the place where this component would be: <kind>/<name>.so.
bool stands_for(const Installed& entry, std::string_view kind, std::string_view name) {
  const fs::path path = entry.path;
  return entry.note.components.empty() && path.stem() == name && path.parent_path().filename() == kind;
}

}  // namespace

Registry::Registry(const SearchPath& search, std::string libtorch) : libtorch_(std::move(libtorch)) {
  std::set<std::pair<dev_t, ino_t>> seen;
  for (size_t f = 0; f < search.folders.size(); ++f) {
    for (const fs::path& object : objects_in(search.folders[f].path)) {
      std::error_code ec;
      const fs::path target = fs::canonical(object, ec);
      struct stat info {};
      if (ec || stat(target.c_str(), &info) != 0) {  // a dangling link
        all_.push_back(
            {object.string(), search.folders[f].origin, {}, "a link to a file that does not exist"});
      } else if (seen.insert({info.st_dev, info.st_ino}).second) {
        all_.push_back(describe_file(target.string(), search.folders[f].origin, libtorch_));
      } else {
        continue;
      }
      folder_.push_back(f);
    }
  }
}

std::vector<std::string> Registry::names(std::string_view kind) const {
  std::set<std::string> found;
  for (const Installed& entry : all_)
    for (const NotedComponent& c : entry.note.components)
      if (entry.refused.empty() && c.kind == kind) found.insert(c.name);
  return {found.begin(), found.end()};
}

const Installed* Registry::find(std::string_view kind, std::string_view name) const {
  const Installed* found = nullptr;
  size_t folder = 0;
  for (auto matches : {offers, stands_for}) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (!matches(all_[i], kind, name)) continue;
      if (found && folder_[i] != folder) break;
      if (found)
        throw Failure(Exit::plugin, "two plugins of one folder offer " + std::string(kind) + " \"" +
                                        std::string(name) + "\": " + found->path + " and " + all_[i].path +
                                        "; remove one, or name the other with plugin = \"path\"");
      found = &all_[i];
      folder = folder_[i];
    }
    if (found) return found;
  }
  return nullptr;
}

Installed Registry::read(const std::string& path) const {
  std::error_code ec;
  const fs::path target = fs::canonical(path, ec);
  if (ec) throw Failure(Exit::usage, path + ": " + ec.message());
  Installed entry = describe_file(target.string(), "path", libtorch_);
  if (!entry.refused.empty()) throw Failure(Exit::plugin, path + ": " + entry.refused);
  return entry;
}

}  // namespace lhost
