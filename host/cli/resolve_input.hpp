// host/cli/resolve_input.hpp - what a command line says, as the input of resolve().
#pragma once
#include "assembly/resolve.hpp"
#include "cli/commands.hpp"

namespace lhost {

ResolveInput resolve_input(const RunCommand&);

}  // namespace lhost
