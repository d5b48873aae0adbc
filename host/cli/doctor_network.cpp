#include "base/failure.hpp"
#include "base/text.hpp"
#include "cli/doctor.hpp"
#include "launch/rendezvous_socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

namespace lhost::doctor {
namespace {

constexpr const char* kFar =
    "203.0.113.1";  // belongs to nobody (RFC 5737): reached by the default route, if there is one

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Addresses resolve(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(host.c_str(), "1", &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

std::string number_text(const sockaddr* a, socklen_t size) {
  char text[NI_MAXHOST];
  return getnameinfo(a, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

std::vector<std::string> addresses_of(const std::string& host) {
  std::vector<std::string> out;
  const Addresses found = resolve(host);
  for (const addrinfo* a = found.get(); a; a = a->ai_next)
    if (const std::string text = number_text(a->ai_addr, a->ai_addrlen);
        std::count(out.begin(), out.end(), text) == 0)
      out.push_back(text);
  return out;
}

// A datagram socket that is connected has chosen its way; nothing is sent.
std::string address_towards(const std::string& host) {
  const Addresses found = resolve(host);
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    const int s = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) continue;
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    auto* to = reinterpret_cast<sockaddr*>(&local);
    const bool leads = connect(s, a->ai_addr, a->ai_addrlen) == 0 && getsockname(s, to, &size) == 0;
    close(s);
    if (leads) return number_text(to, size);
  }
  return {};
}

std::string own_name() {
  char text[256] = {};
  return gethostname(text, sizeof text - 1) == 0 ? text : "";
}

const Interface* owner(const std::vector<Interface>& all, const std::string& address) {
  for (const Interface& i : all)
    if (std::count(i.addresses.begin(), i.addresses.end(), address)) return &i;
  return nullptr;
}

}  // namespace

bool is_loopback(const std::string& a) {
  return a.compare(0, 4, "127.") == 0 || a == "::1" || a.compare(0, 11, "::ffff:127.") == 0;
}

std::vector<Interface> interfaces() {
  std::map<std::string, Interface> by_name;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  for (const ifaddrs* i = first; i; i = i->ifa_next) {
    Interface& x = by_name[i->ifa_name];
    x.name = i->ifa_name;
    x.up = (i->ifa_flags & IFF_UP) != 0;
    x.loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    const int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6) continue;
    x.addresses.push_back(
        number_text(i->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
  }
  freeifaddrs(first);
  std::vector<Interface> out;
  for (auto& [name, x] : by_name) out.push_back(std::move(x));
  return out;
}

Lines network(const std::vector<Interface>& all, const std::string& towards, const std::string& address) {
  Lines out;
  for (const Interface& i : all) {
    std::string text = i.name + (i.loopback ? ", loopback" : "") + (i.up ? ", up" : ", down");
    if (i.up || !i.addresses.empty())
      text += i.addresses.empty() ? ", no address" : ": " + join(i.addresses, ", ");
    out.push_back({out.empty() ? "network" : "", text});
  }
  for (const Interface& i : all)
    if (i.loopback && !i.up)
      out.push_back({"network",
                     i.name + " is down, and ranks of one machine meet there: ip link set " + i.name + " up",
                     true});
  if (out.empty()) out.push_back({"network", "the system names no interfaces: ranks on this machine only"});
  const Interface* i = owner(all, address);
  const std::string to = towards.empty() ? "by the default route" : "towards MASTER_ADDR=" + towards;
  if (address.empty())
    out.push_back({"", "nothing leads to other machines " + to +
                           ": set MASTER_ADDR, and collective.interface, for several"});
  else if (is_loopback(address))
    out.push_back(
        {"",
         "ranks on several machines would use " + address + " " + to +
             ", which no other machine can reach: set collective.interface, or an address as MASTER_ADDR"});
  else
    out.push_back({"", "ranks on several machines use " + (i ? i->name + " (" + address + ")" : address) +
                           " " + to + "; collective.interface chooses another"});
  return out;
}

Lines host_name(const std::string& name, const std::vector<std::string>& addresses,
                const std::string& usable) {
  const std::string way_out = usable.empty() || is_loopback(usable) ? "an address of its network" : usable;
  if (name.empty()) return {};
  if (addresses.empty())
    return {{"host name",
             name + " stands for no address here: for several machines set MASTER_ADDR to " + way_out}};
  Lines out = {{"host name", name + " is " + join(addresses, ", ")}};
  if (std::any_of(addresses.begin(), addresses.end(), is_loopback))
    out.push_back(
        {"",
         "that is this machine to itself alone: if rank 0 is here and ranks on others, set MASTER_ADDR to " +
             way_out + ", or collective.interface"});
  return out;
}

Lines meeting_port(const std::string& master_port) {
  int64_t port = 0;
  const char* end = master_port.data() + master_port.size();
  const auto [stop, error] = std::from_chars(master_port.data(), end, port);
  if (!master_port.empty() && (error != std::errc() || stop != end || port < 1 || port > 65535))
    return {{"port", "MASTER_PORT=" + master_port + " is no port: set 1 to 65535, or unset it", true}};
  try {
    const RendezvousSocket socket(true, port);
    return {{"port", port ? "MASTER_PORT=" + master_port + " is free"
                          : "ranks of this machine can meet on 127.0.0.1"}};
  } catch (const Failure& f) {  // a taken MASTER_PORT is right if rank 0 runs already
    return {{"port", std::string(f.what()) + (port ? "; right only if it is rank 0 of this run" : ""),
             port == 0}};
  }
}

Lines meeting(const std::string& master_addr, const std::string& master_port) {
  const std::vector<Interface> all = interfaces();
  const std::string name = own_name(), far = address_towards(kFar);
  Lines out = network(all, master_addr, master_addr.empty() ? far : address_towards(master_addr));
  for (const Lines& more : {host_name(name, addresses_of(name), far), meeting_port(master_port)})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace lhost::doctor
