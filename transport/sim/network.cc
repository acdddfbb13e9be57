#include "transport/sim/network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/check.h"

namespace optireduce::sim {
namespace {

constexpr Duration kBusyMax{200'000};

bool IsProbability(double p) { return p >= 0 && p <= 1; }

void CheckConditions(const PairConditions& conditions) {
  OR_CHECK(IsProbability(conditions.send_busy) && conditions.send_busy < 1);
  OR_CHECK(IsProbability(conditions.send_refused));
  OR_CHECK(IsProbability(conditions.burst_begin) && IsProbability(conditions.burst_loss));
  OR_CHECK(IsProbability(conditions.burst_end) && conditions.burst_end > 0);
  OR_CHECK(IsProbability(conditions.loss));
  OR_CHECK(IsProbability(conditions.duplicate));
  OR_CHECK(IsProbability(conditions.corrupt) && IsProbability(conditions.corrupt_caught));
  OR_CHECK(IsProbability(conditions.reorder));
  OR_CHECK(conditions.reorder == 0 || conditions.reorder_delay_max > Duration{0});
  OR_CHECK(conditions.extra_delay >= Duration{0});
}

void CheckLink(const LinkConfig& link) {
  OR_CHECK(link.propagation >= Duration{0} && link.jitter >= Duration{0});
}

PairConditions Healed(const PairConditions& conditions) {
  PairConditions healed;
  healed.extra_delay = conditions.extra_delay;
  return healed;
}

// 0 … most, uniform. Draws even when there is nothing to choose, like Stream::Chance().
Duration UpTo(Stream& stream, Duration most) {
  return Duration{
      static_cast<std::int64_t>(stream.Below(static_cast<std::uint64_t>(most.count()) + 1))};
}

}  // namespace

std::uint64_t PairCounters::dropped_total() const {
  return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0});
}

PairCounters& PairCounters::operator+=(const PairCounters& other) {
  sent += other.sent;
  delivered += other.delivered;
  for (std::size_t i = 0; i < kDropReasons; ++i) dropped[i] += other.dropped[i];
  duplicated += other.duplicated;
  corrupted += other.corrupted;
  delayed += other.delayed;
  clogged += other.clogged;
  busy += other.busy;
  return *this;
}

Network::Streams::Streams(std::uint64_t seed, NodeId node)
    : send_busy(seed, node, "send busy"),
      send_refused(seed, node, "send refused"),
      burst(seed, node, "burst loss"),
      loss(seed, node, "loss"),
      duplicate(seed, node, "duplicate"),
      corrupt(seed, node, "corrupt"),
      corrupt_caught(seed, node, "corrupt caught"),
      reorder(seed, node, "reorder"),
      uplink_jitter(seed, node, "uplink jitter"),
      downlink_jitter(seed, node, "downlink jitter") {}

Network::Node::Node(const NetworkConfig& network, NodeId id)
    : config(network.node),
      uplink(network.node.uplink),
      downlink(network.node.downlink),
      streams(network.seed, id) {}

