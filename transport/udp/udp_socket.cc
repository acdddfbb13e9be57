#include "transport/udp/udp_socket.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace optireduce {
namespace {

constexpr std::size_t kIpPacketBytesMax = 65535;
constexpr std::size_t kIpv4HeaderBytes = 20 + 8;
constexpr std::size_t kIpv6HeaderBytes = 40 + 8;
constexpr std::size_t kPathMtuUsual = 1500;
// A send of the kernel, 64 KiB, holds two such packets.
constexpr std::size_t kPathMtuMax = 32 * 1024;
// Kernels before 6.9 refuse more.
constexpr std::size_t kKernelSegmentsMax = 64;

Status SystemError(const std::string& what) {
  return Status(Code::kUnavailable, what + ": " + std::strerror(errno));
}

bool SetOption(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

std::size_t GetOption(int fd, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, name, &value, &length) != 0 || value < 0) return 0;
  return static_cast<std::size_t>(value);
}

// Asks for socket memory in one direction and says how to get it where the kernel clips.
void SizeQueue(const UdpPortOptions& options, int fd, bool receive,
               std::vector<std::string>* notices) {
  const std::size_t wanted =
      std::min<std::size_t>(options.socket_buffer_bytes, std::size_t{1} << 30);
  if (wanted == 0) return;
  const int name = receive ? SO_RCVBUF : SO_SNDBUF;
  const int force = receive ? SO_RCVBUFFORCE : SO_SNDBUFFORCE;
  const int value = static_cast<int>(wanted);
  if (!options.exceed_buffer_limits || !SetOption(fd, SOL_SOCKET, force, value)) {
    SetOption(fd, SOL_SOCKET, name, value);
  }
  const std::size_t granted = GetOption(fd, name) / 2;  // the kernel doubles what is asked
  if (granted >= wanted) return;
  notices->push_back(std::string("udp: ") + (receive ? "receive" : "send") + " queue clipped to " +
                     std::to_string(granted) + " of " + std::to_string(wanted) +
                     " bytes; run: sysctl -w net.core." + (receive ? "rmem_max=" : "wmem_max=") +
                     std::to_string(wanted));
}

