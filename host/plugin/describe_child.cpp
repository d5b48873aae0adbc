#include "base/failure.hpp"
#include "plugin/describe.hpp"
#include "plugin/description_json.hpp"
#include "plugin/kinds.hpp"
#include "plugin/loader.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace lhost {
namespace {

std::string text(lh_str s) { return {s.ptr, s.len}; }

PluginDescription description(const LoadedPlugin& p) {
  PluginDescription d{p.path, p.note.name, p.note.version, p.note.license, p.note.torch, {}};
  for (const lh_component& c : p.components) {
    auto [kind, revision] = split_kind(text(c.kind));
    std::vector<std::string> defaults;
    for (uint32_t i = 0; i < c.n_defaults; ++i) defaults.push_back(text(c.defaults[i]));
    d.components.push_back({std::move(kind), std::move(revision), text(c.name), text(c.version),
                            text(c.summary), c.flags, schema_of(c.options, c.n_options, c.option_stride),
                            std::move(defaults)});
  }
  return d;
}

nlohmann::json answer(const std::string& path) {
  try {
    return {{"plugin", to_json(description(load_plugin_table(path)))}};
  } catch (const Failure& f) {
    return {{"broken", f.what()}, {"code", static_cast<int>(f.code)}};
  }
}

void write_line(int fd, const std::string& line) {
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(fd, line.data() + done, line.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    else if (errno != EINTR) _exit(1);
  }
}

// A crash ends the process by its signal, whatever handlers a sanitizer or the host has installed, and leaves
// no core.
void prepare_to_crash() {
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) signal(s, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace

int describe_child_main(const std::vector<std::string>& paths) {
  prepare_to_crash();
  const int answers = dup(1);
  if (answers < 0 || dup2(2, 1) < 0) return 1;  // what plugins print is not an answer
  for (const std::string& path : paths) write_line(answers, one_line(answer(path)) + "\n");
  _exit(0);  // without the plugins' destructors: their faults are not news here
}

}  // namespace lhost
