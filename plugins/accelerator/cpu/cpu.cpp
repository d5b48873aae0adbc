// cpu - the processor: always there, works in order with the host. trainer.devices = 4 makes four ranks that share it.
#include <lhost/sdk/accelerator.hpp>

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <fstream>

namespace {

// "model name	: AMD EPYC 7B13"; processors other than x86 have no such line
std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    return start == line.npos ? "CPU" : line.substr(start);
  }
  return "CPU";
}

struct Cpu : lhost::Accelerator {
  static constexpr const char* summary = "the processor";
  int32_t score() noexcept override { return 1; }  // every real accelerator is worth more
  uint32_t device_count() noexcept override { return 1; }

  lh_device open(uint32_t) override {  // the ranks of a machine share its processor
    name_ = processor_name();
    return {LH_DEVICE_CPU, 0};
  }

  void info(lh_accelerator_info& out) override {
    out.device = {LH_DEVICE_CPU, 0};
    out.name = lhost::str(name_);
    struct sysinfo memory = {};
    if (sysinfo(&memory) == 0) {
      out.memory_total = uint64_t{memory.totalram} * memory.mem_unit;
      out.memory_free = uint64_t{memory.freeram} * memory.mem_unit;
    }
    struct rusage usage = {};
    if (getrusage(RUSAGE_SELF, &usage) == 0) out.memory_peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  }

 private:
  std::string name_;
};

}  // namespace
LHOST_ACCELERATOR(Cpu, lhost::NoOptions, "cpu", "1.0.0")
