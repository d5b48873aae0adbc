// host/plugin/engine_entry.cpp - an engine library: the same loading rules as for plugins, another symbol, no
// table.
#include "base/failure.hpp"
#include "plugin/loader.hpp"
#include "plugin/shared_object.hpp"

#include <filesystem>

namespace lhost {

void* load_engine_entry(const std::string& path, const char* symbol) {
  std::error_code ec;
  const std::string file = std::filesystem::canonical(path, ec);
  if (ec)
    throw Failure(Exit::environment, "the engine " + path + " is missing; build with LibTorch, or reinstall");
  try {
    const Note note = read_note(file);
    if (!note.torch.empty()) {
      const std::string here = find_libtorch().version;
      if (note.torch.substr(0, note.torch.rfind('.')) != here.substr(0, here.rfind('.')))
        throw Failure(Exit::environment, file + " was built for LibTorch " + note.torch + ", but LibTorch " +
                                             here + " was found");
      load_libtorch();
    }
    if (void* entry = find_symbol(open_shared_object(file), symbol)) return entry;
    throw Failure(Exit::environment, file + " is not an engine: it has no " + symbol);
  } catch (const Failure& f) {
    throw Failure(Exit::environment, f.what());
  }
}

}  // namespace lhost
