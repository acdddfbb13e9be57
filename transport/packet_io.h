// The packet-I/O seam: what a datagram port is. A port moves datagrams between this rank and its
// peers and knows no protocol. Kernel UDP, DPDK and the simulated network implement it; the fault
// interceptor wraps any of them.
//
// Threads: a port belongs to whoever turns its engine; only Wake() may be called from elsewhere.
#ifndef OPTIREDUCE_TRANSPORT_PACKET_IO_H_
#define OPTIREDUCE_TRANSPORT_PACKET_IO_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "optireduce/time.h"

namespace optireduce {

// One packet to send, in two parts. Send() copies `header` (which may hold a whole control
// message); `payload` may be empty and must stay valid and unchanged until Flush() has said that
// nothing is queued any more.
struct TxSegment {
  std::span<const std::byte> header;
  std::span<const std::byte> payload;
  std::size_t bytes() const { return header.size() + payload.size(); }
};

// One received packet. The bytes are the port's and stay valid until the next Receive().
struct RxPacket {
  std::span<const std::byte> bytes;
};

// What this port can do, fixed at its creation.
struct PortLimits {
  std::size_t packet_bytes_max = 0;    // largest datagram payload without IP fragmentation
  std::size_t segments_max = 1;        // packets of one super-packet (one Send call)
  std::size_t receive_bytes_held = 0;  // payload bytes, in full packets, that its receive queue
                                       // really holds (kernel accounting taken into account)
};

// Running totals. "packets" are datagrams as the protocol sees them (segments).
struct PortCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t send_calls = 0;
  std::uint64_t receive_calls = 0;
  std::uint64_t waits = 0;                // times Wait() slept in the kernel
  std::uint64_t send_refused = 0;         // packets that the kernel refused (counted as lost)
  // Datagrams dropped by this port's own receive queue. A super-packet that came merged counts as
  // one: how many packets were in it is not known.
  std::uint64_t receive_queue_drops = 0;
  std::uint64_t foreign_packets = 0;  // from an address that is no peer's
  // Injected by transport/fault, in packets.
  std::uint64_t fault_dropped = 0;
  std::uint64_t fault_duplicated = 0;
  std::uint64_t fault_reordered = 0;
  std::uint64_t fault_corrupted = 0;
  std::uint64_t fault_delayed = 0;
};

class PacketPort {
 public:
  virtual ~PacketPort() = default;

  virtual const PortLimits& limits() const = 0;
  virtual PortCounters counters() const = 0;

  // Queues one super-packet for `peer` (a rank of the group): 1 … segments_max packets, all of the
  // size of the first but the last, which may be shorter. False: the queue is full, nothing was
  // taken; call Flush() and try later. A packet that the network refuses is lost, not an error.
  virtual bool Send(std::uint32_t peer, std::span<const TxSegment> segments) = 0;

  // Hands everything queued to the network. False: the network is busy and some of it is still
  // queued (and still points into payloads).
  virtual bool Flush(Instant now) = 0;

  // The next burst of packets; empty when none waits. Invalidates the previous burst.
  virtual std::span<const RxPacket> Receive(Instant now) = 0;

  // Sleeps until a packet can be received, a busy network can send again, Wake() is called, or
  // `at_most` is over. May return early for no reason.
  virtual void Wait(Duration at_most) = 0;

  // Ends the current Wait(), or the next one when none is on. Any thread, async-signal-safe.
  virtual void Wake() = 0;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_PACKET_IO_H_
