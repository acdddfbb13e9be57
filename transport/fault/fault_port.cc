#include "transport/fault/fault_port.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "lib/check.h"

namespace optireduce {
namespace {

constexpr std::size_t kSlotsMax = 4096;
constexpr std::size_t kMemoryBytesMax = 32u << 20;
constexpr std::size_t kNoSlot = std::numeric_limits<std::size_t>::max();
constexpr std::uint64_t kReorderArrivalsMax = 8;
constexpr Duration kReorderDelayMax = std::chrono::milliseconds(2);
// Bursts asked of the inner port until one has something left of it.
constexpr int kBurstsMax = 16;

}  // namespace

FaultPort::FaultPort(std::unique_ptr<PacketPort> inner, const FaultPlan& plan)
    : inner_(std::move(inner)),
      plan_(plan),
      loss_(plan.seed, plan.node, "fault.loss"),
      way_(plan.seed, plan.node, "fault.burst"),
      send_refused_(plan.seed, plan.node, "fault.send_refused"),
      duplicate_(plan.seed, plan.node, "fault.duplicate"),
      reorder_(plan.seed, plan.node, "fault.reorder"),
      corrupt_(plan.seed, plan.node, "fault.corrupt"),
      delay_(plan.seed, plan.node, "fault.delay") {
  for (const double chance : {plan.loss, plan.burst, plan.duplicate, plan.reorder, plan.corrupt,
                              plan.send_refused}) {
    OR_CHECK(chance >= 0 && chance <= 1);
  }
  OR_CHECK(plan.burst_packets >= 1);
  OR_CHECK(plan.clog.count() == 0 || plan.clog < plan.clog_every);
  if (!plan.active()) return;
  slot_bytes_ = inner_->limits().packet_bytes_max;
  const std::size_t slots = std::min(kSlotsMax, kMemoryBytesMax / slot_bytes_);
  memory_ = std::make_unique_for_overwrite<std::byte[]>(slots * slot_bytes_);
  free_slots_.reserve(slots);
  for (std::size_t i = slots; i > 0; --i) free_slots_.push_back(i - 1);
  lent_slots_.reserve(slots);
  delayed_.reserve(slots);
  reordered_.reserve(slots);
  burst_.reserve(2 * slots);
}

PortCounters FaultPort::counters() const {
  PortCounters result = inner_->counters();
  result.fault_dropped = faults_.fault_dropped;
  result.fault_duplicated = faults_.fault_duplicated;
  result.fault_reordered = faults_.fault_reordered;
  result.fault_corrupted = faults_.fault_corrupted;
  result.fault_delayed = faults_.fault_delayed;
  result.send_refused += faults_.send_refused;
  return result;
}

bool FaultPort::Send(std::uint32_t peer, std::span<const TxSegment> segments) {
  if (send_refused_.Chance(plan_.send_refused)) {
    faults_.send_refused += segments.size();
    return true;
  }
  return inner_->Send(peer, segments);
}

bool FaultPort::Flush(Instant now) {
  now_seen_ = std::max(now_seen_, now);
  return inner_->Flush(now);
}

std::span<const RxPacket> FaultPort::Receive(Instant now) {
  now_seen_ = std::max(now_seen_, now);
  if (!plan_.active()) return inner_->Receive(now);
  burst_.clear();
  free_slots_.insert(free_slots_.end(), lent_slots_.begin(), lent_slots_.end());
  lent_slots_.clear();
  ReleaseDelayed(now);
  // A burst of which nothing is left must not look like an empty queue.
  for (int i = 0; i < kBurstsMax; ++i) {
    const std::span<const RxPacket> arrived = inner_->Receive(now);
    for (const RxPacket& packet : arrived) Arrive(packet.bytes, now);
    if (arrived.empty() || !burst_.empty()) break;
  }
  // What is held for later packets waits for those of this burst first.
  ReleaseReordered(now);
  return burst_;
}

void FaultPort::Wait(Duration at_most) {
  if (held() > 0) {
    Instant due = delayed_.empty() ? kNever : delayed_.front().due;
    for (const Held& held : reordered_) due = std::min(due, held.due);
    at_most = std::min(at_most, std::max(due - now_seen_, Duration(0)));
  }
  inner_->Wait(at_most);
}

void FaultPort::Arrive(std::span<const std::byte> packet, Instant now) {
  ++arrivals_;
  // After Gilbert and Elliott: the way is good or bad.
  if (way_.Chance(way_bad_ ? 1 / plan_.burst_packets : plan_.burst)) way_bad_ = !way_bad_;
  if (loss_.Chance(plan_.loss) || way_bad_) {
    ++faults_.fault_dropped;
  } else {
    Pass(packet, now);
    if (duplicate_.Chance(plan_.duplicate)) {
      ++faults_.fault_duplicated;
      Pass(packet, now);
    }
  }
  ReleaseReordered(now);
}

// One copy on its way: corrupted or not, then held or given out.
void FaultPort::Pass(std::span<const std::byte> packet, Instant now) {
  std::size_t slot = kNoSlot;
  if (corrupt_.Chance(plan_.corrupt) && !packet.empty()) packet = Corrupt(packet, &slot);
  const Instant clog_end = ClogEnd(now);
  const bool delayed = plan_.delay.count() > 0 || clog_end > now;
  const bool reordered = reorder_.Chance(plan_.reorder) && !delayed;
  if (delayed || reordered) {
    Held held;
    if (delayed) {
      const auto bound = static_cast<std::uint64_t>(plan_.delay.count());
      held.due = now + Duration(static_cast<std::int64_t>(delay_.Below(bound + 1)));
      held.due = std::max(held.due, clog_end);
    } else {
      held.due = now + kReorderDelayMax;
      held.due_arrivals = arrivals_ + 1 + reorder_.Below(kReorderArrivalsMax);
    }
    if (slot == kNoSlot) slot = packet.size() <= slot_bytes_ ? TakeSlot() : kNoSlot;
    if (slot != kNoSlot) return Hold(held, packet, slot, delayed);
    // No room: it goes at once.
  }
  if (slot != kNoSlot) lent_slots_.push_back(slot);
  burst_.push_back({packet});
}

Instant FaultPort::ClogEnd(Instant now) const {
  if (plan_.clog.count() == 0) return Instant{};
  const Duration into = (now - Instant{}) % plan_.clog_every;
  return into < plan_.clog ? now - into + plan_.clog : Instant{};
}

void FaultPort::Hold(const Held& held, std::span<const std::byte> packet, std::size_t slot,
                     bool delayed) {
  const std::span<std::byte> copy = Slot(slot);
  if (packet.data() != copy.data()) std::copy(packet.begin(), packet.end(), copy.begin());
  std::vector<Held>& list = delayed ? delayed_ : reordered_;
  list.push_back(held);
  list.back().order = holds_++;
  list.back().slot = slot;
  list.back().bytes = packet.size();
  if (delayed) {
    ++faults_.fault_delayed;
    std::push_heap(delayed_.begin(), delayed_.end(), Later);
  } else {
    ++faults_.fault_reordered;
  }
}

// A copy with one bit flipped, and its slot; the packet itself where there is no room for one.
std::span<const std::byte> FaultPort::Corrupt(std::span<const std::byte> packet,
                                              std::size_t* slot) {
  const std::uint64_t bit = corrupt_.Below(packet.size() * 8);
  *slot = packet.size() <= slot_bytes_ ? TakeSlot() : kNoSlot;
  if (*slot == kNoSlot) return packet;
  const std::span<std::byte> copy = Slot(*slot).first(packet.size());
  std::copy(packet.begin(), packet.end(), copy.begin());
  copy[bit / 8] ^= std::byte{1} << (bit % 8);
  ++faults_.fault_corrupted;
  return copy;
}

void FaultPort::ReleaseDelayed(Instant now) {
  while (!delayed_.empty() && delayed_.front().due <= now) {
    std::pop_heap(delayed_.begin(), delayed_.end(), Later);
    GiveOut(delayed_.back());
    delayed_.pop_back();
  }
}

void FaultPort::ReleaseReordered(Instant now) {
  if (reordered_.empty()) return;
  const auto due = [&](const Held& held) {
    return held.due_arrivals <= arrivals_ || held.due <= now;
  };
  for (const Held& held : reordered_) {
    if (due(held)) GiveOut(held);
  }
  std::erase_if(reordered_, due);
}

void FaultPort::GiveOut(const Held& held) {
  burst_.push_back({Slot(held.slot).first(held.bytes)});
  lent_slots_.push_back(held.slot);
}

std::size_t FaultPort::TakeSlot() {
  if (free_slots_.empty()) return kNoSlot;
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

}  // namespace optireduce
