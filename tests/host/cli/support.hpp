// tests/host/cli/support.hpp - an installation of lhost for one test: the command, the mock engine, a few plugins, a LibTorch
// that is only a name. Commands run in a folder of their own and see no environment but what is given here.
#pragma once
#include "support/shell.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace cli_test {

namespace fs = std::filesystem;
using lhost_test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Cli : public testing::Test {
 protected:
  Cli() {
    fs::create_directories(work());
    place(LHOST_TEST_BIN "/lhost", "bin/lhost");
    for (const char* plugin :
         {"accelerator/cpu", "callback/progress", "checkpointer/torch", "launcher/single", "logger/csv",
          "optimizer/sgd", "precision/32-true", "strategy/single"})
      place(std::string(LHOST_TEST_PLUGINS "/") + plugin + ".so",
            std::string("lib/lhost/plugins/1/") + plugin + ".so");
    place(LHOST_TEST_MOCK "/lib/mock_engine.so", "lib/lhost/liblhost_engine.so");
    place(LHOST_TEST_SOURCE "/host/manifest/defaults.toml", "share/lhost/defaults.toml");
    torch("2.11.0");
  }

  // lhost with these arguments (of a shell) in the folder work(); `environment`: "NAME=value ...".
  Outcome lhost(const std::string& arguments, const std::string& environment = "") const {
    return lhost_test::shell(command(arguments, environment));
  }
  // The same, on a terminal.
  Outcome on_screen(const std::string& arguments, const std::string& environment = "") const {
    return lhost_test::shell("script -qec '" + command(arguments, environment) + "' /dev/null < /dev/null");
  }
  // What it prints, when it must end well; the places of this test are called PREFIX and WORK.
  std::string screen(const std::string& arguments, const std::string& environment = "") const {
    const Outcome o = lhost(arguments, environment);
    EXPECT_EQ(o.exit_code, 0) << arguments << "\n" << o.output;
    return named(o.output);
  }
  // What it says when it must end with this code.
  std::string refused(int exit_code, const std::string& arguments,
                      const std::string& environment = "") const {
    const Outcome o = lhost(arguments, environment);
    EXPECT_EQ(o.exit_code, exit_code) << arguments << "\n" << o.output;
    return named(o.output);
  }

  // The file at a place of the prefix: the same one, or a copy of it. No symbolic link: lhost would follow it.
  void place(const std::string& original, const std::string& name) const {
    fs::create_directories(fs::path(prefix / name).parent_path());
    std::error_code other_disk;
    fs::create_hard_link(original, prefix / name, other_disk);
    if (other_disk) fs::copy_file(original, prefix / name);
  }
  void torch(const std::string& version) const {
    prefix_file("libtorch/lib/libtorch_cpu.so", "");
    prefix_file("libtorch/build-version", version + "+cpu\n");
  }
  void prefix_file(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(prefix / name).parent_path());
    prefix.write(name, bytes);
  }
  std::string work() const { return prefix / "work"; }
  void file(const std::string& name, const std::string& text) const { prefix_file("work/" + name, text); }
  std::string named(std::string text) const {
    for (const auto& [place, name] : {std::pair{work(), "WORK"}, std::pair{prefix.path(), "PREFIX"}})
      for (size_t at; (at = text.find(place)) != text.npos;) text.replace(at, place.size(), name);
    return text;
  }

  // A small regression on the mock engine: two inputs, one output.
  static std::string manifest() {
    return "[run]\nname = \"t\"\n[trainer]\nmax_epochs = 1\nnum_sanity_val_steps = 0\nthreads = 1\n"
           "[model]\nuse = \"mock_linear\"\ninputs = 2\nclasses = 1\nloss = \"mse\"\n"
           "[data]\nuse = \"mock_data\"\nsamples = 8\nval_samples = 4\ntest_samples = 4\nbatch_size = 2\n"
           "[optimizer]\nuse = \"sgd\"\nlr = 0.1\n";
  }
  static std::string mocks() { return " --plugin-dir " LHOST_TEST_MOCK "/plugins"; }

  lhost_test::TempDir prefix;

 private:
  std::string command(const std::string& arguments, const std::string& environment) const {
    return "cd " + work() + " && env -i PATH=\"$PATH\" HOME=" + prefix.path() +
           " TERM=xterm LHOST_LIBTORCH=" + (prefix / "libtorch") + " " + environment +
           " timeout --foreground 60 " + (prefix / "bin/lhost") + " " + arguments;
  }
};

// The screen is the one of tests/golden/cli.
inline void expect_golden(const std::string& name, const std::string& screen) {
  const std::string path = LHOST_TEST_SOURCE "/tests/golden/cli/" + name + ".txt";
  std::ifstream in(path, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(screen, golden) << "if the new screen is the better one, it belongs into " << path;
}

}  // namespace cli_test
