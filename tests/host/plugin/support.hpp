// tests/host/plugin/support.hpp - fixtures, failures and an own environment for the tests of host/plugin.
#pragma once
#include "base/failure.hpp"
#include "plugin/loader.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lhost_test {

inline std::string fixture(const std::string& name) { return LHOST_TEST_FIXTURES "/" + name + ".so"; }
inline std::string fake_libtorch() { return LHOST_TEST_FIXTURES "/libtorch"; }
inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The Failure that a call must throw.
template <class F>
lhost::Failure failure(F call) {
  try {
    call();
  } catch (const lhost::Failure& f) {
    return f;
  }
  return {lhost::Exit::done, "(nothing was thrown)"};
}
template <class F>
std::string reason(F call) {
  return failure(call).what();
}

// Sets an environment variable as long as it lives; NULL removes it.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      had_ = true;
      old_ = old;
    }
    set(value);
  }
  ~Environment() { set(had_ ? old_.c_str() : nullptr); }
  Environment(const Environment&) = delete;

 private:
  void set(const char* value) {
    if (value) setenv(name_, value, 1);
    else unsetenv(name_);
  }
  const char* name_;
  bool had_ = false;
  std::string old_;
};

// Another installation as long as it lives.
class InstallationGuard {
 public:
  explicit InstallationGuard(lhost::Installation i) : old_(lhost::installation()) {
    lhost::set_installation(std::move(i));
  }
  ~InstallationGuard() { lhost::set_installation(old_); }
  InstallationGuard(const InstallationGuard&) = delete;

 private:
  lhost::Installation old_;
};

}  // namespace lhost_test
