// A few UDP ports of one process that know each other, and super-packets whose content is known.
#ifndef OPTIREDUCE_TEST_LOOPBACK_UDP_PORT_GROUP_H_
#define OPTIREDUCE_TEST_LOOPBACK_UDP_PORT_GROUP_H_

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "optireduce/time.h"
#include "transport/udp/udp_port.h"

namespace optireduce::test {

inline constexpr Instant kNow{};
inline constexpr std::size_t kHeaderBytes = 32;

// True where this host can bind the address (a host without IPv6 has no ::1).
inline bool HasAddress(const std::string& host) {
  const Result<Endpoint> endpoint = Endpoint::FromHost(host, 0);
  const int fd = socket(endpoint->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool bound = bind(fd, endpoint->address(), endpoint->length()) == 0;
  close(fd);
  return bound;
}

class PortGroup {
 public:
  PortGroup(std::size_t ranks, const UdpPortOptions& options) {
    std::vector<Endpoint> endpoints;
    for (std::size_t i = 0; i < ranks; ++i) {
      Result<std::unique_ptr<UdpPort>> port = UdpPort::Bind(options);
      if (!port.ok()) throw std::runtime_error(port.status().text());
      endpoints.push_back((*port)->local_endpoint());
      ports.push_back(*std::move(port));
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Status status = ports[rank]->SetPeers(endpoints, rank);
      if (!status.ok()) throw std::runtime_error(status.text());
    }
  }
  UdpPort& operator[](std::size_t rank) { return *ports[rank]; }

  std::vector<std::unique_ptr<UdpPort>> ports;
};

// A super-packet of `full` full packets and a short one of `last_bytes` (0: none), every byte a
// function of (seed, position).
struct SuperPacket {
  SuperPacket(std::size_t full, std::size_t packet_bytes, std::size_t last_bytes, unsigned seed) {
    const std::size_t count = full + (last_bytes > 0 ? 1 : 0);
    packets.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      packets[i].resize(i < full ? packet_bytes : last_bytes);
      for (std::size_t b = 0; b < packets[i].size(); ++b) {
        packets[i][b] = static_cast<std::byte>((seed * 31 + i * 7 + b * 13 + b / 256) & 0xff);
      }
    }
    for (const auto& packet : packets) {
      const std::span<const std::byte> bytes(packet);
      const std::size_t header = std::min(kHeaderBytes, bytes.size());
      segments.push_back({bytes.first(header), bytes.subspan(header)});
    }
  }

  std::vector<std::vector<std::byte>> packets;
  std::vector<TxSegment> segments;
};

using Packets = std::vector<std::vector<std::byte>>;

// Appends what comes until `count` packets are there or nothing came for two seconds.
inline void ReceiveInto(PacketPort* port, std::size_t count, Packets* packets) {
  for (bool waited = false; packets->size() < count;) {
    const std::span<const RxPacket> burst = port->Receive(kNow);
    for (const RxPacket& p : burst) packets->emplace_back(p.bytes.begin(), p.bytes.end());
    if (burst.empty() && waited) return;
    waited = burst.empty();
    if (waited) port->Wait(std::chrono::seconds(2));
  }
}

// Takes in everything that waits now and says how many packets that was.
inline std::size_t Drain(PacketPort* port, Packets* packets = nullptr) {
  std::size_t count = 0;
  for (auto burst = port->Receive(kNow); !burst.empty(); burst = port->Receive(kNow)) {
    count += burst.size();
    if (packets == nullptr) continue;
    for (const RxPacket& p : burst) packets->emplace_back(p.bytes.begin(), p.bytes.end());
  }
  return count;
}

// Equal packets in equal order; on failure it says where, not everything.
inline ::testing::AssertionResult Same(const Packets& received, const Packets& sent) {
  for (std::size_t i = 0; i < std::min(received.size(), sent.size()); ++i) {
    if (received[i] == sent[i]) continue;
    return ::testing::AssertionFailure() << "packet " << i << " differs; bytes received "
                                         << received[i].size() << ", sent " << sent[i].size();
  }
  if (received.size() == sent.size()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << received.size() << " packets received, " << sent.size() << " sent";
}

}  // namespace optireduce::test

#endif  // OPTIREDUCE_TEST_LOOPBACK_UDP_PORT_GROUP_H_
