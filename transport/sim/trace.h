// What happened on the network: one record per happening, a hash over all of them by which two runs
// are compared, and a line of text for people.
//
// Threads: the world's.
// Does not: keep the records. A sink that wants them copies them.
#ifndef OPTIREDUCE_TRANSPORT_SIM_TRACE_H_
#define OPTIREDUCE_TRANSPORT_SIM_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "optireduce/time.h"
#include "transport/sim/conditions.h"

namespace optireduce::sim {

// Numeric values enter the trace hash.
enum class TraceKind : std::uint8_t {
  kSend = 0,       // a node handed the packet to its uplink
  kDuplicate = 1,  // the switch made a second copy
  kCorrupt = 2,    // a bit flipped; the hash is that of the new content
  kDelay = 3,      // held back, to be overtaken
  kDeliver = 4,    // entered the receive queue
  kDrop = 5,       // ended, for `reason`
  kPause = 6,      // `from` is the node; likewise below
  kResume = 7,
  kDown = 8,
  kUp = 9,
  kHeal = 10,  // the whole network
};

// Numeric values enter the trace hash and index PairCounters::dropped.
enum class DropReason : std::uint8_t {
  kLoss = 0,
  kBurstLoss = 1,
  kUplinkQueue = 2,
  kPortQueue = 3,  // the switch port towards the receiver
  kReceiveQueue = 4,
  kPartition = 5,
  kNodeDown = 6,
  kChecksum = 7,     // the receiver's kernel found it damaged
  kSendRefused = 8,  // by the sender's kernel, with an error
  kTooLarge = 9,     // for its path, which tells nobody
};
inline constexpr std::size_t kDropReasons = 10;

std::string_view Name(TraceKind kind);     // "deliver"
std::string_view Name(DropReason reason);  // "port queue"

struct TraceRecord {
  Instant at{};
  TraceKind kind = TraceKind::kSend;
  DropReason reason = DropReason::kLoss;  // of kDrop only
  NodeId from = 0;
  NodeId to = 0;
  std::uint64_t packet = 0;  // counts the copies of the network; 0: no packet
  std::uint64_t copy_of = 0;  // the packet that this is a copy of; of kDuplicate only
  std::uint64_t content_hash = 0;
  std::span<const std::byte> bytes;  // the packet's; valid during the call only
};

using TraceSink = std::function<void(const TraceRecord&)>;

// "    12.345 us  3>5  #17 drop 1472 B (port queue)", without a line end.
std::string ToString(const TraceRecord& record);

// 64 bits over a packet's content. Not for adversaries.
std::uint64_t ContentHash(std::span<const std::byte> bytes);

// Order matters: the same records in another order give another hash.
class TraceHash {
 public:
  void Add(const TraceRecord& record);
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x6f7074697265ull;
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TRANSPORT_SIM_TRACE_H_
