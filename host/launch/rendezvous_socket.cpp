#include "launch/rendezvous_socket.hpp"

#include "base/failure.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lhost {
namespace {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t address_for(int family, bool local, int64_t port, SocketAddress& a) {
  std::memset(&a, 0, sizeof a);
  const auto p = htons(static_cast<uint16_t>(port));
  if (family == AF_INET) {
    a.v4.sin_family = AF_INET;
    a.v4.sin_port = p;
    a.v4.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
    return sizeof a.v4;
  }
  a.v6.sin6_family = AF_INET6;
  a.v6.sin6_port = p;
  a.v6.sin6_addr = in6addr_any;
  return sizeof a.v6;
}

// 0, or why not.
int listen_at(int fd, int family, bool local, int64_t port) {
  const int on = 1, off = 0;
  // Connections of a run that has just ended do not keep the port; a program that listens does.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  SocketAddress a;
  const socklen_t n = address_for(family, local, port, a);
  return bind(fd, &a.any, n) == 0 && listen(fd, SOMAXCONN) == 0 ? 0 : errno;
}

}  // namespace

RendezvousSocket::RendezvousSocket(bool local, int64_t port) {
  int error = 0;
  for (int family : {AF_INET6, AF_INET}) {  // on all addresses: both, where the system knows both
    if (local && family == AF_INET6) continue;
    fd_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    error = fd_ < 0 ? errno : listen_at(fd_, family, local, port);
    if (error == 0) break;
    close();
    if (error == EADDRINUSE || error == EACCES) break;
  }
  const std::string where = "port " + std::to_string(port) + (local ? " on 127.0.0.1" : "");
  if (error == EADDRINUSE)
    throw Failure(Exit::environment,
                  where +
                      " is in use by another program; give another launcher.master_port or "
                      "MASTER_PORT" +
                      (local ? ", or none: then a free one is taken" : ""));
  if (error != 0) throw Failure(Exit::environment, "cannot listen at " + where + ": " + std::strerror(error));
  SocketAddress a;
  socklen_t n = sizeof a;
  getsockname(fd_, &a.any, &n);
  port_ = ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

RendezvousSocket::~RendezvousSocket() { close(); }

void RendezvousSocket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace lhost