// DF on every packet. PROBE, not DO: a forged or stale "fragmentation needed" must not shrink what
// we may send; a path that is really narrower shows as loss of full packets only.
Status ForbidFragments(int fd, sa_family_t family) {
  const bool done = family == AF_INET6
                        ? SetOption(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) &&
                              SetOption(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1)
                        : SetOption(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  return done ? Status::Ok() : SystemError("forbid IP fragments");
}

// What the interface of this address takes in one IP packet; 0: it has none (every address), or it
// is loopback.
std::size_t InterfaceMtu(int fd, const Endpoint& local) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return 0;
  std::size_t mtu = 0;
  for (const ifaddrs* it = all; it != nullptr; it = it->ifa_next) {
    if (it->ifa_addr == nullptr || it->ifa_addr->sa_family != local.family()) continue;
    Endpoint address;
    std::memcpy(address.address(), it->ifa_addr, local.length());
    address.set_port(local.port());
    if (!(address == local) || (it->ifa_flags & IFF_LOOPBACK) != 0) continue;
    ifreq request{};
    std::strncpy(request.ifr_name, it->ifa_name, IFNAMSIZ - 1);
    if (ioctl(fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0) {
      mtu = static_cast<std::size_t>(request.ifr_mtu);
    }
    break;
  }
  freeifaddrs(all);
  return mtu;
}

// Settles what IP packets to send at most, and says so where that is less than was asked for.
void SettlePathMtu(std::size_t wanted, UdpSocket* socket) {
  const std::size_t interface = InterfaceMtu(socket->fd.get(), socket->local);
  if (wanted == 0) {
    socket->path_mtu = std::min(interface == 0 ? kPathMtuUsual : interface, kPathMtuMax);
    return;
  }
  socket->path_mtu = interface == 0 ? wanted : std::min(wanted, interface);
  if (socket->path_mtu < wanted) {
    socket->notices.push_back("udp: path_mtu = " + std::to_string(wanted) +
                              " is more than the interface of " + socket->local.Host() +
                              " takes; using " + std::to_string(interface));
  }
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

std::size_t IpHeaderBytes(sa_family_t family) {
  return family == AF_INET6 ? kIpv6HeaderBytes : kIpv4HeaderBytes;
}

std::size_t PacketBytesMax(sa_family_t family, std::size_t path_mtu) {
  return std::min(path_mtu, kIpPacketBytesMax) - IpHeaderBytes(family);
}

std::vector<std::uint32_t> ProbeBytes(sa_family_t family, std::size_t path_mtu) {
  // What links and overlays leave: jumbo frames as clouds and switches have them, Ethernet and it
  // less PPPoE, a cloud's tunnel, VXLAN, WireGuard, GRE with IPsec; last what every path carries.
  constexpr std::size_t kKnown[] = {9001, 9000, 8896, 3900, 1500, 1492, 1460,
                                    1450, 1420, 1400, 1380, 1280, 576};
  const std::size_t mtu_min = family == AF_INET6 ? 1280 : 576;
  std::vector<std::uint32_t> sizes;
  const auto add = [&](std::size_t mtu) {
    sizes.push_back(static_cast<std::uint32_t>(PacketBytesMax(family, mtu)));
  };
  add(path_mtu);
  for (const std::size_t mtu : kKnown) {
    if (mtu < path_mtu && mtu >= mtu_min) add(mtu);
  }
  return sizes;
}

std::size_t SegmentsMax(sa_family_t family, std::size_t packet_bytes) {
  const std::size_t super_packet_bytes = kIpPacketBytesMax - IpHeaderBytes(family);
  return std::clamp<std::size_t>(super_packet_bytes / packet_bytes, 1, kKernelSegmentsMax);
}

// The kernel charges a packet by the memory it lies in: its sk_buff (256 bytes) and its data, which
// with headroom, headers and the shared info (448 bytes at most, taken together) is rounded up to a
// power of two. Merged super-packets cost less. Of the whole a quarter may be charged to packets
// that were read already: the kernel gives back in lumps of that size while more wait.
// Drivers that spend a page per packet charge up to 1.5 times as much; who shares the queue out
// leaves half of it free, which covers that and small packets.
std::size_t ReceiveBytesHeld(std::size_t receive_buffer, std::size_t packet_bytes) {
  const std::size_t charge = 256 + std::bit_ceil(packet_bytes + 448);
  return receive_buffer / 4 * 3 / charge * packet_bytes;
}

Result<UdpSocket> UdpSocket::Open(const UdpPortOptions& options) {
  Result<Endpoint> wanted = Endpoint::FromHost(options.bind_address, options.bind_port);
  if (!wanted.ok()) return wanted.status().Context("bind UDP socket");
  const std::string who = "bind UDP socket to " + wanted->ToString();
  if (wanted->is_link_local() && wanted->scope_id() == 0) {
    return Status(Code::kInvalidArgument,
                  who + ": a link-local address needs its interface, as in fe80::1%eth0");
  }
  const std::size_t mtu_min = wanted->is_ipv6() ? 1280 : 576;
  if (options.path_mtu != 0 && options.path_mtu < mtu_min) {
    return Status(Code::kInvalidArgument, who + ": path MTU " + std::to_string(options.path_mtu) +
                                              " is below " + std::to_string(mtu_min));
  }

  UdpSocket result;
  result.fd = FileDescriptor(
      socket(wanted->family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  const int fd = result.fd.get();
  if (fd < 0) return SystemError(who + ": open socket");
  if (wanted->is_ipv6() && !SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) {
    return SystemError(who + ": take IPv6 only");
  }
  const Status fragments = ForbidFragments(fd, wanted->family());
  if (!fragments.ok()) return fragments.Context(who);

  SizeQueue(options, fd, /*receive=*/true, &result.notices);
  SizeQueue(options, fd, /*receive=*/false, &result.notices);
  result.receive_buffer = GetOption(fd, SO_RCVBUF);
  SetOption(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  // A segment size of 0 segments nothing, but only a kernel that can segment accepts it.
  result.gso = options.gso && SetOption(fd, IPPROTO_UDP, UDP_SEGMENT, 0);
  result.gro = options.gro && SetOption(fd, IPPROTO_UDP, UDP_GRO, 1);
  if (options.gso && !result.gso) {
    result.notices.push_back("udp: this kernel has no segmentation offload; sends cost more CPU");
  }
  if (options.gro && !result.gro) {
    result.notices.push_back("udp: this kernel has no receive offload; receives cost more CPU");
  }

  if (bind(fd, wanted->address(), wanted->length()) != 0) return SystemError(who);
  socklen_t length = Endpoint::kLengthMax;
  if (getsockname(fd, result.local.address(), &length) != 0) {
    return SystemError(who + ": read the address back");
  }
  SettlePathMtu(options.path_mtu, &result);
  return result;
}

}  // namespace optireduce
