// What lhost doctor says about machines that are not this one. help_test.cpp runs the command.
#include "cli/doctor.hpp"

#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

namespace lhost::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string text(const Lines& lines) {
  std::string out;
  for (const Line& l : lines) out += l.what + "|" + (l.problem ? "PROBLEM " : "") + l.text + "\n";
  return out;
}

// ---- the machine

TEST(DoctorCores, TellsWhatLimitsThemAndHowManyRanksPay) {
  EXPECT_EQ(text(cores({16, 16, 0, 1})),
            "cores|16 usable of 16, 1 NUMA node\n"
            "|up to 16 ranks (trainer.devices) have a core each; threads of a rank: trainer.threads\n");
  EXPECT_THAT(text(cores({8, 64, 2.5, 2})),
              AllOf(HasSubstr("3 usable of 64, affinity allows 8, the control group 2.5, 2 NUMA nodes\n"),
                    HasSubstr("up to 3 ranks"), HasSubstr("lhost binds none")));
  EXPECT_EQ(text(cores({1, 1, 0.3, 0})),
            "cores|1 usable of 1, the control group 0.3\n|one rank: a second would share its core\n");
}
TEST(DoctorCores, CountsNumaNodesByTheirFolders) {
  const lhost_test::TempDir f;
  for (const char* name : {"node0", "node1", "node12", "node", "nodes", "possible"})
    std::filesystem::create_directories(f / name);
  EXPECT_EQ(numa_nodes(f.path()), 3);
  EXPECT_EQ(numa_nodes("/no/such/folder"), 0);
}
TEST(DoctorMemory, IsWhatTheSystemCallsAvailable) {
  const lhost_test::TempDir f;
  f.write("meminfo", "MemTotal:       32000 kB\nMemFree:        100 kB\nMemAvailable:   2048 kB\n");
  EXPECT_EQ(available_memory(f / "meminfo"), 2048 * 1024);
  f.write("meminfo", "nonsense");
  EXPECT_EQ(available_memory(f / "meminfo"), -1);
  EXPECT_EQ(available_memory("/no/such/file"), -1);
}
TEST(DoctorMemory, TellsTheControlGroupsLimitIfItIsTheTighterOne) {
  constexpr double gib = 1 << 30;
  EXPECT_THAT(text(memory(8 * gib, 2 * gib, 4 * gib)),
              AllOf(HasSubstr("memory|8.0 GiB, 2.0 GiB available; the control group allows 4.0 GiB;")));
  EXPECT_THAT(text(memory(8 * gib, -1, 16 * gib)),
              AllOf(HasSubstr("memory|8.0 GiB;"), Not(HasSubstr("group"))));
}
TEST(DoctorSharedMemory, IsLittleInAContainer) {
  EXPECT_EQ(text(shared_memory(24.0 * (1 << 30))), "shared memory|24 GiB free in /dev/shm\n");
  EXPECT_THAT(text(shared_memory(1 << 20)), HasSubstr("--shm-size"));
  EXPECT_THAT(text(shared_memory(-1)), HasSubstr("there is no /dev/shm"));
}
TEST(DoctorLimits, GiveAnAdviceWhereTheyAreSmall) {
  EXPECT_EQ(text(limits({1024, 1024}, {kUnlimited, kUnlimited}, 64)),
            "limits|open files 1 024, processes and threads unlimited\n");
  EXPECT_THAT(text(limits({256, 4096}, {100, 100}, 16)),
              AllOf(HasSubstr("open files 256 (ulimit can raise it to 4 096)"),
                    HasSubstr("more than 64 ranks"), HasSubstr("ulimit -u")));
}
TEST(DoctorMachine, IsNeverSilent) {
  EXPECT_THAT(text(machine()), AllOf(HasSubstr("cores|"), HasSubstr("disk|")));
}

// ---- the network

const std::vector<Interface> kTwo = {{"eth0", {"10.0.0.5", "fd00::5"}, true, false},
                                     {"eth1", {}, false, false},
                                     {"lo", {"127.0.0.1", "::1"}, true, true}};

TEST(DoctorNetwork, ShowsInterfacesAndTheOneThatARunWouldUse) {
  EXPECT_EQ(text(network(kTwo, "", "10.0.0.5")),
            "network|eth0, up: 10.0.0.5, fd00::5\n|eth1, down\n|lo, loopback, up: 127.0.0.1, ::1\n"
            "|ranks on several machines use eth0 (10.0.0.5) by the default route; collective.interface "
            "chooses another\n");
}
TEST(DoctorNetwork, AMasterAddressThatLeadsToItselfIsOfNoUseToOthers) {
  EXPECT_THAT(
      text(network(kTwo, "node1", "127.0.1.1")),
      HasSubstr("would use 127.0.1.1 towards MASTER_ADDR=node1, which no other machine can reach: set "
                "collective.interface"));
  EXPECT_THAT(text(network(kTwo, "", "")), HasSubstr("nothing leads to other machines by the default route"));
  EXPECT_THAT(text(network({}, "", "")), HasSubstr("names no interfaces"));
}
TEST(DoctorNetwork, ALoopbackThatIsDownIsAProblem) {
  EXPECT_THAT(text(network({{"lo", {}, false, true}}, "", "")), HasSubstr("network|PROBLEM lo is down"));
}
TEST(DoctorNetwork, KnowsLoopbackAddresses) {
  for (const char* a : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(a)) << a;
  for (const char* a : {"10.0.0.1", "1.127.0.0", "fd00::1", ""}) EXPECT_FALSE(is_loopback(a)) << a;
}
TEST(DoctorHostName, GivesAnAdviceIfItIsALoopbackAddress) {
  EXPECT_EQ(text(host_name("a", {"10.0.0.5"}, "10.0.0.5")), "host name|a is 10.0.0.5\n");
  EXPECT_THAT(text(host_name("a", {"127.0.1.1"}, "10.0.0.5")),
              AllOf(HasSubstr("host name|a is 127.0.1.1\n"), HasSubstr("set MASTER_ADDR to 10.0.0.5"),
                    HasSubstr("collective.interface"), Not(HasSubstr("PROBLEM"))));
  EXPECT_THAT(text(host_name("a", {}, "")),
              HasSubstr("a stands for no address here: for several machines set MASTER_ADDR"));
  EXPECT_EQ(text(host_name("", {}, "")), "");
}