Network::Network(World* world, const NetworkConfig& config)
    : world_(world),
      config_(config),
      pairs_(std::size_t{config.nodes} * config.nodes),
      conditions_(config.conditions),
      pool_(config.packet_bytes_max) {
  OR_CHECK(world != nullptr && config.nodes >= 1 && config.segments_max >= 1);
  OR_CHECK(config.packet_bytes_max >= 1 && config.packet_bytes_max <= 65'507);
  CheckConditions(conditions_);
  CheckLink(config.node.uplink);
  CheckLink(config.node.downlink);
  nodes_.reserve(config.nodes);
  for (NodeId node = 0; node < config.nodes; ++node) nodes_.emplace_back(config, node);
}

Network::~Network() { world_->CancelAll(this); }

void Network::SetUplink(NodeId node, const LinkConfig& link) {
  CheckLink(link);
  nodes_.at(node).config.uplink = link;
  nodes_[node].uplink.set_config(link);
}

void Network::SetDownlink(NodeId node, const LinkConfig& link) {
  CheckLink(link);
  nodes_.at(node).config.downlink = link;
  nodes_[node].downlink.set_config(link);
}

void Network::SetUplinkFull(NodeId node, UplinkFull what) {
  nodes_.at(node).config.uplink_full = what;
}

void Network::SetReceiveQueue(NodeId node, std::uint64_t bytes_max) {
  nodes_.at(node).config.receive_queue_bytes_max = bytes_max;
}

void Network::SetConditions(const PairConditions& conditions) {
  CheckConditions(conditions);
  conditions_ = conditions;
  overrides_.clear();
  for (Pair& pair : pairs_) {
    pair.override_index = kNoOverride;
    pair.bad = false;
  }
}

void Network::SetConditions(NodePair pair, const PairConditions& conditions) {
  CheckConditions(conditions);
  Pair& state = pairs_[PairIndex(pair)];
  if (state.override_index == kNoOverride) {
    state.override_index = static_cast<std::uint32_t>(overrides_.size());
    overrides_.emplace_back();
  }
  overrides_[state.override_index] = conditions;
  state.bad = false;
}

const PairConditions& Network::conditions(NodePair pair) const {
  const std::uint32_t index = pairs_[PairIndex(pair)].override_index;
  return index == kNoOverride ? conditions_ : overrides_[index];
}

void Network::Partition(std::span<const NodePair> pairs, Instant begin, Instant end) {
  AddBlock(&partitions_, pairs, begin, end);
}

void Network::Clog(std::span<const NodePair> pairs, Instant begin, Instant end) {
  OR_CHECK(end != kNever);
  AddBlock(&clogs_, pairs, begin, end);
}

void Network::AddBlock(Blocks* blocks, std::span<const NodePair> pairs, Instant begin,
                       Instant end) const {
  std::erase_if(*blocks, [this](const Block& block) { return block.end <= world_->now(); });
  Block block{begin, end, std::vector<bool>(pairs_.size())};
  for (const NodePair pair : pairs) block.pairs[PairIndex(pair)] = true;
  blocks->push_back(std::move(block));
}

std::vector<NodePair> Network::PairsBetween(std::span<const NodeId> from,
                                            std::span<const NodeId> to) {
  std::vector<NodePair> pairs;
  for (const NodeId a : from) {
    for (const NodeId b : to) {
      if (a != b) pairs.push_back(NodePair{a, b});
    }
  }
  return pairs;
}

void Network::Narrow(NodePair pair, std::size_t packet_bytes_max) {
  pairs_[PairIndex(pair)].carries_bytes = packet_bytes_max;
}

void Network::Heal() {
  conditions_ = Healed(conditions_);
  for (PairConditions& conditions : overrides_) conditions = Healed(conditions);
  for (Pair& pair : pairs_) pair.bad = false;
  partitions_.clear();
  clogs_.clear();
  TraceNode(TraceKind::kHeal, 0);
}

void Network::SetWake(NodeId node, std::function<void()> wake) {
  nodes_.at(node).wake = std::move(wake);
}

void Network::Pause(NodeId node) {
  if (nodes_.at(node).paused) return;
  nodes_[node].paused = true;
  TraceNode(TraceKind::kPause, node);
}

void Network::Resume(NodeId node) {
  if (!nodes_.at(node).paused) return;
  nodes_[node].paused = false;
  TraceNode(TraceKind::kResume, node);
  Wake(node);
}

void Network::TakeDown(NodeId node) {
  if (nodes_.at(node).down) return;
  nodes_[node].down = true;
  nodes_[node].paused = false;
  TraceNode(TraceKind::kDown, node);
  for (PacketIndex index = PopReceived(node); index != kNoPacket; index = PopReceived(node)) {
    pool_.Release(index);
  }
}

void Network::BringUp(NodeId node) {
  if (!nodes_.at(node).down) return;
  nodes_[node].down = false;
  TraceNode(TraceKind::kUp, node);
}

PairCounters Network::totals() const {
  PairCounters totals;
  for (const Pair& pair : pairs_) totals += pair.counters;
  return totals;
}

std::uint64_t Network::CountInFlight(NodePair pair) const {
  std::uint64_t count = 0;
  for (const Packet& packet : pool_.packets()) {
    count += packet.place == Packet::Place::kOnTheWay && packet.from == pair.from &&
             packet.to == pair.to;
  }
  return count;
}

std::uint64_t Network::CountInFlight() const {
  std::uint64_t count = 0;
  for (const Packet& packet : pool_.packets()) count += packet.place == Packet::Place::kOnTheWay;
  return count;
}

std::string Network::CheckConservation() const {
  std::vector<std::uint64_t> in_flight(pairs_.size());
  for (const Packet& packet : pool_.packets()) {
    if (packet.place == Packet::Place::kOnTheWay) {
      ++in_flight[PairIndex(NodePair{packet.from, packet.to})];
    }
  }
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const PairCounters& c = pairs_[i].counters;
    if (c.sent + c.duplicated == c.delivered + c.dropped_total() + in_flight[i]) continue;
    return "packets of " + std::to_string(i / nodes()) + ">" + std::to_string(i % nodes()) +
           ": sent " + std::to_string(c.sent) + " + duplicated " + std::to_string(c.duplicated) +
           " are not delivered " + std::to_string(c.delivered) + " + dropped " +
           std::to_string(c.dropped_total()) + " + in flight " + std::to_string(in_flight[i]);
  }
  return {};
}

