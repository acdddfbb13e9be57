#include "transport/sim/packet_pool.h"

#include <cstring>

#include "lib/check.h"

namespace optireduce::sim {

PacketIndex PacketPool::Take() {
  PacketIndex index = kNoPacket;
  if (free_.empty()) {
    index = static_cast<PacketIndex>(packets_.size());
    if (index % kBlockPackets == 0) {
      blocks_.push_back(std::make_unique<std::byte[]>(kBlockPackets * packet_bytes_max_));
    }
    packets_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
    packets_[index] = Packet{};
  }
  packets_[index].place = Packet::Place::kOnTheWay;
  return index;
}

void PacketPool::Release(PacketIndex index) {
  Packet& packet = packets_[index];
  OR_CHECK(packet.place != Packet::Place::kFree);
  std::memset(At(index), 0xdd, packet.bytes);
  packet.place = Packet::Place::kFree;
  free_.push_back(index);
}

}  // namespace optireduce::sim