TEST(DoctorPort, IsTriedAsARunWouldTakeIt) {
  EXPECT_EQ(text(meeting_port("")), "port|ranks of this machine can meet on 127.0.0.1\n");
  EXPECT_EQ(text(meeting_port("70000")),
            "port|PROBLEM MASTER_PORT=70000 is no port: set 1 to 65535, or unset it\n");
  EXPECT_THAT(text(meeting_port("http")), HasSubstr("PROBLEM MASTER_PORT=http is no port"));
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  socklen_t size = sizeof a;
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&a);
  ASSERT_EQ(bind(s, address, size), 0);
  ASSERT_EQ(listen(s, 1), 0);
  ASSERT_EQ(getsockname(s, address, &size), 0);
  const std::string port = std::to_string(ntohs(a.sin_port));
  EXPECT_THAT(text(meeting_port(port)),
              AllOf(HasSubstr("port " + port), HasSubstr("in use"), HasSubstr("right only if it is rank 0")));
  close(s);
  EXPECT_EQ(text(meeting_port(port)), "port|MASTER_PORT=" + port + " is free\n");
}
TEST(DoctorMeeting, GoesThroughOnAnyMachine) {
  for (const char* master : {"", "127.0.0.1", "no-such-name.invalid"})
    EXPECT_NE(meeting(master, "").size(), 0u);
}

// ---- the environment

TEST(DoctorEnvironment, IsQuietWithoutVariables) {
  EXPECT_EQ(text(environment({{"PATH", "/bin"}, {"RANK", ""}}, kTwo)),
            "environment|no variable is set that a run or a launcher would read\n");
}
TEST(DoctorEnvironment, SaysWhenARunWouldWaitForOthers) {
  const std::string t = text(environment(
      {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}}, kTwo));
  EXPECT_THAT(t, AllOf(HasSubstr("environment|RANK=1  "), HasSubstr("|WORLD_SIZE=4  "),
                       HasSubstr("makes this process rank 1 of 4 and waits for all of them"),
                       HasSubstr("unset them")));
}
TEST(DoctorEnvironment, SaysWhenVariablesAreLeftOver) {
  EXPECT_THAT(text(environment({{"WORLD_SIZE", "4"}}, kTwo)),
              AllOf(HasSubstr("goes by RANK and WORLD_SIZE only where"),
                    HasSubstr("there is no RANK, MASTER_ADDR, MASTER_PORT: unset"), Not(HasSubstr("waits"))));
}
TEST(DoctorEnvironment, KnowsTheProgramsThatMakeRanks) {
  EXPECT_THAT(text(environment({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, kTwo)),
              HasSubstr("OMPI_COMM_WORLD_RANK is set, as by mpirun"));
  EXPECT_THAT(text(environment({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "2"}}, kTwo)),
              AllOf(HasSubstr("an allocation, but no step"), Not(HasSubstr("waits"))));
  EXPECT_THAT(text(environment({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, kTwo)),
              AllOf(HasSubstr("as by srun"), HasSubstr("rank 1 of 2")));
}
TEST(DoctorEnvironment, AnInterfaceThatIsNotThereIsAProblem) {
  EXPECT_THAT(text(environment({{"GLOO_SOCKET_IFNAME", "eth0,eth7"}}, kTwo)), Not(HasSubstr("PROBLEM")));
  EXPECT_THAT(text(environment({{"GLOO_SOCKET_IFNAME", "eth1"}}, kTwo)),
              HasSubstr("PROBLEM GLOO_SOCKET_IFNAME names eth1, which is no interface that is up: eth0, lo"));
}
TEST(DoctorEnvironment, ShowsNoSecretsAndNoWalls) {
  Variables v = {
      {"LHOST_SET", "logger.token=hush"}, {"LHOST_TYPO", "x"}, {"MASTER_ADDR", std::string(500, 'a')}};
  for (int i = 0; i < 40; ++i) v["SLURM_X" + std::to_string(i)] = "1";
  const std::string t = text(environment(v, kTwo));
  EXPECT_THAT(t, AllOf(HasSubstr("LHOST_SET is set"), Not(HasSubstr("hush")),
                       HasSubstr("also LHOST_TYPO, SLURM_X0"), HasSubstr("and 35 more")));
  EXPECT_LT(t.size(), 900u);
}

}  // namespace
}  // namespace lhost::doctor
