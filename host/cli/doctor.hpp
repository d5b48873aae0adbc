// host/cli/doctor.hpp - what lhost doctor says, section by section. What is read from the machine comes in as values or
// paths, so that each section can be tested; where /proc or /sys say nothing, a line is shorter or left out.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lhost::doctor {

struct Line {
  std::string what, text;  // an empty `what`: more of the line above
  bool problem = false;    // counted; else a fact or an advice
};
using Lines = std::vector<Line>;

// ---- doctor_machine.cpp: what a rank can use

struct Cores {
  int allowed = 1, online = 1;  // by affinity
  double limit = 0;             // of the control group; 0: none
  int numa_nodes = 0;           // 0: the system does not say
};
struct Limit {  // of a process; kUnlimited: none
  uint64_t soft = 0, hard = 0;
};
constexpr uint64_t kUnlimited = ~uint64_t{0};

int numa_nodes(const std::string& folder = "/sys/devices/system/node");
int64_t available_memory(const std::string& meminfo = "/proc/meminfo");  // bytes; -1: the system does not say
Cores this_machines_cores();

Lines cores(const Cores&);
Lines memory(double total, double available, double limit);  // limit of the control group, 0: none
Lines shared_memory(double free_bytes);
Lines limits(const Limit& files, const Limit& processes, int usable_cores);
Lines machine();  // all of these, and the disk

// ---- doctor_network.cpp: how ranks meet

struct Interface {
  std::string name;
  std::vector<std::string> addresses;
  bool up = false, loopback = false;
};
bool is_loopback(const std::string& address);
std::vector<Interface> interfaces();

// `towards`: where ranks on other machines are looked for; `address`: of this machine on the way there, empty: none.
Lines network(const std::vector<Interface>&, const std::string& towards, const std::string& address);
// addresses: what the name stands for on this machine; none: it is not known.
Lines host_name(const std::string& name, const std::vector<std::string>& addresses,
                const std::string& usable);
Lines meeting_port(const std::string& master_port);                             // tries to bind on 127.0.0.1
Lines meeting(const std::string& master_addr, const std::string& master_port);  // all of these

// ---- doctor_environment.cpp: variables that lhost, its launchers and collectives read

using Variables = std::map<std::string, std::string>;
Variables environment();  // of this process
Lines environment(const Variables&, const std::vector<Interface>&);

}  // namespace lhost::doctor
