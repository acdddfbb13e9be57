// A node's port onto the simulated network.
//
// Keeps the PacketPort contract to the letter, so that an engine that breaks it fails here and not
// on a real network: payloads are read in Flush() and not before, a full uplink keeps the port
// busy, and the bytes of a burst are overwritten at the next Receive().
//
// Threads: the world's.
// Does not: wait. Wait() returns at once, and nobody needs it: the network's wake callback says
// when to turn.
#ifndef OPTIREDUCE_TRANSPORT_SIM_SIM_PORT_H_
#define OPTIREDUCE_TRANSPORT_SIM_SIM_PORT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/packet_io.h"
#include "transport/sim/network.h"

namespace optireduce::sim {

class SimPort final : public PacketPort {
 public:
  // Peers are nodes: peer i is node i. The network outlives the port.
  SimPort(Network* network, NodeId node);
  ~SimPort() override;
  SimPort(const SimPort&) = delete;
  SimPort& operator=(const SimPort&) = delete;

  NodeId node() const { return node_; }

  // receive_bytes_held is what the queue holds by Linux's accounting, as at the port's creation.
  const PortLimits& limits() const override { return limits_; }
  // A packet that was refused, or that the uplink's queue dropped, is in packets_sent and in
  // send_refused.
  PortCounters counters() const override;

  bool Send(std::uint32_t peer, std::span<const TxSegment> segments) override;
  // The clock is the world's; `now` is only the caller's own.
  bool Flush(Instant now) override;
  std::span<const RxPacket> Receive(Instant now) override;
  void Wait(Duration at_most) override;
  // Calls the node's wake callback. Of the world's thread only, like all of this class.
  void Wake() override;

 private:
  // A queued super-packet. Kept and reused, so that its vectors grow once.
  struct Queued {
    struct Segment {
      std::size_t header_bytes = 0;
      std::span<const std::byte> payload;  // the sender's, until flushed
    };
    NodeId peer = 0;
    std::uint64_t wire_bytes = 0;
    std::vector<std::byte> headers;  // one after the other
    std::vector<Segment> segments;
  };

  static constexpr std::size_t kQueuedMax = 64;  // super-packets
  static constexpr std::size_t kBurstPackets = 64;

  void Hand(const Queued& queued);
  void ReleaseBurst();

  Network* const network_;
  const NodeId node_;
  PortLimits limits_;
  PortCounters counters_;
  const std::uint64_t receive_drops_before_;  // of earlier ports of this node

  std::vector<Queued> queue_;  // a ring
  std::size_t queue_first_ = 0;
  std::size_t queue_size_ = 0;

  std::vector<PacketIndex> burst_;
  std::vector<RxPacket> burst_packets_;
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TRANSPORT_SIM_SIM_PORT_H_
