#include "train/run_folder.hpp"

#include "base/failure.hpp"
#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace lhost {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "version_";

// version_N folders, newest first
std::vector<std::pair<int64_t, fs::path>> versions(const fs::path& base) {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code ec;
  for (const auto& e : fs::directory_iterator(base, ec)) {
    const std::string name = e.path().filename();
    if (name.rfind(kPrefix, 0) != 0) continue;
    const std::string number = name.substr(std::strlen(kPrefix));
    if (number.empty() || number.size() > 12 || number.find_first_not_of("0123456789") != number.npos)
      continue;
    found.emplace_back(std::stoll(number), e.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

// Written by every checkpoint into its run folder: which file is the newest, which the best.
std::string recorded(const fs::path& run_folder, const char* which) {
  try {
    const auto index = nlohmann::json::parse(read_file(run_folder / "checkpoints.json"));
    const std::string file = index.value(which, "");
    if (!file.empty() && fs::exists(run_folder / file)) return run_folder / file;
  } catch (const std::exception&) {
    return {};  // no index, or a damaged one: this version has nothing to resume from
  }
  return {};
}

ResumePoint find_recorded(const fs::path& base, const char* which) {
  for (const auto& [n, folder] : versions(base))
    if (const std::string file = recorded(folder, which); !file.empty()) return {file, folder};
  return {};
}

}  // namespace

std::string new_run_folder(const std::string& dir, const std::string& name) {
  const fs::path base = fs::path(dir) / name;
  make_folders(base);
  const auto taken = versions(base);
  for (int64_t n = taken.empty() ? 0 : taken.front().first + 1;; ++n) {
    std::string path = base / (kPrefix + std::to_string(n));
    if (mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST)
      throw Failure(Exit::environment, "cannot make the run's folder " + path + ": " + std::strerror(errno) +
                                           "; check the permissions, or set [run] dir");
  }
}

FolderLock::FolderLock(const std::string& run_folder)
    : fd_(open(run_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0 || flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(fd_);
  throw Failure(Exit::environment, "another lhost is writing into " + run_folder +
                                       "; wait for its end, or start without --resume");
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

std::string last_checkpoint(const std::string& run_folder) { return recorded(run_folder, "last"); }

bool has_resume_point(const std::string& dir, const std::string& name) {
  return !find_recorded(fs::path(dir) / name, "last").file.empty();
}

ResumePoint find_resume_point(const std::string& dir, const std::string& name, const std::string& wanted) {
  const fs::path base = fs::path(dir) / name;
  if (wanted == "last" || wanted == "best") {
    ResumePoint p = find_recorded(base, wanted.c_str());
    if (p.file.empty())
      throw Failure(Exit::usage, "--resume " + wanted + ": no checkpoint in " + base.string() +
                                     "/version_*; start without --resume, use --resume auto, or name a file");
    return p;
  }
  std::error_code ec;
  if (!fs::is_regular_file(wanted, ec))
    throw Failure(Exit::usage, "--resume " + wanted +
                                   ": no such file; expected last, best, auto or the path of a checkpoint");
  ResumePoint p{fs::canonical(wanted), ""};
  for (const auto& [n, folder] : versions(base)) {
    const std::string inside = fs::canonical(folder, ec).string() + "/";
    if (p.file.rfind(inside, 0) == 0) p.run_folder = folder;
  }
  return p;
}

}  // namespace lhost
