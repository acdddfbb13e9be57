// One direction of a cable with its queue, computed instead of simulated: because a link is first
// in, first out, the instant at which a packet leaves is known when it enters, and no event is
// needed for it.
//
// Threads: the world's.
// Does not: know packets. It is asked about wire bytes and answers with instants.
#ifndef OPTIREDUCE_TRANSPORT_SIM_LINK_H_
#define OPTIREDUCE_TRANSPORT_SIM_LINK_H_

#include <cstdint>
#include <deque>

#include "transport/sim/conditions.h"

namespace optireduce::sim {

class Link {
 public:
  explicit Link(const LinkConfig& config) : config_(config) {}

  const LinkConfig& config() const { return config_; }
  // What is queued already keeps the instants it was given.
  void set_config(const LinkConfig& config);

  // Bytes not yet on their way, the one being sent included. `now` never goes back.
  std::uint64_t QueuedBytes(Instant now);

  // True when so many bytes fit into the queue. An empty queue takes anything, so that a limit
  // below one packet (or super-packet) slows a link down but does not close it.
  bool Fits(Instant now, std::uint64_t wire_bytes);

  // When so many bytes will fit, if nothing else enters before.
  Instant RoomAt(Instant now, std::uint64_t wire_bytes);

  // Puts a packet into the queue, whether it fits or not; the instant when its last bit has left.
  Instant Transmit(Instant now, std::uint64_t wire_bytes);

  // When a packet that left at `departure` arrives, with `jitter` of its own: never before one that
  // left earlier.
  Instant Arrival(Instant departure, Duration jitter);

 private:
  struct Departure {
    Instant at;
    std::uint64_t wire_bytes;
  };

  LinkConfig config_;
  std::deque<Departure> queue_;
  std::uint64_t queued_bytes_ = 0;
  // The link is busy until free_at_ plus fraction_ / rate nanoseconds; without the fraction, the
  // rounding of every packet would make fast links slower than they are.
  Instant free_at_{};
  std::uint64_t fraction_ = 0;
  Instant last_arrival_{};
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TRANSPORT_SIM_LINK_H_
