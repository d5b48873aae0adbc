// Several machines, as network namespaces: a run over all of them has the bits of the same ranks on one, and what goes wrong
// between machines is said in time, and by name.
#include "e2e/machines.hpp"
#include "e2e/whole_runs.hpp"

namespace {

using e2e::Machines;
using lhost_test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using Clock = std::chrono::steady_clock;

struct SeveralMachines : e2e::WholeRuns {
  void SetUp() override {
    if (!Machines::impossible().empty()) GTEST_SKIP() << Machines::impossible();
  }
  // The processes of one kernel could read each other's memory; machines cannot.
  static std::string start(const Machines& m, int node, const std::string& more = "",
                           const std::string& master = "") {
    return m.on(node) + "env NODE_RANK=" + std::to_string(node) +
           " MASTER_ADDR=" + (master.empty() ? m.address(0) : master) +
           " MASTER_PORT=4711 $L run.dir=runs collective.cross_memory=false " + more;
  }
  // Line by line: each node in the background, its output in a file, its number P[node].
  static std::string in_background(const Machines& m, int node, const std::string& more = "",
                                   const std::string& master = "") {
    const std::string n = std::to_string(node);
    return "(exec " + start(m, node, more, master) + ") >" + n + ".txt 2>&1 & P[" + n + "]=$!\n";
  }
  static std::string ends(int nodes) {
    std::string lines;
    for (int k = 0; k < nodes; ++k)
      lines += "ends ${P[" + std::to_string(k) + "]} " + std::to_string(k) + "; cat " + std::to_string(k) +
               ".txt\n";
    return lines;
  }
  static std::string shape(int nodes, int devices) {
    return "trainer.num_nodes=" + std::to_string(nodes) + " trainer.devices=" + std::to_string(devices) + " ";
  }
  // A run of all nodes, and every one of them ends with this code.
  Outcome all(const Machines& m, int nodes, int code, const std::string& more,
              const std::string& master = "") {
    std::string lines;
    for (int k = 0; k < nodes; ++k) lines += in_background(m, k, more, master);
    const Outcome o = script(lines + ends(nodes));
    for (int k = 0; k < nodes; ++k)
      EXPECT_THAT(o.output,
                  HasSubstr("process " + std::to_string(k) + " ended with " + std::to_string(code)));
    expect_nothing_left();
    return o;
  }
};

struct EveryShape : SeveralMachines, testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(EveryShape, TrainsToTheBitsOfOneMachine) {
  const auto [nodes, devices] = GetParam();
  run_by_exec(nodes * devices);
  const Machines m(nodes);
  all(m, nodes, 0, shape(nodes, devices));
  expect_same_weights("runs", "exec");
  for (int k = 1; k < nodes; ++k)
    EXPECT_THAT(dir.read(std::to_string(k) + ".txt"), testing::Not(HasSubstr("epoch")));
}
INSTANTIATE_TEST_SUITE_P(By, EveryShape, testing::Values(std::pair(2, 1), std::pair(2, 2), std::pair(3, 1)),
                         [](const auto& x) {
                           return std::to_string(x.param.first) + "Times" + std::to_string(x.param.second);
                         });

// Nobody is told that a cable is out: the time limit of a call finds it, and each side names the other.
TEST_F(SeveralMachines, ACableThatIsPulledOutEndsBothSidesInTime) {
  const Machines m(2);
  const Outcome o =
      script(in_background(m, 0, shape(2, 1) + "trainer.max_epochs=100000") +
             in_background(m, 1, shape(2, 1) + "trainer.max_epochs=100000") + "training runs\n" +
             m.unplug(1) + "; S=$(date +%s)\n" + ends(2) + "echo after $(($(date +%s) - S)) s");
  for (int k = 0; k < 2; ++k)
    EXPECT_THAT(dir.read(std::to_string(k) + ".txt"),
                AllOf(HasSubstr("error: "),
                      HasSubstr("no answer from rank(s) [" + std::to_string(1 - k) + "] within 3 s")));
  const size_t after = o.output.find("after ");
  ASSERT_NE(after, o.output.npos) << o.output;
  EXPECT_LT(std::stoi(o.output.substr(after + 6)), 15);
  expect_nothing_left();
}

TEST_F(SeveralMachines, F203_nwMissing_AMachineThatWasNeverStartedIsNamed) {
  const Machines m(3);
  const std::string all = shape(3, 1) + "collective.connect_timeout=11s";
  const auto start = Clock::now();
  const Outcome o = script(in_background(m, 0, all) + in_background(m, 1, all) + ends(2));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(25));
  EXPECT_THAT(o.output, AllOf(HasSubstr("process 0 ended with 1"), HasSubstr("process 1 ended with")));
  EXPECT_THAT(dir.read("0.txt"), AllOf(HasSubstr("waiting for ranks [2] at 10.77.0.1:4711, 10 s of 11 s"),
                                       HasSubstr("waited in vain for ranks [2] at 10.77.0.1:4711")));
  expect_nothing_left();
}

