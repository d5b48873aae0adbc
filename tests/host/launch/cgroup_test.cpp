#include "launch/cgroup.hpp"

#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

namespace lhost {
namespace {

using lhost_test::TempDir;

struct Files : TempDir {
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    write(name, text);
  }
  Cgroup cgroup(const std::string& self) const {
    put("self", self);
    return Cgroup(path(), *this / "self");
  }
};

TEST(Cgroup, ReadsVersion2) {
  const Files f;
  f.put("job/step/cpu.max", "150000 100000\n");
  f.put("job/step/memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n");
  const Cgroup c = f.cgroup("0::/job/step\n");
  EXPECT_EQ(c.cpu_limit(), 1.5);
  EXPECT_EQ(c.oom_kills(), 3);
}
TEST(Cgroup, AGroupAboveMayAllowLess) {
  const Files f;
  f.put("job/cpu.max", "200000 100000\n");
  f.put("job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(f.cgroup("0::/job/step\n").cpu_limit(), 2);
  f.put("job/step/cpu.max", "400000 100000\n");
  EXPECT_EQ(f.cgroup("0::/job/step\n").cpu_limit(), 2);
}
TEST(Cgroup, ReadsVersion1) {
  const Files f;
  f.put("cpu/job/cpu.cfs_quota_us", "250000\n");
  f.put("cpu/job/cpu.cfs_period_us", "100000\n");
  f.put("memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  const Cgroup c = f.cgroup("9:memory:/job\n3:cpu,cpuacct:/job\n0::/\n");
  EXPECT_EQ(c.cpu_limit(), 2.5);
  EXPECT_EQ(c.oom_kills(), 5);
  f.put("cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(c.cpu_limit(), 0);
}
TEST(Cgroup, InAContainerTheGroupIsTheRoot) {
  const Files f;
  f.put("memory.events", "oom_kill 1\n");
  f.put("cpu.max", "100000 100000\n");
  const Cgroup c = f.cgroup("0::/docker/0123456789abcdef\n");
  EXPECT_EQ(c.oom_kills(), 1);
  EXPECT_EQ(c.cpu_limit(), 1);
}
TEST(Cgroup, WithoutControlGroupsThereIsNoLimit) {
  const Files f;
  for (const char* self : {"", "nonsense", "0::/\n", "::::\n"}) {
    EXPECT_EQ(f.cgroup(self).cpu_limit(), 0);
    EXPECT_EQ(f.cgroup(self).oom_kills(), 0);
  }
  EXPECT_EQ(Cgroup("/no/such", "/no/such").cpu_limit(), 0);
}
TEST(Cgroup, TellsTheMemoryThatItAllows) {
  const Files f;
  EXPECT_EQ(f.cgroup("0::/job/step\n").memory_limit(), 0);
  f.put("job/step/memory.max", "max\n");
  EXPECT_EQ(f.cgroup("0::/job/step\n").memory_limit(), 0);
  f.put("job/memory.max", "2147483648\n");
  EXPECT_EQ(f.cgroup("0::/job/step\n").memory_limit(), 2147483648);
  f.put("memory/job/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(f.cgroup("4:memory:/job\n0::/\n").memory_limit(), 1048576);
  f.put("memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(f.cgroup("4:memory:/job\n").memory_limit(), 0);
  EXPECT_EQ(Cgroup("/no/such", "/no/such").memory_limit(), 0);
}
TEST(AllowedCores, AreAtLeastOne) { EXPECT_GE(allowed_cores(), 1); }

}  // namespace
}  // namespace lhost
