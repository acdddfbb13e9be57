// Endpoint: a numeric IPv4 or IPv6 address with a UDP port, as sockets, text and hash tables need
// it.
//
// A plain value; any thread. It never resolves a name: who has one asks the resolver first.
#ifndef OPTIREDUCE_TRANSPORT_UDP_ENDPOINT_H_
#define OPTIREDUCE_TRANSPORT_UDP_ENDPOINT_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "optireduce/status.h"

namespace optireduce {

class Endpoint {
 public:
  // No address: family() is AF_UNSPEC.
  Endpoint() = default;

  // "10.0.0.1:4711", "[2001:db8::1]:4711", "[fe80::1%eth0]:4711", "[fe80::1%2]:4711".
  static Result<Endpoint> Parse(std::string_view text);
  // The host alone, without brackets: "10.0.0.1", "fe80::1%eth0".
  static Result<Endpoint> FromHost(std::string_view host, std::uint16_t port);

  sa_family_t family() const { return address_.any.sa_family; }
  bool is_ipv6() const { return family() == AF_INET6; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  bool is_wildcard() const;    // 0.0.0.0 or ::
  bool is_link_local() const;  // IPv6 fe80::/10, which means something only with a scope
  std::uint32_t scope_id() const { return is_ipv6() ? address_.v6.sin6_scope_id : 0; }
  void set_scope_id(std::uint32_t scope_id);

  std::string Host() const;
  // What Parse() reads. The scope is written as a number, which every host can read.
  std::string ToString() const;

  // For the socket calls. A call that fills the address in gets at most kLengthMax bytes.
  static constexpr socklen_t kLengthMax = sizeof(sockaddr_in6);
  const sockaddr* address() const { return &address_.any; }
  sockaddr* address() { return &address_.any; }
  socklen_t length() const { return is_ipv6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

  // Same family, address and port, and for link-local addresses the same scope.
  friend bool operator==(const Endpoint& a, const Endpoint& b);
  std::size_t Hash() const;

 private:
  union Address {
    sockaddr_in6 v6{};  // the largest: value-initialised, so that every byte is set
    sockaddr_in v4;
    sockaddr any;
  };
  Address address_;
};

struct EndpointHash {
  std::size_t operator()(const Endpoint& endpoint) const { return endpoint.Hash(); }
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_UDP_ENDPOINT_H_
