// host/launch/rendezvous_socket.hpp - the socket on which rank 0 meets the others: bound and listening before any rank
// exists, so that no other program can take the port in between. Closes on exec.
#pragma once
#include <cstdint>
#include <string>

namespace lhost {

class RendezvousSocket {
 public:
  // local: only this machine can reach it. port 0: any that is free. A port that is taken is a Failure that names it.
  RendezvousSocket(bool local, int64_t port);
  ~RendezvousSocket();
  RendezvousSocket(const RendezvousSocket&) = delete;
  int fd() const { return fd_; }
  int64_t port() const { return port_; }
  void close();  // this process's descriptor: a rank has its own

 private:
  int fd_ = -1;
  int64_t port_ = 0;
};

}  // namespace lhost
