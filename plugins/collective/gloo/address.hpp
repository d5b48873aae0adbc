// address.hpp - sockets before c10d: the port on which rank 0 listens, whether it can be reached, and the network
// interface for the links. No c10d.
#pragma once
#include <string>

namespace lhost_gloo {

int listen_on(int port);  // a socket on all addresses; an error names the port and a way out
// Tries once, for at most half a second: an empty text if somebody listens there, else the reason why not.
std::string try_connect(const std::string& host, int port);
// The address of this machine on the way to a host.
std::string address_towards(const std::string& host, int port);
bool is_loopback(const std::string& address);
// "eth0 (10.0.0.5), lo (127.0.0.1)"; an interface that is not there is an error that says what is.
std::string interfaces();
void check_interface(const std::string& name, const std::string& who_said_so);

}  // namespace lhost_gloo
