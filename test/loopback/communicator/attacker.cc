#include "test/loopback/communicator/attacker.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

namespace optireduce::testing {
namespace {

constexpr std::size_t kIpBytes = sizeof(iphdr);
constexpr std::size_t kUdpBytes = sizeof(udphdr);

sockaddr_in Loopback(PortNumber port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* Any(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

int OpenTap() {
  const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP));
  if (fd < 0) return fd;
  const int bytes = 4 << 20;
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_IP);
  address.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

DatagramAttacker::DatagramAttacker()
    : own_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
      raw_(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)),
      tap_(OpenTap()) {}

DatagramAttacker::~DatagramAttacker() {
  for (const int fd : {own_, raw_, tap_}) {
    if (fd >= 0) close(fd);
  }
}

void DatagramAttacker::Send(PortNumber to, std::span<const std::byte> payload) const {
  const sockaddr_in address = Loopback(to);
  (void)sendto(own_, payload.data(), payload.size(), 0, Any(address), sizeof address);
}

void DatagramAttacker::SendAs(PortNumber from, PortNumber to,
                              std::span<const std::byte> payload) const {
  iphdr ip{};
  ip.version = 4;
  ip.ihl = kIpBytes / 4;
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.saddr = ip.daddr = htonl(INADDR_LOOPBACK);
  udphdr udp{};
  udp.source = htons(from);
  udp.dest = htons(to);
  udp.len = htons(static_cast<std::uint16_t>(kUdpBytes + payload.size()));  // checksum 0: none
  Datagram packet(kIpBytes + kUdpBytes + payload.size());
  std::memcpy(packet.data(), &ip, kIpBytes);
  std::memcpy(packet.data() + kIpBytes, &udp, kUdpBytes);
  std::copy(payload.begin(), payload.end(), packet.begin() + kIpBytes + kUdpBytes);
  const sockaddr_in address = Loopback(0);
  (void)sendto(raw_, packet.data(), packet.size(), 0, Any(address), sizeof address);
}

std::vector<DatagramAttacker::Seen> DatagramAttacker::ReadAlong(
    std::span<const PortNumber> ports, std::size_t count) const {
  std::vector<Seen> out;
  Datagram memory(65536);
  sockaddr_ll source{};
  socklen_t source_bytes = sizeof source;
  while (out.size() < count) {
    const ssize_t bytes = recvfrom(tap_, memory.data(), memory.size(), 0,
                                   reinterpret_cast<sockaddr*>(&source), &source_bytes);
    if (bytes < 0) break;
    // Loopback shows each packet twice: going out and coming in.
    if (source.sll_pkttype != PACKET_HOST) continue;
    if (static_cast<std::size_t>(bytes) < kIpBytes + kUdpBytes) continue;
    iphdr ip{};
    udphdr udp{};
    std::memcpy(&ip, memory.data(), kIpBytes);
    std::memcpy(&udp, memory.data() + kIpBytes, kUdpBytes);
    if (ip.protocol != IPPROTO_UDP) continue;
    if (std::find(ports.begin(), ports.end(), ntohs(udp.dest)) == ports.end()) continue;
    out.push_back({ntohs(udp.source), ntohs(udp.dest),
                   Datagram(memory.begin() + kIpBytes + kUdpBytes, memory.begin() + bytes)});
  }
  return out;
}

TcpAttacker::~TcpAttacker() { Leave(); }

void TcpAttacker::Leave() {
  for (const int fd : staying_) close(fd);
  staying_.clear();
}

int TcpAttacker::Connect() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port_);
  if (fd >= 0 && connect(fd, Any(address), sizeof address) == 0) return fd;
  ++refused_;
  if (fd >= 0) close(fd);
  return -1;
}

void TcpAttacker::SendAndStay(std::span<const std::byte> bytes) {
  const int fd = Connect();
  if (fd < 0) return;
  // Without waiting: who is cut off in mid-sentence does not care.
  (void)send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  staying_.push_back(fd);
}

void TcpAttacker::SendAndReset(std::span<const std::byte> bytes) {
  const int fd = Connect();
  if (fd < 0) return;
  (void)send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const linger none{1, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(fd);
}

std::size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace optireduce::testing