TEST_F(SeveralMachines, F203_nwMissing_AWrongMasterAddressIsNamed) {
  const Machines m(2);
  const Outcome o = script("exec " + start(m, 1, shape(2, 1) + "collective.connect_timeout=2s", "10.77.0.9"));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.output, HasSubstr("cannot connect to 10.77.0.9:4711 for 2 s"));
}

// Debian gives a machine's own name the address 127.0.1.1.
TEST_F(SeveralMachines, F198_nwLoop_AMasterThatKnowsItsOwnNameAsLoopbackIsReached) {
  const Machines m(2);
  m.hosts(0, "127.0.1.1 node0\n");
  m.hosts(1, "10.77.0.1 node0\n127.0.1.1 node1\n");
  all(m, 2, 0, shape(2, 1), "node0");
}

TEST_F(SeveralMachines, F199_nwIface_AnInterfaceIsTakenByItsNameOrRefusedWithThoseThatAre) {
  const Machines m(2);
  all(m, 2, 0, shape(2, 1) + "collective.interface=eth0");
  const Outcome o = all(m, 2, 1, shape(2, 1) + "collective.interface=ib0");
  EXPECT_THAT(o.output, AllOf(HasSubstr("no network interface \"ib0\""), HasSubstr("eth0 (10.77.0.1"),
                              HasSubstr("eth0 (10.77.0.2"), HasSubstr("lo (127.0.0.1")));
}

TEST_F(SeveralMachines, F201_nwV6_MachinesWithIPv6AloneTrain) {
  const Machines m(2, Machines::Addresses::v6);
  all(m, 2, 0, shape(2, 1));
}

TEST_F(SeveralMachines, F201_nwV6_MachinesWithoutIPv6Train) {
  const Machines m(2);
  for (int k = 0; k < 2; ++k)
    lhost_test::output_of(m.on(k) + "sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6'");
  all(m, 2, 0, shape(2, 1));
}

// Where addresses are routed, a machine has its own on the loopback device.
TEST_F(SeveralMachines, F202_nwLo_AMasterAddressOnTheLoopbackDeviceIsHonoured) {
  const Machines m(2);
  lhost_test::output_of(m.on(0) + "ip addr add 10.88.0.1/32 dev lo");
  lhost_test::output_of(m.on(1) + "ip route add 10.88.0.1/32 via 10.77.0.1");
  all(m, 2, 0, shape(2, 1), "10.88.0.1");
}

TEST_F(SeveralMachines, F015_ckWorld_ANodeWithoutTheCheckpointsGoesOnWhereRank0Does) {
  const Machines m(2);
  all(m, 2, 0, shape(2, 1) + "trainer.max_epochs=1");
  const std::string elsewhere = "--resume auto trainer.max_epochs=2 run.dir=";
  const Outcome o = script(in_background(m, 0, shape(2, 1) + elsewhere + "runs") +
                           in_background(m, 1, shape(2, 1) + elsewhere + "disk1") + ends(2));
  EXPECT_THAT(o.output, AllOf(HasSubstr("process 0 ended with 0"), HasSubstr("process 1 ended with 0"),
                              HasSubstr("epoch 2/2"), testing::Not(HasSubstr("epoch 1/2"))));
  expect_nothing_left();
}

TEST_F(SeveralMachines, NodesThatDisagreeAboutTheRunAreTold) {
  const Machines m(2);
  // of another size
  Outcome o = script(in_background(m, 0, shape(2, 1) + "collective.connect_timeout=3s") +
                     in_background(m, 1, shape(2, 2) + "collective.connect_timeout=3s") + ends(2));
  EXPECT_THAT(o.output, AllOf(HasSubstr("with 2 ranks, this process at restart 0 with 4")));
  // another manifest
  o = script(in_background(m, 0, shape(2, 1)) + in_background(m, 1, shape(2, 1) + "optimizer.lr=0.5") +
             ends(2));
  EXPECT_THAT(o.output, AllOf(HasSubstr("[optimizer] lr = 0.5"), testing::Not(HasSubstr("ended with 0"))));
  // one node twice
  o = script("(exec " + start(m, 1, shape(2, 1) + "collective.connect_timeout=3s") +
             ") >2.txt 2>&1 & P[2]=$!\n" +
             in_background(m, 1, shape(2, 1) + "collective.connect_timeout=3s") +
             in_background(m, 0, shape(2, 1) + "collective.connect_timeout=3s") + ends(3));
  EXPECT_THAT(o.output, HasSubstr("two processes have rank 1"));
  expect_nothing_left();
}

}  // namespace
