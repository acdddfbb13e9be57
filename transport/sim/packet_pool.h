// Storage for the packets of a simulated network: records and bytes, taken and given back by index,
// grown when more packets exist than ever before, never shrunk.
//
// Threads: the world's.
// Does not: know where a packet is going. Network moves packets; this keeps them.
#ifndef OPTIREDUCE_TRANSPORT_SIM_PACKET_POOL_H_
#define OPTIREDUCE_TRANSPORT_SIM_PACKET_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/sim/conditions.h"

namespace optireduce::sim {

using PacketIndex = std::uint32_t;
inline constexpr PacketIndex kNoPacket = ~PacketIndex{0};

struct Packet {
  enum class Place : std::uint8_t {
    kFree,
    kOnTheWay,  // in flight, for packet conservation
    kReceived,  // in a receive queue or in a port's burst
  };
  NodeId from = 0;
  NodeId to = 0;
  std::uint64_t number = 0;  // counts the copies of the network from 1
  std::uint64_t content_hash = 0;
  std::uint32_t bytes = 0;
  PacketIndex next = kNoPacket;  // in its receive queue
  Place place = Place::kFree;
  bool damaged = false;  // and its checksum shows it
};

class PacketPool {
 public:
  explicit PacketPool(std::size_t packet_bytes_max) : packet_bytes_max_(packet_bytes_max) {}
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // A packet on its way with all fields at their defaults. Ends the validity of Packet references,
  // not of storage.
  PacketIndex Take();

  // Ends the packet and overwrites its bytes, so that whoever still reads them is found out.
  void Release(PacketIndex index);

  Packet& operator[](PacketIndex index) { return packets_[index]; }
  const Packet& operator[](PacketIndex index) const { return packets_[index]; }

  // All of the room for the packet's bytes.
  std::span<std::byte> Storage(PacketIndex index) { return {At(index), packet_bytes_max_}; }
  // The packet's bytes.
  std::span<const std::byte> Bytes(PacketIndex index) const {
    return {At(index), packets_[index].bytes};
  }

  // Every record that ever was, free ones included, for counting.
  std::span<const Packet> packets() const { return packets_; }

 private:
  static constexpr std::size_t kBlockPackets = 256;

  std::byte* At(PacketIndex index) const {
    return blocks_[index / kBlockPackets].get() + (index % kBlockPackets) * packet_bytes_max_;
  }

  const std::size_t packet_bytes_max_;
  std::vector<Packet> packets_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  // blocks never move, packets_ does
  std::vector<PacketIndex> free_;
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TRANSPORT_SIM_PACKET_POOL_H_
