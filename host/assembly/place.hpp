// host/assembly/place.hpp - where a run writes, and what it goes on from. Decided once for all ranks: by the only one, by
// their supervisor, or by rank 0.
#pragma once
#include "assembly/execute.hpp"
#include "train/run_folder.hpp"

namespace lhost {

void check_paths(const Settings&);
// The checkpoint that the manifest or the command line names. The folder comes later, when there is a run to write into it.
Place find_resume(const Plan&, const Settings&);
// Makes the run folder unless the run goes on in an old one; it is this process's until the lock goes.
FolderLock open_place(const Settings&, Place&);

}  // namespace lhost
