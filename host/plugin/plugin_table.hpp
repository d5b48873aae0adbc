// host/plugin/plugin_table.hpp - the handshake: asks a loaded object for its table, copies it and holds it
// against its note. What differs from the note, is cut short or out of proportion is refused before anything
// else is called.
#pragma once
#include "plugin/loader.hpp"

namespace lhost {

using PluginEntry = const lh_plugin* (*)();
// Fills table, components and originals of `plugin`, whose note is set. Throws Failure(Exit::plugin), reason
// alone.
void read_plugin_table(PluginEntry, LoadedPlugin& plugin);

}  // namespace lhost
