// A small network under test: a world, a network, a port per node, and a list of what happened.
#ifndef OPTIREDUCE_TEST_UNIT_SIM_BENCH_NET_H_
#define OPTIREDUCE_TEST_UNIT_SIM_BENCH_NET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/packet_io.h"
#include "transport/sim/network.h"
#include "transport/sim/sim_port.h"
#include "transport/sim/world.h"

namespace optireduce::sim {

struct Happening {
  std::int64_t at_ns;
  TraceKind kind;
  DropReason reason;
  NodeId from;
  NodeId to;
  std::uint64_t packet;
  std::size_t bytes;
};

struct BenchNet {
  explicit BenchNet(const NetworkConfig& config) : network(&world, config) {
    for (NodeId node = 0; node < config.nodes; ++node) {
      ports.push_back(std::make_unique<SimPort>(&network, node));
    }
    network.SetTraceSink([this](const TraceRecord& record) {
      happenings.push_back({Nanos(record.at), record.kind, record.reason, record.from, record.to,
                            record.packet, record.bytes.size()});
    });
  }

  // One packet of `size` bytes, each `fill`, at once.
  void Send(NodeId from, NodeId to, std::size_t size, std::uint8_t fill = 0x5a) {
    std::vector<std::byte> bytes(size, std::byte{fill});
    const TxSegment segment{std::span(bytes).first(size / 2), std::span(bytes).subspan(size / 2)};
    if (!ports[from]->Send(to, std::span(&segment, 1))) ++refused;
    // What stays queued still points into them.
    if (!ports[from]->Flush(world.now())) queued_bytes.push_back(std::move(bytes));
  }

  // Reads everything that waits at a node; the number of packets.
  std::size_t Read(NodeId node) {
    std::size_t packets = 0;
    for (auto burst = ports[node]->Receive(world.now()); !burst.empty();
         burst = ports[node]->Receive(world.now())) {
      packets += burst.size();
    }
    return packets;
  }

  std::vector<Happening> Of(TraceKind kind) const {
    std::vector<Happening> found;
    for (const Happening& happening : happenings) {
      if (happening.kind == kind) found.push_back(happening);
    }
    return found;
  }

  World world;
  Network network;
  std::vector<std::unique_ptr<SimPort>> ports;
  std::vector<Happening> happenings;
  std::vector<std::vector<std::byte>> queued_bytes;
  std::uint64_t refused = 0;
};

// 1 Gbit/s up (8 ns a byte), 500 Mbit/s down (16 ns a byte), 1 and 2 µs away. A packet of 1434
// bytes is 1500 on the wire.
inline NetworkConfig PlainConfig(std::uint32_t nodes = 2) {
  NetworkConfig config;
  config.nodes = nodes;
  config.node.uplink.rate_bits_per_s = 1'000'000'000;
  config.node.uplink.propagation = Duration{1000};
  config.node.downlink.rate_bits_per_s = 500'000'000;
  config.node.downlink.propagation = Duration{2000};
  return config;
}

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TEST_UNIT_SIM_BENCH_NET_H_
