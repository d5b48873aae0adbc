// host/train/engine.hpp - an engine library, loaded: the private table and the public services that the loop uses.
#pragma once
#include "engine/engine.h"

#include <string>

namespace lhost {

struct Engine {
  lh_engine_v0 table{};
  lh_tensor_v0 tensor{};
  lh_tensor_ops_v0 ops{};
  lh_params_v0 params{};
  const lh_engine_v0* operator->() const { return &table; }
};

// Opens the library (never unloaded) and offers its services. Failure(Exit::environment) if it cannot be loaded or was
// built with another host.
Engine load_engine(const std::string& path);

}  // namespace lhost
