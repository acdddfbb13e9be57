// UdpPort: a packet port over kernel UDP, without privileges: one unconnected socket, batched
// system calls, UDP segmentation and receive offload where the kernel has them.
//
// Made in two steps, since ranks tell each other their addresses in between: Bind(), SetPeers().
// Threads: one at a time; Wake() from any. It starts no thread, reads no clock and never spins; a
// port in a forked child shares the parent's socket and must not be used by both.
#ifndef OPTIREDUCE_TRANSPORT_UDP_UDP_PORT_H_
#define OPTIREDUCE_TRANSPORT_UDP_UDP_PORT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/ids.h"
#include "optireduce/status.h"
#include "transport/packet_io.h"
#include "transport/udp/endpoint.h"
#include "transport/udp/receive_queue.h"
#include "transport/udp/send_queue.h"
#include "transport/udp/udp_socket.h"

namespace optireduce {

class UdpPort : public PacketPort {
 public:
  static Result<std::unique_ptr<UdpPort>> Bind(const UdpPortOptions& options);

  // Where this port is bound, with the port that the kernel chose.
  const Endpoint& local_endpoint() const { return socket_.local; }

  // Who the ranks are; entry `self` is not used. Again only while nothing is queued. A link-local
  // address means the link that this port is bound to, whatever scope it came with.
  Status SetPeers(std::span<const Endpoint> by_rank, Rank self);

  // Packet sizes to ask the paths for, falling; the first is the limit until another one is set.
  std::vector<std::uint32_t> probe_bytes() const;
  // Sends packets of at most this size, no more than the first of probe_bytes(). Only while nothing
  // is queued.
  void SetPacketBytes(std::size_t packet_bytes_max);
  // The size of such a packet with its IP and UDP headers.
  std::size_t IpBytes(std::size_t packet_bytes) const;

  const PortLimits& limits() const override { return limits_; }
  // Asks the kernel for the drops of the receive queue. It counts a merged super-packet as one.
  PortCounters counters() const override;
  bool Send(std::uint32_t peer, std::span<const TxSegment> segments) override;
  bool Flush(Instant now) override;
  std::span<const RxPacket> Receive(Instant now) override;
  void Wait(Duration at_most) override;
  void Wake() override;

  bool gso() const { return send_.gso(); }
  bool gro() const { return socket_.gro; }
  // What was clipped, refused or given up, each once, and what to do about it. May grow.
  std::vector<std::string> notices() const;
  // "udp 127.0.0.1:4711 path MTU 1500 gso=on gro=on receive queue 3.9 MB"
  std::string Describe() const;
  // For diagnosis and tests; it stays the port's.
  int socket_fd() const { return socket_.fd.get(); }

 private:
  UdpPort(UdpSocket socket, FileDescriptor wake);
  static PortLimits LimitsOf(const UdpSocket& socket, std::size_t packet_bytes_max);

  const UdpSocket socket_;
  const FileDescriptor wake_;
  PortLimits limits_;
  SendQueue send_;
  ReceiveQueue receive_;
  std::vector<Endpoint> peers_;  // by rank
  Rank self_ = kNoRank;
  std::uint64_t waits_ = 0;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_UDP_UDP_PORT_H_
