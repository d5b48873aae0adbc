#include "address.hpp"

#include <lhost/sdk/plugin.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

namespace lhost_gloo {
namespace {

constexpr int kConnectMs = 500;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string error_text(int code) {
  char text[128];
  return strerror_r(code, text, sizeof text);  // GNU's form
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Addresses resolve(const std::string& host, int port, int type, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = type;
  const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0) why = "the name \"" + host + "\" is not known: " + gai_strerror(rc);
  return {found, freeaddrinfo};
}

std::string connect_one(const addrinfo& a) {
  const Socket s(socket(a.ai_family, a.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a.ai_protocol));
  if (s.get() < 0) return error_text(errno);
  if (connect(s.get(), a.ai_addr, a.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return error_text(errno);
  pollfd p{s.get(), POLLOUT, 0};
  if (poll(&p, 1, kConnectMs) == 0) return "no answer";
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &code, &size);
  return code ? error_text(code) : std::string();
}

std::string number_text(const sockaddr* a, socklen_t size) {
  char text[NI_MAXHOST];
  return getnameinfo(a, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

// Both families where there is IPv6, else IPv4 alone.
int bind_all(int family, int port) {
  Socket s(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (s.get() < 0) return -1;
  const int on = 1, off = 0;
  setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 six{};
  sockaddr_in four{};
  six.sin6_family = AF_INET6;
  four.sin_family = AF_INET;
  six.sin6_port = four.sin_port = htons(static_cast<uint16_t>(port));
  if (family == AF_INET6) setsockopt(s.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const auto* a =
      family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  const socklen_t size = family == AF_INET6 ? sizeof six : sizeof four;
  if (bind(s.get(), a, size) != 0 || listen(s.get(), SOMAXCONN) != 0) return -1;
  return s.release();
}

std::map<std::string, std::string> interface_addresses() {
  std::map<std::string, std::string> out;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return out;
  for (const ifaddrs* i = first; i; i = i->ifa_next) {
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::string& text = out[i->ifa_name];
    text += (text.empty() ? "" : ", ") + number_text(i->ifa_addr, size);
  }
  freeifaddrs(first);
  return out;
}

}  // namespace

int listen_on(int port) {
  int fd = bind_all(AF_INET6, port);
  if (fd < 0 && errno != EADDRINUSE) fd = bind_all(AF_INET, port);
  if (fd >= 0) return fd;
  const std::string number = std::to_string(port);
  if (errno == EADDRINUSE)
    throw lhost::Error(LH_ALREADY_EXISTS,
                       "port " + number +
                           ", where the ranks are to meet, is used by another program; set another "
                           "MASTER_PORT on all of them");
  throw lhost::Error(LH_UNAVAILABLE, "cannot listen on port " + number + ": " + error_text(errno) +
                                         "; set another MASTER_PORT");
}

std::string try_connect(const std::string& host, int port) {
  std::string why = "no address";
  const Addresses found = resolve(host, port, SOCK_STREAM, why);
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    why = connect_one(*a);
    if (why.empty()) return why;
  }
  return why;
}

std::string address_towards(const std::string& host, int port) {
  std::string why = "no address";
  const Addresses found = resolve(host, port, SOCK_DGRAM, why);
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    const Socket s(socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (s.get() < 0 || connect(s.get(), a->ai_addr, a->ai_addrlen) != 0) {
      why = error_text(errno);
      continue;
    }
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    getsockname(s.get(), reinterpret_cast<sockaddr*>(&local), &size);
    return number_text(reinterpret_cast<const sockaddr*>(&local), size);
  }
  throw lhost::Error(LH_UNAVAILABLE, "no network interface leads to " + host + ": " + why + "; there are " +
                                         interfaces() + ", and the option `interface` chooses one");
}

bool is_loopback(const std::string& address) {
  return address == "::1" || address.compare(0, 4, "127.") == 0;
}

std::string interfaces() {
  std::string out;
  for (const auto& [name, addresses] : interface_addresses())
    out += (out.empty() ? "" : ", ") + name + " (" + addresses + ")";
  return out;
}

void check_interface(const std::string& name, const std::string& who_said_so) {
  if (interface_addresses().count(name) == 0)
    throw lhost::Error(LH_INVALID_ARGUMENT, "this machine has no network interface \"" + name + "\" (" +
                                                who_said_so + "); it has " + interfaces());
}

}  // namespace lhost_gloo