std::size_t Network::PairIndex(NodePair pair) const {
  OR_CHECK(pair.from < config_.nodes && pair.to < config_.nodes);
  return std::size_t{pair.from} * config_.nodes + pair.to;
}

bool Network::UplinkTakes(NodePair pair, std::uint64_t wire_bytes) {
  Node& n = nodes_[pair.from];
  const Instant now = world_->now();
  const bool busy = n.streams.send_busy.Chance(conditions(pair).send_busy);
  if (!busy && (n.config.uplink_full == UplinkFull::kDrop || n.uplink.Fits(now, wire_bytes))) {
    return true;
  }
  if (busy) ++pairs_[PairIndex(pair)].counters.busy;
  if (!n.room_wanted) {
    n.room_wanted = true;
    const Instant room_at = busy ? now + Duration{1} + UpTo(n.streams.send_busy, kBusyMax)
                                 : n.uplink.RoomAt(now, wire_bytes);
    world_->ScheduleEvent(room_at, this, kRoomOnUplink, pair.from);
  }
  return false;
}

bool Network::Transmit(NodePair pair, std::span<const std::byte> header,
                       std::span<const std::byte> payload) {
  const PacketIndex index = pool_.Take();
  const std::span<std::byte> storage = pool_.Storage(index);
  std::copy(header.begin(), header.end(), storage.begin());
  std::copy(payload.begin(), payload.end(),
            storage.begin() + static_cast<std::ptrdiff_t>(header.size()));
  Packet& packet = pool_[index];
  packet.from = pair.from;
  packet.to = pair.to;
  packet.number = ++packets_made_;
  packet.bytes = static_cast<std::uint32_t>(header.size() + payload.size());
  packet.content_hash = ContentHash(pool_.Bytes(index));
  ++pairs_[PairIndex(pair)].counters.sent;
  Trace(TraceKind::kSend, index);

  Node& node = nodes_[pair.from];
  const Instant now = world_->now();
  if (node.streams.send_refused.Chance(conditions(pair).send_refused)) {
    Drop(index, DropReason::kSendRefused);
    return false;
  }
  const std::uint64_t wire_bytes = WireBytes(packet.bytes);
  if (node.config.uplink_full == UplinkFull::kDrop && !node.uplink.Fits(now, wire_bytes)) {
    Drop(index, DropReason::kUplinkQueue);
    return false;
  }
  const Instant departure = node.uplink.Transmit(now, wire_bytes);
  const Duration jitter = UpTo(node.streams.uplink_jitter, node.uplink.config().jitter);
  world_->ScheduleEvent(node.uplink.Arrival(departure, jitter), this, kAtSwitch, index);
  return true;
}

