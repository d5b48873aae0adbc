#include "plugin/shared_object.hpp"

#include "base/failure.hpp"

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>

#include <dlfcn.h>

#include <map>

namespace lhost {

class SharedObject {
 public:
  explicit SharedObject(const std::string& path) {
    std::error_code ec;  // always "bad file descriptor"; dlerror knows the reason
    library_.load(path, ec, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    if (!ec) return;
    const char* words = dlerror();
    std::string why = words ? words : ec.message();
    if (why.find("static TLS") != why.npos)
      why += " (GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 makes room)";
    throw Failure(Exit::plugin, "the dynamic loader refused it: " + why);
  }
  void* symbol(const char* name) const { return library_.has(name) ? &library_.get<char>(name) : nullptr; }

 private:
  boost::dll::shared_library library_;
};

const SharedObject& open_shared_object(const std::string& path) {
  static auto& open = *new std::map<std::string, SharedObject>;  // never destroyed
  const auto known = open.find(path);
  return known != open.end() ? known->second : open.try_emplace(path, path).first->second;
}

void* find_symbol(const SharedObject& object, const char* name) { return object.symbol(name); }

}  // namespace lhost
