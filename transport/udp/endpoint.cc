#include "transport/udp/endpoint.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstring>

namespace optireduce {
namespace {

Status Malformed(std::string_view text, std::string_view why) {
  return Status(Code::kInvalidArgument,
                "address \"" + std::string(text) + "\": " + std::string(why));
}

template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && at == end && !text.empty();
}

// An interface's name or number; 0 where this host has no such interface.
std::uint32_t ScopeId(const std::string& scope) {
  std::uint32_t id = 0;
  if (ParseNumber(scope, &id)) return id;
  return if_nametoindex(scope.c_str());
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text, "no port (host:port is wanted)");
  std::string_view host = text.substr(0, colon);
  std::uint16_t port = 0;
  if (!ParseNumber(text.substr(colon + 1), &port)) return Malformed(text, "port is no number");
  const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Malformed(text, "an IPv6 address with a port needs brackets: [::1]:4711");
  }
  Result<Endpoint> endpoint = FromHost(host, port);
  if (endpoint.ok() && endpoint->is_ipv6() != brackets) {
    return Malformed(text, "brackets are for IPv6 addresses");
  }
  return endpoint;
}

Result<Endpoint> Endpoint::FromHost(std::string_view host, std::uint16_t port) {
  Endpoint endpoint;
  std::string address(host);
  std::string scope;
  const std::size_t percent = address.find('%');
  if (percent != std::string::npos) {
    scope = address.substr(percent + 1);
    address.resize(percent);
  }
  if (inet_pton(AF_INET, address.c_str(), &endpoint.address_.v4.sin_addr) == 1) {
    if (percent != std::string::npos) return Malformed(host, "IPv4 has no scope");
    endpoint.address_.v4.sin_family = AF_INET;
  } else if (inet_pton(AF_INET6, address.c_str(), &endpoint.address_.v6.sin6_addr) == 1) {
    endpoint.address_.v6.sin6_family = AF_INET6;
    if (percent != std::string::npos) {
      const std::uint32_t id = ScopeId(scope);
      if (id == 0) return Malformed(host, "no interface \"" + scope + "\" here");
      endpoint.address_.v6.sin6_scope_id = id;
    }
  } else {
    return Malformed(host, "neither a numeric IPv4 nor IPv6 address");
  }
  endpoint.set_port(port);
  return endpoint;
}

std::uint16_t Endpoint::port() const {
  if (family() == AF_INET) return ntohs(address_.v4.sin_port);
  if (family() == AF_INET6) return ntohs(address_.v6.sin6_port);
  return 0;
}

void Endpoint::set_port(std::uint16_t port) {
  if (is_ipv6()) {
    address_.v6.sin6_port = htons(port);
  } else {
    address_.v4.sin_port = htons(port);
  }
}

bool Endpoint::is_wildcard() const {
  if (is_ipv6()) return IN6_IS_ADDR_UNSPECIFIED(&address_.v6.sin6_addr);
  return family() == AF_INET && address_.v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool Endpoint::is_link_local() const {
  return is_ipv6() && IN6_IS_ADDR_LINKLOCAL(&address_.v6.sin6_addr);
}

void Endpoint::set_scope_id(std::uint32_t scope_id) {
  if (is_ipv6()) address_.v6.sin6_scope_id = scope_id;
}

std::string Endpoint::Host() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &address_.v4.sin_addr, text, sizeof text);
    return text;
  }
  if (!is_ipv6()) return "none";
  inet_ntop(AF_INET6, &address_.v6.sin6_addr, text, sizeof text);
  std::string host = text;
  if (scope_id() != 0) host.append("%").append(std::to_string(scope_id()));
  return host;
}

std::string Endpoint::ToString() const {
  std::string text = is_ipv6() ? "[" : "";
  text.append(Host()).append(is_ipv6() ? "]:" : ":").append(std::to_string(port()));
  return text;
}

bool operator==(const Endpoint& a, const Endpoint& b) {
  if (a.family() != b.family() || a.port() != b.port()) return false;
  if (!a.is_ipv6()) {
    return a.address_.v4.sin_addr.s_addr == b.address_.v4.sin_addr.s_addr;
  }
  if (a.is_link_local() && a.scope_id() != b.scope_id()) return false;
  return IN6_ARE_ADDR_EQUAL(&a.address_.v6.sin6_addr, &b.address_.v6.sin6_addr);
}

std::size_t Endpoint::Hash() const {
  // Multiply-and-fold over address and port. The scope is left out: equal endpoints may differ
  // in it where it has no meaning.
  std::uint64_t words[2] = {0, 0};
  if (is_ipv6()) {
    std::memcpy(words, &address_.v6.sin6_addr, sizeof words);
  } else {
    std::memcpy(words, &address_.v4.sin_addr, sizeof address_.v4.sin_addr);
  }
  std::uint64_t hash = port();
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}

}  // namespace optireduce
