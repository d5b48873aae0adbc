#include "plugin/ask_child.hpp"

#include "plugin/child_process.hpp"
#include "plugin/description_json.hpp"

#include <sys/wait.h>

#include <cstring>

namespace lhost {
namespace {

Answer parse(const std::string& file, const std::string& line) try {
  const auto j = nlohmann::json::parse(line);
  Answer a;
  if (j.contains("plugin")) {
    a.described.plugin = description_from_json(j.at("plugin"));
    a.lasting = true;
  } else {
    j.at("broken").get_to(a.described.broken);
    a.described.code = static_cast<Exit>(j.at("code").get<int>());
  }
  return a;
} catch (const nlohmann::json::exception& e) {
  return {{{}, file + ": its description cannot be read: " + e.what(), Exit::plugin}, false};
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t start = text.rfind('\n');
  return start == text.npos ? text : text.substr(start + 1);
}

// libstdc++ and libc++ both print these words when nothing catches an exception.
bool threw(const ChildResult& r) {
  return WIFSIGNALED(r.wait_status) && WTERMSIG(r.wait_status) == SIGABRT &&
         (r.errors.find("terminate called") != r.errors.npos ||
          r.errors.find("terminating") != r.errors.npos);
}

std::string verdict(const ChildResult& r, std::chrono::milliseconds limit) {
  if (r.timed_out) {
    const auto ms = limit.count();
    return "did not answer within " +
           (ms % 1000 ? std::to_string(ms) + " ms" : std::to_string(ms / 1000) + " s") +
           " while being described";
  }
  const std::string words = last_line(r.errors);
  const std::string tail = words.empty() ? "" : ": " + words;
  if (threw(r)) return "threw in its initialiser" + tail;
  if (WIFSIGNALED(r.wait_status))
    return std::string("the plugin crashed while being described (SIG") +
           sigabbrev_np(WTERMSIG(r.wait_status)) + ")" + tail;
  return "ended the process with code " + std::to_string(WEXITSTATUS(r.wait_status)) +
         " while being described" + tail;
}

}  // namespace

std::vector<Answer> ask_child(const std::string& host, const std::vector<std::string>& files,
                              std::chrono::milliseconds limit) {
  std::vector<Answer> answers;
  while (answers.size() < files.size()) {
    std::vector<std::string> arguments = {host, "__describe"};
    arguments.insert(arguments.end(), files.begin() + static_cast<std::ptrdiff_t>(answers.size()),
                     files.end());
    const size_t wanted = files.size() - answers.size();
    const ChildResult r = run_child(arguments, wanted, limit);
    for (size_t i = 0; i < r.lines.size() && i < wanted; ++i)
      answers.push_back(parse(files[answers.size()], r.lines[i]));
    // A file is only blamed when it was alone with the child; the next child starts with it.
    if (r.lines.empty())
      answers.push_back({{{}, files[answers.size()] + ": " + verdict(r, limit), Exit::plugin}, true});
  }
  return answers;
}

}  // namespace lhost
