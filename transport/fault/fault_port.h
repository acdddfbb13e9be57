// FaultPort: a packet port that injures what another port receives: it drops packets singly and in
// bursts, duplicates, delays, clogs, reorders and corrupts them by seeded chance, and counts
// exactly what it did. Of what is sent it refuses some, as a kernel does that gives an error.
//
// Threads: as the port inside. One seed gives one sequence of decisions over the packets in the
// order of their arrival, each kind of fault from a stream of its own. A plan without faults passes
// everything through.
#ifndef OPTIREDUCE_TRANSPORT_FAULT_FAULT_PORT_H_
#define OPTIREDUCE_TRANSPORT_FAULT_FAULT_PORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/random.h"
#include "optireduce/time.h"
#include "transport/packet_io.h"

namespace optireduce {

// Chances are per packet, 0 … 1. A packet that is not lost may be duplicated; of the one or two
// that then are, each may be corrupted, and delayed or else reordered.
struct FaultPlan {
  double loss = 0;
  double burst = 0;            // that a burst of loss begins
  double burst_packets = 20;   // that it takes, on average
  double duplicate = 0;
  double reorder = 0;  // held back until 1 … 8 later packets have come, at most 2 ms
  double corrupt = 0;  // one bit is flipped
  Duration delay{};    // every packet is held for 0 … delay, equally likely
  Duration clog{};     // so long, once in every clog_every, packets queue, and then come at once
  Duration clog_every{};
  double send_refused = 0;  // per super-packet
  std::uint64_t seed = 0;
  std::uint64_t node = 0;  // the rank: each draws faults of its own

  bool active() const {
    return loss > 0 || burst > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 ||
           delay.count() > 0 || clog.count() > 0 || send_refused > 0;
  }
};

class FaultPort : public PacketPort {
 public:
  FaultPort(std::unique_ptr<PacketPort> inner, const FaultPlan& plan);

  const PortLimits& limits() const override { return inner_->limits(); }
  // The inner port's, with the faults added: packets that it received + duplicated =
  // given out by Receive() + dropped + held().
  PortCounters counters() const override;
  bool Send(std::uint32_t peer, std::span<const TxSegment> segments) override;
  bool Flush(Instant now) override;
  std::span<const RxPacket> Receive(Instant now) override;
  // Ends in time for the next packet that is held, counted from the last `now` seen.
  void Wait(Duration at_most) override;
  void Wake() override { inner_->Wake(); }

  // Packets held back at present.
  std::size_t held() const { return delayed_.size() + reordered_.size(); }

 private:
  // A packet held back: it is due at an instant, or once so many have arrived.
  struct Held {
    Instant due;
    std::uint64_t due_arrivals = 0;  // reordered only
    std::uint64_t order = 0;         // of equal instants the first held is the first out
    std::size_t slot = 0;
    std::size_t bytes = 0;
  };
  static bool Later(const Held& a, const Held& b) {
    return a.due != b.due ? a.due > b.due : a.order > b.order;
  }

  void Arrive(std::span<const std::byte> packet, Instant now);
  void Pass(std::span<const std::byte> packet, Instant now);
  // When the clog that is on now ends; the epoch: none is on.
  Instant ClogEnd(Instant now) const;
  void Hold(const Held& held, std::span<const std::byte> packet, std::size_t slot, bool delayed);
  std::span<const std::byte> Corrupt(std::span<const std::byte> packet, std::size_t* slot);
  void ReleaseDelayed(Instant now);
  void ReleaseReordered(Instant now);
  void GiveOut(const Held& held);

  std::size_t TakeSlot();
  std::span<std::byte> Slot(std::size_t slot) {
    return {memory_.get() + slot * slot_bytes_, slot_bytes_};
  }

  const std::unique_ptr<PacketPort> inner_;
  const FaultPlan plan_;
  Stream loss_;
  Stream way_;
  Stream send_refused_;
  bool way_bad_ = false;  // in a burst of loss
  Stream duplicate_;
  Stream reorder_;
  Stream corrupt_;
  Stream delay_;

  std::size_t slot_bytes_ = 0;
  std::unique_ptr<std::byte[]> memory_;  // the copies of packets that are held or corrupted
  std::vector<std::size_t> free_slots_;
  std::vector<std::size_t> lent_slots_;  // in the burst that is given out; free at the next
  std::vector<Held> delayed_;            // a heap, the next due in front
  std::vector<Held> reordered_;          // few; in order of arrival
  std::vector<RxPacket> burst_;

  Instant now_seen_{};
  std::uint64_t arrivals_ = 0;
  std::uint64_t holds_ = 0;
  PortCounters faults_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_FAULT_FAULT_PORT_H_
