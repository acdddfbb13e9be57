// What a simulated network is like: its links, its queues, and what goes wrong on it.
// Plain data; everything but the size of the network can be changed while it runs.
#ifndef OPTIREDUCE_TRANSPORT_SIM_CONDITIONS_H_
#define OPTIREDUCE_TRANSPORT_SIM_CONDITIONS_H_

#include <cstddef>
#include <cstdint>

#include "optireduce/time.h"

namespace optireduce::sim {

// A node of the network, 0 … nodes-1. The harness decides which rank lives on it.
using NodeId = std::uint32_t;

// An ordered pair of nodes: the way from one to the other, not back.
struct NodePair {
  NodeId from = 0;
  NodeId to = 0;
};

// One direction of a cable and the queue in front of it. "Wire bytes" are the packet plus
// NetworkConfig::wire_overhead_bytes.
struct LinkConfig {
  std::uint64_t rate_bits_per_s = 10'000'000'000;  // 0: packets take no time on the link
  std::uint64_t queue_bytes_max = 1 << 20;  // wire bytes waiting, the packet being sent included
  Duration propagation{2'000};
  Duration jitter{};  // up to this much more, uniform per packet; a link never reorders by it
};

// What a sender meets when its own uplink queue is full.
enum class UplinkFull : std::uint8_t {
  kBusy,  // like a socket's send queue: the port stays busy and is woken when there is room
  kDrop,  // like a qdisc on the way: the packet is gone, counted in PortCounters::send_refused
};

struct NodeConfig {
  LinkConfig uplink{};    // node → switch
  LinkConfig downlink{};  // switch port → node; its queue drops the tail
  UplinkFull uplink_full = UplinkFull::kBusy;
  // Kernel memory that the receive queue may hold: what getsockopt(SO_RCVBUF) reports. A packet
  // takes TruesizeBytes() of it, not its length.
  std::uint64_t receive_queue_bytes_max = 8 << 20;
};

// What the way of one ordered pair does to its packets, at the switch. Probabilities are per
// packet, 0 … 1. They are asked in the order of this list; a lost packet is asked nothing more.
// Ordered pairs have conditions of their own, so a link may be worse in one direction.
struct PairConditions {
  // At the sender's own kernel.
  double send_busy = 0;     // EAGAIN, ENOBUFS: nothing is taken for up to 200 µs; below 1
  double send_refused = 0;  // EPERM, ENETUNREACH …: lost, counted in PortCounters::send_refused

  // Bursts of loss, after Gilbert and Elliott: the way is good or bad.
  double burst_begin = 0;  // that a packet finds it bad after the one before found it good
  double burst_end = 1;    // the reverse, so that bursts take 1 / burst_end packets on average
  double burst_loss = 1;   // of the packets of a burst
  double loss = 0;         // independent
  double duplicate = 0;    // a second copy follows the first

  // Asked for each copy.
  double corrupt = 0;        // one bit flips, and the UDP checksum does not show it
  double corrupt_caught = 0;  // the receiver's kernel drops it for its checksum
  double reorder = 0;                   // the packet is held back, others overtake it
  Duration reorder_delay_max{50'000};   // for 1 ns … this long, uniform
  Duration extra_delay{};               // of every packet of this pair; no fault, Heal() keeps it
};

struct NetworkConfig {
  std::uint32_t nodes = 2;
  std::uint64_t seed = 1;
  std::size_t packet_bytes_max = 1472;
  std::size_t segments_max = 44;
  // Preamble 8, Ethernet 14 + 4, gap 12, IPv4 20, UDP 8.
  std::uint64_t wire_overhead_bytes = 66;
  NodeConfig node{};            // of all nodes, to begin with
  PairConditions conditions{};  // of all pairs, to begin with
};

// Kernel memory that a datagram of `packet_bytes` takes in a receive queue: the sk_buff, and a head
// that holds headers, packet and skb_shared_info, rounded up to what the allocator has. Agrees with
// Linux 6 as measured with single packets: 2304 for 1472 bytes, 832 for 64.
constexpr std::uint64_t TruesizeBytes(std::size_t packet_bytes) {
  constexpr std::uint64_t kSkBuffBytes = 256;
  constexpr std::uint64_t kHeadExtraBytes = 64 + 320;  // headers with headroom, skb_shared_info
  constexpr std::uint64_t kSmallHeadBytes = 576;       // the kernel's own cache for small heads
  const std::uint64_t need = packet_bytes + kHeadExtraBytes;
  std::uint64_t head = kSmallHeadBytes;
  if (need > kSmallHeadBytes) {
    head = 1024;
    while (head < need) head *= 2;
  }
  return kSkBuffBytes + head;
}

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TRANSPORT_SIM_CONDITIONS_H_