PacketIndex Network::PopReceived(NodeId node) {
  Node& n = nodes_[node];
  const PacketIndex index = n.receive_first;
  if (index == kNoPacket) return kNoPacket;
  n.receive_first = pool_[index].next;
  if (n.receive_first == kNoPacket) n.receive_last = kNoPacket;
  n.receive_bytes -= TruesizeBytes(pool_[index].bytes);
  return index;
}

void Network::Wake(NodeId node) {
  const Node& n = nodes_[node];
  if (n.paused || n.down || n.wake == nullptr) return;
  // A copy, because the callback may set another one.
  const std::function<void()> wake = n.wake;
  wake();
}

void Network::OnEvent(std::uint32_t what, std::uint64_t argument) {
  switch (what) {
    case kAtSwitch:
      AtSwitch(static_cast<PacketIndex>(argument));
      return;
    case kAtNode:
      AtNode(static_cast<PacketIndex>(argument));
      return;
    default: {
      const auto node = static_cast<NodeId>(argument);
      nodes_[node].room_wanted = false;
      Wake(node);
      return;
    }
  }
}

void Network::AtSwitch(PacketIndex index) {
  const NodePair pair = PairOf(index);
  DropReason reason = DropReason::kLoss;
  if (pool_[index].bytes > pairs_[PairIndex(pair)].carries_bytes) {
    Drop(index, DropReason::kTooLarge);
    return;
  }
  if (LostAtSwitch(pair, &reason)) {
    Drop(index, reason);
    return;
  }
  const bool twice = nodes_[pair.from].streams.duplicate.Chance(conditions(pair).duplicate);
  const PacketIndex copy = twice ? Duplicate(index) : kNoPacket;
  Forward(index);
  if (copy != kNoPacket) Forward(copy);
}

bool Network::LostAtSwitch(NodePair pair, DropReason* reason) {
  const PairConditions& conditions = this->conditions(pair);
  Streams& streams = nodes_[pair.from].streams;
  Pair& state = pairs_[PairIndex(pair)];
  if (BlockedUntil(partitions_, pair) != Instant{}) {
    *reason = DropReason::kPartition;
    return true;
  }
  const double turns = state.bad ? conditions.burst_end : conditions.burst_begin;
  if (streams.burst.Chance(turns)) state.bad = !state.bad;
  if (state.bad && streams.burst.Chance(conditions.burst_loss)) {
    *reason = DropReason::kBurstLoss;
    return true;
  }
  *reason = DropReason::kLoss;
  return streams.loss.Chance(conditions.loss);
}

void Network::Forward(PacketIndex index) {
  const NodePair pair = PairOf(index);
  const PairConditions& conditions = this->conditions(pair);
  Streams& streams = nodes_[pair.from].streams;
  if (streams.corrupt.Chance(conditions.corrupt)) Corrupt(index);
  pool_[index].damaged = streams.corrupt_caught.Chance(conditions.corrupt_caught);

  Node& to = nodes_[pair.to];
  const Instant now = world_->now();
  const std::uint64_t wire_bytes = WireBytes(pool_[index].bytes);
  if (!to.downlink.Fits(now, wire_bytes)) {
    Drop(index, DropReason::kPortQueue);
    return;
  }
  const Instant departure = to.downlink.Transmit(now, wire_bytes);
  const Duration jitter = UpTo(to.streams.downlink_jitter, to.downlink.config().jitter);
  // An extra delay that was lowered must not let packets overtake; only `reorder` may.
  Pair& state = pairs_[PairIndex(pair)];
  state.last_arrival =
      std::max(state.last_arrival, to.downlink.Arrival(departure, jitter) + conditions.extra_delay);
  const Instant clogged_until = BlockedUntil(clogs_, pair);
  if (clogged_until != Instant{}) ++state.counters.clogged;
  state.last_arrival = std::max(state.last_arrival, clogged_until);
  Instant arrival = state.last_arrival;
  if (streams.reorder.Chance(conditions.reorder)) {
    arrival += Duration{1} + UpTo(streams.reorder, conditions.reorder_delay_max - Duration{1});
    ++state.counters.delayed;
    Trace(TraceKind::kDelay, index);
  }
  world_->ScheduleEvent(arrival, this, kAtNode, index);
}

