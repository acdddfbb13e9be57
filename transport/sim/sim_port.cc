#include "transport/sim/sim_port.h"

#include "lib/check.h"

namespace optireduce::sim {

SimPort::SimPort(Network* network, NodeId node)
    : network_(network),
      node_(node),
      receive_drops_before_(network->receive_queue_drops(node)),
      queue_(kQueuedMax) {
  const NetworkConfig& config = network->config();
  limits_.packet_bytes_max = config.packet_bytes_max;
  limits_.segments_max = config.segments_max;
  const std::uint64_t packets =
      network->node_config(node).receive_queue_bytes_max / TruesizeBytes(config.packet_bytes_max);
  limits_.receive_bytes_held = static_cast<std::size_t>(packets) * config.packet_bytes_max;
  burst_.reserve(kBurstPackets);
  burst_packets_.reserve(kBurstPackets);
}

SimPort::~SimPort() { ReleaseBurst(); }

PortCounters SimPort::counters() const {
  PortCounters counters = counters_;
  counters.receive_queue_drops = network_->receive_queue_drops(node_) - receive_drops_before_;
  return counters;
}

bool SimPort::Send(std::uint32_t peer, std::span<const TxSegment> segments) {
  OR_CHECK(peer < network_->nodes() && peer != node_);
  OR_CHECK(!segments.empty() && segments.size() <= limits_.segments_max);
  const std::size_t segment_bytes = segments.front().bytes();
  OR_CHECK(segment_bytes > 0 && segment_bytes <= limits_.packet_bytes_max);
  if (queue_size_ == kQueuedMax) return false;

  Queued& queued = queue_[(queue_first_ + queue_size_) % kQueuedMax];
  queued.peer = peer;
  queued.wire_bytes = 0;
  queued.headers.clear();
  queued.segments.clear();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const TxSegment& segment = segments[i];
    const bool last = i + 1 == segments.size();
    OR_CHECK(last ? segment.bytes() > 0 && segment.bytes() <= segment_bytes
                  : segment.bytes() == segment_bytes);
    queued.headers.insert(queued.headers.end(), segment.header.begin(), segment.header.end());
    queued.segments.push_back({segment.header.size(), segment.payload});
    queued.wire_bytes += network_->WireBytes(segment.bytes());
  }
  ++queue_size_;
  return true;
}

bool SimPort::Flush(Instant /*now*/) {
  OR_CHECK(!network_->paused(node_) && !network_->down(node_));
  while (queue_size_ > 0) {
    const Queued& queued = queue_[queue_first_];
    if (!network_->UplinkTakes({node_, queued.peer}, queued.wire_bytes)) return false;
    Hand(queued);
    queue_first_ = (queue_first_ + 1) % kQueuedMax;
    --queue_size_;
  }
  return true;
}

void SimPort::Hand(const Queued& queued) {
  std::span<const std::byte> headers = queued.headers;
  for (const Queued::Segment& segment : queued.segments) {
    const std::span<const std::byte> header = headers.first(segment.header_bytes);
    headers = headers.subspan(segment.header_bytes);
    if (!network_->Transmit(NodePair{node_, queued.peer}, header, segment.payload)) {
      ++counters_.send_refused;
    }
    ++counters_.packets_sent;
    counters_.bytes_sent += segment.header_bytes + segment.payload.size();
  }
  ++counters_.send_calls;
}

std::span<const RxPacket> SimPort::Receive(Instant /*now*/) {
  OR_CHECK(!network_->paused(node_) && !network_->down(node_));
  ReleaseBurst();
  while (burst_.size() < kBurstPackets) {
    const PacketIndex index = network_->PopReceived(node_);
    if (index == kNoPacket) break;
    burst_.push_back(index);
    burst_packets_.push_back(RxPacket{network_->pool_.Bytes(index)});
    counters_.bytes_received += burst_packets_.back().bytes.size();
  }
  counters_.packets_received += burst_.size();
  ++counters_.receive_calls;
  return burst_packets_;
}

void SimPort::Wait(Duration /*at_most*/) {}

void SimPort::Wake() { network_->Wake(node_); }

void SimPort::ReleaseBurst() {
  for (const PacketIndex index : burst_) network_->pool_.Release(index);
  burst_.clear();
  burst_packets_.clear();
}

}  // namespace optireduce::sim
