// host/engine/status.hpp - how the engine fails: exceptions inside, lh_status at every table function.
// refuse() throws with a code; guard() turns whatever was thrown into a status blamed on "engine"; the status of a
// plugin that was called from inside backward travels as Failed and comes out unchanged.
#pragma once
#include <lhost/abi.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lhost::engine {

inline std::string_view view(lh_str s) { return {s.ptr, s.len}; }
inline lh_str text(std::string_view s) { return {s.data(), s.size()}; }

struct Refusal : std::runtime_error {
  lh_code code;
  Refusal(lh_code c, const std::string& message) : std::runtime_error(message), code(c) {}
};
[[noreturn]] inline void refuse(lh_code code, const std::string& message) { throw Refusal(code, message); }

// Carries a status through LibTorch's autograd, which cleans up after std::exception only.
struct Failed : std::exception {
  lh_status status;
  explicit Failed(lh_status s) : status(s) {}
};
inline void must(lh_status s) {
  if (s) throw Failed(s);
}

// The services have no context argument, so the host that makes errors is known per process. Set by run_new.
void set_host(const lh_host*);
lh_status make_status(lh_code, std::string_view component, std::string_view where, std::string_view message);
lh_status status_of_exception(const char* where);  // inside a catch block

template <class F>
lh_status guard(const char* where, F&& f) {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_exception(where);
  }
}

}  // namespace lhost::engine
