// patient.cpp - a logger that takes no record before a file holds a text. For tests.
#include <lhost/sdk/logger.hpp>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

namespace {

struct Options {
  lhost::Path file;
  std::string text;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::file, "file", "file to look into").required();
    d(&Options::text, "text", "what it must hold").required();
  }
};

struct Patient : lhost::Logger {
  explicit Patient(const Options& o) : o_(o) {}
  void open(const lh_run_info&) override {}
  void record(const lh_record&) override {
    for (int i = 0; i < 5000; ++i) {
      std::ifstream in(o_.file.text);
      const std::string now{std::istreambuf_iterator<char>(in), {}};
      if (now.find(o_.text) != now.npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw lhost::Error(LH_DEADLINE, "the patient logger waited in vain");
  }
  Options o_;
};

}  // namespace
LHOST_LOGGER(Patient, Options, "patient", "1.0.0")
