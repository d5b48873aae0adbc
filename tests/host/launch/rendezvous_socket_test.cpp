#include "launch/rendezvous_socket.hpp"

#include "base/failure.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <set>

namespace lhost {
namespace {

// Connects to 127.0.0.1; the connected descriptor or -1.
int visit(int64_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(port));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0) return fd;
  close(fd);
  return -1;
}

TEST(RendezvousSocket, ListensBeforeAnybodyAsks) {
  for (bool local : {true, false}) {
    const RendezvousSocket s(local, 0);
    EXPECT_GT(s.port(), 0);
    EXPECT_EQ(fcntl(s.fd(), F_GETFD), FD_CLOEXEC);
    const int there = visit(s.port()), here = accept(s.fd(), nullptr, nullptr);
    EXPECT_GE(there, 0);
    EXPECT_GE(here, 0);
    close(there);
    close(here);
  }
}
TEST(RendezvousSocket, ManyHaveTheirOwnPorts) {
  std::vector<std::unique_ptr<RendezvousSocket>> all;
  std::set<int64_t> ports;
  for (int i = 0; i < 200; ++i) ports.insert(all.emplace_back(new RendezvousSocket(true, 0))->port());
  EXPECT_EQ(ports.size(), 200u);
}
TEST(RendezvousSocket, ABusyPortIsNamed) {
  for (bool local : {true, false}) {
    const RendezvousSocket first(true, 0);
    try {
      const RendezvousSocket second(local, first.port());
      ADD_FAILURE() << "two listen at " << first.port();
    } catch (const Failure& f) {
      EXPECT_EQ(f.code, Exit::environment);
      EXPECT_THAT(f.what(), testing::HasSubstr("port " + std::to_string(first.port())));
      EXPECT_THAT(f.what(), testing::HasSubstr("in use by another program"));
    }
  }
}
TEST(RendezvousSocket, ThePortIsFreeAfterARunWithConnections) {
  int64_t port = 0;
  {
    const RendezvousSocket s(true, 0);
    port = s.port();
    const int there = visit(port), here = accept(s.fd(), nullptr, nullptr);
    close(here);  // this side waits for late packets now
    close(there);
  }
  EXPECT_EQ(RendezvousSocket(true, port).port(), port);
}
TEST(RendezvousSocket, OnceClosedVisitorsAreRefused) {
  RendezvousSocket s(true, 0);
  s.close();
  EXPECT_EQ(visit(s.port()), -1);
}

}  // namespace
}  // namespace lhost
