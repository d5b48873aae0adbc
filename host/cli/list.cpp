// host/cli/list.cpp - lhost list: what is installed, from the notes of the files alone. Runs no plugin code.
#include "base/failure.hpp"
#include "base/terminal.hpp"
#include "cli/commands.hpp"
#include "manifest/host_keys.hpp"
#include "plugin/loader.hpp"
#include "plugin/registry.hpp"

#include <algorithm>
#include <set>

namespace lhost {
namespace {

void print_row(const std::string& kind, const std::string& name, const std::string& version,
               const std::string& origin, const std::string& path) {
  const auto pad = [](const std::string& s, size_t n) {
    return s + std::string(s.size() < n ? n - s.size() : 1, ' ');
  };
  Terminal::get().print(pad(kind, 14) + pad(name, 18) + pad(version, 9) + pad(origin, 14) + path);
}

}  // namespace

int list_command(const std::vector<std::string>& plugin_dirs, const std::string& kind) {
  std::vector<std::string> kinds;
  for (const KindTable& k : kind_tables()) kinds.emplace_back(k.kind);
  std::sort(kinds.begin(), kinds.end());
  if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    const std::string close = closest(kind, kinds);
    std::string all;
    for (const std::string& k : kinds) all += (all.empty() ? "" : ", ") + k;
    throw Failure(Exit::usage, "no kind \"" + kind + "\"" +
                                   (close.empty() ? "" : "; did you mean \"" + close + "\"?") + " (" + all +
                                   ")");
  }
  const Registry registry(search_path(plugin_dirs), libtorch_version_or_empty());
  const bool colour = Terminal::get().colour();
  if (registry.all().empty()) {
    Terminal::get().print("no plugin is installed in:");
    for (const auto& f : search_path(plugin_dirs).folders)
      Terminal::get().print("  " + f.path + "  (" + f.origin + ")");
    return 0;
  }
  std::set<std::string> seen;
  for (const std::string& k : kinds) {
    if (!kind.empty() && k != kind) continue;
    std::vector<std::pair<std::string, const Installed*>> rows;
    for (const Installed& i : registry.all())
      for (const NotedComponent& c : i.note.components)
        if (c.kind == k && i.refused.empty()) rows.emplace_back(c.name, &i);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [name, i] : rows) {
      const bool shadowed = !seen.insert(k + "/" + name).second;
      print_row(k, name, i->note.version, i->origin,
                i->path + (shadowed ? dim("  (hidden by the one above)", colour) : ""));
    }
  }
  for (const Installed& i : registry.all())
    if (!i.refused.empty() && kind.empty())
      Terminal::get().print(red("refused", colour) + "       " + i.path + ": " + i.refused);
  return 0;
}

}  // namespace lhost
