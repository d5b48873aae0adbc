// tests/e2e/machines.hpp - machines for a test: network namespaces, each with an interface `eth0` on a common switch, which
// is in a namespace of its own. Nothing of it is seen outside, and it goes with the object.
#pragma once
#include "support/shell.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace e2e {

class Machines {
 public:
  enum class Addresses { v4, v6 };

  // "" or why there can be none here. Asks once.
  static const std::string& impossible() {
    static const std::string why = [] {
      const std::string name = "lhost-try-" + std::to_string(getpid());
      const auto o = lhost_test::shell(
          "ip netns add " + name + " && ip -n " + name + " link add name sw0 type bridge && ip -n " + name +
          " link add name e type veth peer name p && ip netns exec " + name + " true");
      lhost_test::shell("ip netns del " + name);
      return o.exit_code == 0 ? std::string()
                              : "no network namespaces here (root and Debian's iproute2): " + o.output;
    }();
    return why;
  }

  explicit Machines(int n, Addresses kind = Addresses::v4) : count_(n), kind_(kind) {
    std::string lines = "ip netns add " + hub() + "\nip -n " + hub() +
                        " link add name sw0 type bridge\nip -n " + hub() + " link set sw0 up\n";
    for (int k = 0; k < n; ++k) {
      const std::string port = "p" + std::to_string(k), here = "ip -n " + name(k) + " ";
      lines += "ip netns add " + name(k) + "\n" + here + "link add name eth0 type veth peer name " + port +
               " netns " + hub() + "\nip -n " + hub() + " link set " + port + " master sw0 up\n" + here +
               "addr add " + address(k) + (kind == Addresses::v4 ? "/24" : "/64 nodad") + " dev eth0\n" +
               here + "link set eth0 up\n" + here + "link set lo up\n";
    }
    const auto o = lhost_test::shell("set -e; " + lines);
    if (o.exit_code == 0) return;
    remove();
    throw std::runtime_error("no machines: " + o.output);
  }
  ~Machines() { remove(); }
  Machines(const Machines&) = delete;

  std::string address(int k) const {
    return (kind_ == Addresses::v4 ? "10.77.0." : "fd77::") + std::to_string(k + 1);
  }
  // What a command starts with to run there. A subshell that execs it becomes it.
  std::string on(int k) const { return "ip netns exec " + name(k) + " "; }
  std::string set(int k, const std::string& link) const { return "ip -n " + name(k) + " link set " + link; }
  // The cable of machine k, pulled out at the switch: nobody is told.
  std::string unplug(int k) const { return "ip -n " + hub() + " link set p" + std::to_string(k) + " down"; }
  // What /etc/hosts says there.
  void hosts(int k, const std::string& lines) const {
    std::filesystem::create_directories(own_files(k));
    std::ofstream(own_files(k) + "/hosts") << "127.0.0.1 localhost\n" << lines;
  }

 private:
  void remove() const {
    for (int k = 0; k < count_; ++k) {
      lhost_test::shell("ip netns del " + name(k));
      std::error_code ignored;
      std::filesystem::remove_all(own_files(k), ignored);
    }
    lhost_test::shell("ip netns del " + hub());
  }
  std::string name(int k) const { return prefix_ + std::to_string(k); }
  std::string hub() const { return prefix_ + "hub"; }
  std::string own_files(int k) const { return "/etc/netns/" + name(k); }

  const std::string prefix_ = "lhost-test-" + std::to_string(getpid()) + "-";
  const int count_;
  const Addresses kind_;
};

}  // namespace e2e
