// host/train/run_folder.hpp - <dir>/<name>/version_N: made once, without a race between two runs that start together.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace lhost {

std::string new_run_folder(const std::string& dir, const std::string& name);  // makes it; returns its path

// The right to write into a run folder, held by one process until its end, however that comes. Failure(Exit::environment)
// if another one has it; a file system without locks gives it to everybody.
class FolderLock {
 public:
  explicit FolderLock(const std::string& run_folder);
  ~FolderLock();
  FolderLock(FolderLock&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  FolderLock& operator=(FolderLock&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }

 private:
  int fd_;
};

// Where `--resume last | best | PATH` points: a checkpoint file and, if it lies in a run folder of this run's name, that
// folder (the run goes on in it). "last" and "best" look into the newest version that has checkpoints.
struct ResumePoint {
  std::string file;
  std::string run_folder;  // empty: a new one is made
};
// Failure(Exit::usage) when there is none, with what was looked for.
ResumePoint find_resume_point(const std::string& dir, const std::string& name, const std::string& wanted);
std::string last_checkpoint(const std::string& run_folder);              // empty: it has none
bool has_resume_point(const std::string& dir, const std::string& name);  // for "auto"

}  // namespace lhost
