// host/assembly/place.cpp - where a run writes, and what it goes on from.
#include "assembly/place.hpp"

#include "base/failure.hpp"
#include "base/files.hpp"
#include "manifest/text.hpp"
#include "train/checkpoint_keeper.hpp"

#include <algorithm>
#include <filesystem>

namespace lhost {
namespace {

std::string absolute_resume(const Plan& plan, std::string from) {
  if (from.empty() || from == "last" || from == "best" || from == "auto") return from;
  const Source source = plan.resume.source("from");
  if (from[0] == '/' || source.text < 0) return from;
  return (std::filesystem::path(plan.manifest.texts[static_cast<size_t>(source.text)].folder) / from)
      .lexically_normal();
}

bool fits(const Settings& s) { return std::find(s.stages.begin(), s.stages.end(), kFit) != s.stages.end(); }

}  // namespace

void check_paths(const Settings& settings) {
  for (const CheckpointPolicy& p : settings.checkpoints) check_filename_pattern(p.filename);
  const std::string folder = std::filesystem::absolute(settings.dir) / settings.name;
  if (!valid_utf8(folder) || !valid_utf8(settings.manifest))
    throw Failure(Exit::usage,
                  "run.dir: a path of this run is not UTF-8, which its files could not repeat: " + folder +
                      "; rename the folder, or set run.dir to another one");
}

// What the run goes on from, if anything; its folder is made later, when there is a run to write into it.
Place find_resume(const Plan& plan, const Settings& settings) {
  std::string resume = absolute_resume(plan, settings.resume);
  if (resume == "auto") resume = has_resume_point(settings.dir, settings.name) ? "last" : "";
  if (resume.empty()) return {};
  const ResumePoint point = find_resume_point(settings.dir, settings.name, resume);
  if (settings.checkpoints.empty())
    throw Failure(Exit::usage,
                  "resume: the manifest has no [[checkpoint]], so nothing can read " + point.file);
  if (!fits(settings) || point.run_folder.empty()) return {"", point.file, false};
  return {point.run_folder, point.file, true};
}

// The folder is this process's until the lock goes.
FolderLock open_place(const Settings& settings, Place& place) {
  if (!place.continues) place.run_folder = new_run_folder(settings.dir, settings.name);
  place.run_folder = std::filesystem::absolute(place.run_folder);
  FolderLock lock(place.run_folder);
  remove_leftovers(place.run_folder);  // of a life that was killed while it wrote
  if (!place.continues) write_atomically(place.run_folder + "/manifest.resolved.toml", settings.manifest);
  return lock;
}

}  // namespace lhost