void Network::Corrupt(PacketIndex index) {
  const NodePair pair = PairOf(index);
  const std::uint64_t bit = nodes_[pair.from].streams.corrupt.Below(pool_[index].bytes * 8ull);
  pool_.Storage(index)[static_cast<std::size_t>(bit / 8)] ^= std::byte{1} << (bit % 8);
  pool_[index].content_hash = ContentHash(pool_.Bytes(index));
  ++pairs_[PairIndex(pair)].counters.corrupted;
  Trace(TraceKind::kCorrupt, index);
}

PacketIndex Network::Duplicate(PacketIndex index) {
  const PacketIndex copy = pool_.Take();
  pool_[copy] = pool_[index];
  pool_[copy].number = ++packets_made_;
  const std::span<const std::byte> bytes = pool_.Bytes(index);
  std::copy(bytes.begin(), bytes.end(), pool_.Storage(copy).begin());
  ++pairs_[PairIndex(PairOf(copy))].counters.duplicated;
  Trace(TraceKind::kDuplicate, copy, DropReason::kLoss, pool_[index].number);
  return copy;
}

void Network::AtNode(PacketIndex index) {
  const NodePair pair = PairOf(index);
  Node& node = nodes_[pair.to];
  if (node.down) {
    Drop(index, DropReason::kNodeDown);
    return;
  }
  if (pool_[index].damaged) {
    Drop(index, DropReason::kChecksum);
    return;
  }
  const std::uint64_t truesize = TruesizeBytes(pool_[index].bytes);
  if (node.receive_bytes + truesize > node.config.receive_queue_bytes_max) {
    ++node.receive_drops;
    Drop(index, DropReason::kReceiveQueue);
    return;
  }
  node.receive_bytes += truesize;
  pool_[index].place = Packet::Place::kReceived;
  ++pairs_[PairIndex(pair)].counters.delivered;
  Trace(TraceKind::kDeliver, index);
  const bool was_empty = node.receive_first == kNoPacket;
  if (was_empty) {
    node.receive_first = index;
  } else {
    pool_[node.receive_last].next = index;
  }
  node.receive_last = index;
  if (was_empty) Wake(pair.to);
}

void Network::Drop(PacketIndex index, DropReason reason) {
  ++pairs_[PairIndex(PairOf(index))].counters.dropped[static_cast<std::size_t>(reason)];
  Trace(TraceKind::kDrop, index, reason);
  pool_.Release(index);
}

Instant Network::BlockedUntil(const Blocks& blocks, NodePair pair) const {
  const Instant now = world_->now();
  Instant until{};
  for (const Block& block : blocks) {
    if (block.begin <= now && now < block.end && block.pairs[PairIndex(pair)]) {
      until = std::max(until, block.end);
    }
  }
  return until;
}

void Network::Trace(TraceKind kind, PacketIndex index, DropReason reason, std::uint64_t copy_of) {
  const Packet& packet = pool_[index];
  TraceRecord record;
  record.at = world_->now();
  record.kind = kind;
  record.reason = reason;
  record.from = packet.from;
  record.to = packet.to;
  record.packet = packet.number;
  record.copy_of = copy_of;
  record.content_hash = packet.content_hash;
  record.bytes = pool_.Bytes(index);
  Emit(record);
}

void Network::TraceNode(TraceKind kind, NodeId node) {
  TraceRecord record;
  record.at = world_->now();
  record.kind = kind;
  record.from = node;
  record.to = node;
  Emit(record);
}

void Network::Emit(const TraceRecord& record) {
  trace_hash_.Add(record);
  if (sink_) sink_(record);
}

}  // namespace optireduce::sim
