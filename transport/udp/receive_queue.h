// ReceiveQueue: takes bursts of packets out of one UDP socket, cuts what receive offload has merged
// back into packets, and drops what does not come from a peer.
//
// Used by the thread that turns the engine. It reads no packet's content and never sleeps.
#ifndef OPTIREDUCE_TRANSPORT_UDP_RECEIVE_QUEUE_H_
#define OPTIREDUCE_TRANSPORT_UDP_RECEIVE_QUEUE_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "transport/packet_io.h"
#include "transport/udp/endpoint.h"

namespace optireduce {

class ReceiveQueue {
 public:
  struct Counters {
    std::uint64_t packets = 0;  // from peers
    std::uint64_t bytes = 0;
    std::uint64_t calls = 0;
    std::uint64_t foreign = 0;
  };
  using Peers = std::unordered_set<Endpoint, EndpointHash>;

  // `fd` stays the caller's and must outlive the queue.
  ReceiveQueue(int fd, std::size_t packet_bytes_max, bool gro);

  void SetPeers(Peers peers) { peers_ = std::move(peers); }
  // As PacketPort::Receive().
  std::span<const RxPacket> Receive();

  const Counters& counters() const { return counters_; }
  // Datagrams that the kernel dropped since the queue was made. It counts a merged super-packet as
  // one. A system call.
  std::uint64_t Drops() const;

 private:
  static constexpr std::size_t kDatagramsMax = 32;
  // Merged datagrams are large: few at a time, so that they are still in the cache when read.
  static constexpr std::size_t kMergedDatagramsMax = 4;

  struct Control {
    alignas(cmsghdr) std::array<std::byte, 128> bytes;
  };

  std::size_t Fetch();
  void Cut(const mmsghdr& message, std::span<const std::byte> datagram);
  std::size_t ReadControl(const msghdr& header);
  void NoteDrops(std::uint32_t kernel_count) const;

  const int fd_;
  const std::size_t datagram_bytes_max_;
  const bool gro_;
  Peers peers_;

  std::unique_ptr<std::byte[]> memory_;  // kDatagramsMax pieces of datagram_bytes_max_
  std::array<Endpoint, kDatagramsMax> sources_;
  std::array<Control, kDatagramsMax> controls_;
  std::array<iovec, kDatagramsMax> parts_{};
  std::array<mmsghdr, kDatagramsMax> messages_{};
  std::size_t fetch_ = kMergedDatagramsMax;  // datagrams asked for by the next call
  std::vector<RxPacket> burst_;

  Counters counters_;
  // The kernel's count has 32 bits and comes with packets or on request.
  mutable std::uint32_t kernel_drops_ = 0;
  mutable std::uint64_t drops_ = 0;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_UDP_RECEIVE_QUEUE_H_
