// Addresses as text: "10.0.0.1:29500", "[fd00::1]:29500", "host:29500". Pure but for
// LocalAddress, which asks the kernel for the interfaces of this host. Any thread.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_ENDPOINT_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_ENDPOINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/settings.h"
#include "optireduce/status.h"

namespace optireduce::control {

struct HostPort {
  std::string host;  // without brackets
  std::optional<std::uint16_t> port;
};

// Accepts "host", "host:port", "1.2.3.4", "::1", "[::1]", "[::1]:port", each after an optional
// "tcp://". The fault of an IPv6 address with a port glued to it shows the form with brackets.
Result<HostPort> SplitHostPort(std::string_view text);

// "host:port", with brackets around an IPv6 address.
std::string JoinHostPort(std::string_view host, std::uint16_t port);

// kAny: `host` is not a numeric address.
AddressFamily FamilyOf(std::string_view host);
bool IsLoopback(std::string_view host);
bool IsWildcard(std::string_view host);

// The numeric address meant by `wanted`: itself, or the first address of the interface of that
// name in the wanted family.
Result<std::string> LocalAddress(const std::string& wanted, AddressFamily family);

// For error texts: at most 64 characters, unprintable ones replaced.
std::string Quoted(std::string_view text);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_ENDPOINT_H_
