#include "support/component.hpp"

#include <gmock/gmock.h>
#include <lhost/accelerator.h>

#include <fstream>

using namespace lhost_test;

namespace {

using Cpu = Component<lh_accelerator, lh_accelerator_v0>;

TEST(CpuAccelerator, IsOneDeviceAndTheLastChoice) {
  const Cpu cpu("accelerator", "cpu");
  EXPECT_EQ(cpu->score(cpu.self), 1);
  EXPECT_EQ(cpu->device_count(cpu.self), 1u);
}
TEST(CpuAccelerator, WorksInOrderWithTheHost) {
  const Cpu cpu("accelerator", "cpu");
  EXPECT_EQ(cpu->stream_new, nullptr);
  EXPECT_EQ(cpu->synchronize, nullptr);
}
TEST(CpuAccelerator, KnowsItsNameAndMemory) {
  const Cpu cpu("accelerator", "cpu");
  lh_device device = {7, 7};
  call(cpu->open(cpu.self, 0, &device));
  EXPECT_EQ(device.type, LH_DEVICE_CPU);
  EXPECT_EQ(device.index, 0);
  lh_accelerator_info info{};
  info.size = sizeof info;
  call(cpu->info(cpu.self, &info));
  std::ifstream in("/proc/cpuinfo");
  const std::string cpuinfo((std::istreambuf_iterator<char>(in)), {});
  if (cpuinfo.find("model name") == cpuinfo.npos) EXPECT_EQ(text(info.name), "CPU");
  else EXPECT_THAT(cpuinfo, testing::HasSubstr(": " + text(info.name) + "\n"));
  EXPECT_GT(info.memory_free, 0u);
  EXPECT_GT(info.memory_total, info.memory_free);
  EXPECT_GT(info.memory_peak, 1024u * 1024u) << "this process has used more than a megabyte";
  EXPECT_LT(info.memory_peak, info.memory_total);
}
TEST(CpuAccelerator, IsSharedByTheRanksOfAMachine) {
  const Cpu cpu("accelerator", "cpu");
  lh_device device{9, 9};
  call(cpu->open(cpu.self, 1, &device));
  EXPECT_EQ(device.type, LH_DEVICE_CPU);
  EXPECT_EQ(device.index, 0);
}

}  // namespace
