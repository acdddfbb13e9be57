#include "transport/control/endpoint.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <set>

namespace optireduce::control {
namespace {

std::optional<in6_addr> ParseV6(std::string_view host) {
  const std::string bare(host.substr(0, host.find('%')));
  in6_addr parsed{};
  if (inet_pton(AF_INET6, bare.c_str(), &parsed) != 1) return std::nullopt;
  return parsed;
}

std::optional<in_addr> ParseV4(std::string_view host) {
  const std::string text(host);
  in_addr parsed{};
  if (inet_pton(AF_INET, text.c_str(), &parsed) != 1) return std::nullopt;
  return parsed;
}

Result<HostPort> WithPort(std::string_view host, std::string_view port, std::string_view whole) {
  HostPort out{std::string(host), std::nullopt};
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc{} || end != port.data() + port.size() || value == 0) {
    return Status(Code::kInvalidArgument,
                  "address " + Quoted(whole) + ": " + Quoted(port) + " is no port (1 to 65535)");
  }
  if (host.empty()) {
    return Status(Code::kInvalidArgument, "address " + Quoted(whole) + " names no host");
  }
  out.port = value;
  return out;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 64)) out += (c >= ' ' && c != '\x7f') ? c : '?';
  if (text.size() > 64) out += "...";
  return out + "'";
}

Result<HostPort> SplitHostPort(std::string_view text) {
  const std::string_view whole = text;
  if (text.starts_with("tcp://")) text.remove_prefix(6);
  if (text.empty()) return Status(Code::kInvalidArgument, "the address is empty");
  for (const char c : text) {
    if (c <= ' ' || c == '/' || c == '\x7f') {
      return Status(Code::kInvalidArgument, "address " + Quoted(whole) + " has a stray character");
    }
  }
  if (text.front() == '[') {
    const std::size_t close = text.find(']');
    const std::string_view inside =
        close == std::string_view::npos ? std::string_view{} : text.substr(1, close - 1);
    if (!ParseV6(inside)) {
      return Status(Code::kInvalidArgument,
                    "address " + Quoted(whole) + ": no IPv6 address inside the brackets");
    }
    const std::string_view rest = text.substr(close + 1);
    if (rest.empty()) return HostPort{std::string(inside), std::nullopt};
    if (rest.front() != ':') {
      return Status(Code::kInvalidArgument,
                    "address " + Quoted(whole) + ": after ']' comes ':port' or nothing");
    }
    return WithPort(inside, rest.substr(1), whole);
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return HostPort{std::string(text), std::nullopt};
  if (text.find(':', colon + 1) == std::string_view::npos) {
    return WithPort(text.substr(0, colon), text.substr(colon + 1), whole);
  }
  if (ParseV6(text)) return HostPort{std::string(text), std::nullopt};
  const std::size_t last = text.rfind(':');
  if (ParseV6(text.substr(0, last))) {
    const std::string right =
        "[" + std::string(text.substr(0, last)) + "]" + std::string(text.substr(last));
    return Status(Code::kInvalidArgument,
                  "address " + Quoted(whole) + ": an IPv6 address with a port is written " + right);
  }
  return Status(Code::kInvalidArgument,
                "address " + Quoted(whole) + " is neither host:port nor [IPv6 address]:port");
}

std::string JoinHostPort(std::string_view host, std::uint16_t port) {
  std::string out;
  const bool brackets = host.find(':') != std::string_view::npos;
  if (brackets) out += '[';
  out += host;
  if (brackets) out += ']';
  return out + ":" + std::to_string(port);
}

AddressFamily FamilyOf(std::string_view host) {
  if (ParseV4(host)) return AddressFamily::kIpv4;
  if (ParseV6(host)) return AddressFamily::kIpv6;
  return AddressFamily::kAny;
}

bool IsLoopback(std::string_view host) {
  if (const auto v4 = ParseV4(host)) return (ntohl(v4->s_addr) >> 24) == 127;
  if (const auto v6 = ParseV6(host)) return IN6_IS_ADDR_LOOPBACK(&*v6);
  return false;
}

bool IsWildcard(std::string_view host) {
  if (const auto v4 = ParseV4(host)) return v4->s_addr == 0;
  if (const auto v6 = ParseV6(host)) return IN6_IS_ADDR_UNSPECIFIED(&*v6);
  return false;
}

Result<std::string> LocalAddress(const std::string& wanted, AddressFamily family) {
  const AddressFamily own = FamilyOf(wanted);
  if (own != AddressFamily::kAny) {
    if (family != AddressFamily::kAny && family != own) {
      return Status(Code::kInvalidArgument,
                    "address " + Quoted(wanted) + " is not of the configured family");
    }
    return wanted;
  }
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return Status(Code::kUnavailable,
                  std::string("list the network interfaces: ") + std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::set<std::string> names;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    names.insert(at->ifa_name);
    if (at->ifa_addr == nullptr || wanted != at->ifa_name) continue;
    const int kind = at->ifa_addr->sa_family;
    const bool v4 = kind == AF_INET && family != AddressFamily::kIpv6;
    const bool v6 = kind == AF_INET6 && family != AddressFamily::kIpv4;
    if (!v4 && !v6) continue;
    std::array<char, NI_MAXHOST> text{};
    const auto bytes = static_cast<socklen_t>(v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (getnameinfo(at->ifa_addr, bytes, text.data(), static_cast<socklen_t>(text.size()), nullptr,
                    0, NI_NUMERICHOST) == 0) {
      return std::string(text.data());
    }
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return Status(Code::kInvalidArgument, Quoted(wanted) +
                                            " is neither a numeric address nor an interface with "
                                            "an address of the wanted family (interfaces: " +
                                            list + ")");
}

}  // namespace optireduce::control
