// What a finished run left behind for the checkers. Plain data, so that a test can bend any of it
// and see the checker object.
#ifndef OPTIREDUCE_EXAMPLES_SIM_EVIDENCE_H_
#define OPTIREDUCE_EXAMPLES_SIM_EVIDENCE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "examples/sim/scenario.h"
#include "lib/counters.h"
#include "optireduce/communicator.h"
#include "transport/packet_io.h"

namespace optireduce::sim {

// One call at one rank.
struct CallEvidence {
  bool ended = false;
  bool never = false;  // the rank does not make it
  Report report;
  Instant called_at = kNever;    // by the caller
  Instant admitted_at = kNever;  // its last op's first OPEN went out; kNever: none was seen
  Instant ended_at = kNever;
  Instant resumed_at{};          // the rank's last return from a pause before the end
  Instant opened_at{};           // the last OPEN that could move its deadline came in
  Instant held_at{};             // the last "held" that an owner told it
  std::vector<std::byte> result;  // as it was when the call ended
  // The caller overwrote its memory the instant the call ended: nothing came after that.
  bool untouched_after_end = true;
  bool guards_intact = true;
};

// One call at all ranks.
struct CallsEvidence {
  CallPlan plan;
  std::shared_ptr<const CallValues> values;
  std::uint64_t ops = 1;
  // Ranks that never make it or a call before it: it may fail, and the failure names one of them.
  std::vector<Rank> missed_by;
  std::vector<CallEvidence> by_rank;
};

struct RankEvidence {
  std::array<std::uint64_t, kCounters> counters{};
  PortCounters port;
  std::uint64_t links_sent = 0;           // packets, by the core's own count per peer
  std::uint64_t network_sent = 0;         // packets that entered the network from here
  std::uint64_t network_delivered = 0;    // into this rank's receive queue
  std::uint64_t network_receive_drops = 0;
  std::uint64_t corrupted_delivered = 0;  // of those delivered, the ones that a bit flipped in
  std::uint64_t old_delivered = 0;        // and the others that an earlier run had sent
  std::uint64_t queue_bytes_left = 0;     // in the receive queue at the end
  bool settled = false;
  std::size_t cells_staged = 0;  // in the arena at the end
  std::size_t shards_held = 0;

  std::uint64_t count(Counter counter) const {
    return counters[static_cast<std::size_t>(counter)];
  }
  std::uint64_t verdicts() const {
    std::uint64_t sum = 0;
    for (auto i = static_cast<std::size_t>(kFirstVerdict);
         i <= static_cast<std::size_t>(kLastVerdict); ++i) {
      sum += counters[i];
    }
    return sum;
  }
};

struct Evidence {
  std::uint32_t ranks = 0;
  Duration grace{};
  Duration clock_error{};  // of a grace, by the fastest or slowest clock
  Duration turn_cost{};
  Duration port_lag{};  // how long a full uplink may hold up the end of a call
  std::vector<CallsEvidence> calls;
  std::vector<RankEvidence> by_rank;
  std::string conservation_fault;   // the network's own check
  std::uint64_t in_flight = 0;      // packets on the way at the end
  PairCounters network;             // all pairs together
  std::uint64_t trace_hash = 0;
  Instant quiet_from{};             // faults, late calls and pauses were over
  Instant ended_at = kNever;        // the last call ended; kNever: not all did
  Duration ends_within{};
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_EVIDENCE_H_
