// host/plugin/shared_object.hpp - opens a shared object for good; the one place that opens any. [main]
#pragma once
#include <string>

namespace lhost {

// `path` is absolute and canonical, so that nothing is searched for. All symbols are resolved now, none is
// given to later objects, and the object stays until the process ends: unloading C++ or LibTorch is a no-op
// or a crash. Throws Failure(Exit::plugin) with the dynamic loader's own words. The same path again gives the
// same handle.
class SharedObject;
const SharedObject& open_shared_object(const std::string& path);
void* find_symbol(const SharedObject&, const char* name);  // NULL if it has none

}  // namespace lhost
