// The simulated network: nodes around one switch.
//
//   node ─ uplink queue ─ uplink ─▶ switch: faults ─ port queue ─ downlink ─▶ receive queue ─ node
//
// The switch stores and forwards: it has a packet when its last bit is in. What happens to a packet
// is decided there, when it arrives there, by the conditions of its pair of nodes; so a lost packet
// has used the uplink and not the port. Every random draw comes from a stream of its own per
// (seed, node, purpose): two runs of one seed and one program are equal to the bit (trace_hash()),
// and more loss does not shift the jitter.
//
// Packet conservation, for every pair at every instant between two events:
//   sent + duplicated = delivered + dropped + in flight.
// "Delivered" is in the receive queue, read or not.
//
// Threads: the world's. The world outlives the network, the network its ports (SimPort).
// Does not: run engines. A node's wake callback says when its engine has reason to turn.
#ifndef OPTIREDUCE_TRANSPORT_SIM_NETWORK_H_
#define OPTIREDUCE_TRANSPORT_SIM_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/random.h"
#include "optireduce/time.h"
#include "transport/sim/conditions.h"
#include "transport/sim/link.h"
#include "transport/sim/packet_pool.h"
#include "transport/sim/trace.h"
#include "transport/sim/world.h"

namespace optireduce::sim {

// What became of the packets of one ordered pair.
struct PairCounters {
  std::uint64_t sent = 0;
  std::uint64_t delivered = 0;
  std::array<std::uint64_t, kDropReasons> dropped{};  // by DropReason
  std::uint64_t duplicated = 0;                       // copies made, beyond those sent
  std::uint64_t corrupted = 0;                        // copies that a bit flipped in
  std::uint64_t delayed = 0;                          // copies held back to be overtaken
  std::uint64_t clogged = 0;                          // copies held back by a clog
  std::uint64_t busy = 0;                             // sends put off by `send_busy`

  std::uint64_t dropped_for(DropReason reason) const {
    return dropped[static_cast<std::size_t>(reason)];
  }
  std::uint64_t dropped_total() const;
  PairCounters& operator+=(const PairCounters& other);
};

class SimPort;

class Network final : private EventHandler {
 public:
  Network(World* world, const NetworkConfig& config);
  ~Network() override;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  World& world() const { return *world_; }
  const NetworkConfig& config() const { return config_; }
  std::uint32_t nodes() const { return config_.nodes; }

  // Shape. Packets already queued on a link keep the instants they were given; a smaller receive
  // queue drops nothing that is in it.
  void SetUplink(NodeId node, const LinkConfig& link);
  void SetDownlink(NodeId node, const LinkConfig& link);
  void SetUplinkFull(NodeId node, UplinkFull what);
  void SetReceiveQueue(NodeId node, std::uint64_t bytes_max);
  const NodeConfig& node_config(NodeId node) const { return nodes_.at(node).config; }

  // Faults. The first form is for all pairs and ends every override by the second.
  void SetConditions(const PairConditions& conditions);
  void SetConditions(NodePair pair, const PairConditions& conditions);
  const PairConditions& conditions(NodePair pair) const;

  // From now on packets of this pair that are larger than that are lost, and nobody is told.
  void Narrow(NodePair pair, std::size_t packet_bytes_max);

  // Blocks these pairs for packets that reach the switch in [begin, end). Partitions add up.
  void Partition(std::span<const NodePair> pairs, Instant begin, Instant end);

  // Packets of these pairs that reach the switch in [begin, end) queue there until the end, as
  // behind other traffic; then all go on, in order. Clogs add up.
  void Clog(std::span<const NodePair> pairs, Instant begin, Instant end);

  // Every pair from one set to the other (not back, and never a node to itself).
  static std::vector<NodePair> PairsBetween(std::span<const NodeId> from,
                                            std::span<const NodeId> to);

  // Ends all faults, partitions and clogs, of now and of later. What a clog holds goes on when the
  // clog would have ended. Links, extra delays and stopped nodes stay as they are.
  void Heal();

  // Called when a packet enters the node's empty receive queue, when there is room on an uplink
  // that was busy, and when the node is resumed: reasons for its engine to turn. Never while the
  // node is paused or down. The callback may do anything but destroy the network; a harness
  // schedules a turn from it. Whoever leaves packets in the queue turns again without a call.
  void SetWake(NodeId node, std::function<void()> wake);

  // A stopped process: its engine must not turn (using its port is a bug), while its kernel goes on
  // receiving. Resume() wakes it. Both do nothing when it is so already.
  void Pause(NodeId node);
  void Resume(NodeId node);
  bool paused(NodeId node) const { return nodes_.at(node).paused; }

  // A dead process: what is in its receive queue and what arrives later is gone; what it sent is
  // still on its way. BringUp() is for a new process with a new port.
  void TakeDown(NodeId node);
  void BringUp(NodeId node);
  bool down(NodeId node) const { return nodes_.at(node).down; }

  // Counters.
  const PairCounters& counters(NodePair pair) const { return pairs_[PairIndex(pair)].counters; }
  PairCounters totals() const;
  std::uint64_t receive_queue_drops(NodeId node) const { return nodes_.at(node).receive_drops; }
  std::uint64_t receive_queue_bytes(NodeId node) const { return nodes_.at(node).receive_bytes; }
  // Counted over the packets themselves, not kept, so that conservation is not true by definition.
  std::uint64_t CountInFlight(NodePair pair) const;
  std::uint64_t CountInFlight() const;
  // Empty when packets are conserved for every pair, else a sentence about one where they are not.
  std::string CheckConservation() const;

  // Trace.
  std::uint64_t trace_hash() const { return trace_hash_.value(); }
  // Called for everything that happens from now on; an empty one ends it.
  void SetTraceSink(TraceSink sink) { sink_ = std::move(sink); }

 private:
  friend class SimPort;

  enum Event : std::uint32_t { kAtSwitch, kAtNode, kRoomOnUplink };

  struct Streams {
    Streams(std::uint64_t seed, NodeId node);
    Stream send_busy, send_refused, burst, loss, duplicate, corrupt, corrupt_caught, reorder;
    Stream uplink_jitter, downlink_jitter;
  };

  struct Node {
    Node(const NetworkConfig& network, NodeId id);
    NodeConfig config;
    Link uplink;
    Link downlink;
    Streams streams;
    std::function<void()> wake;
    PacketIndex receive_first = kNoPacket;
    PacketIndex receive_last = kNoPacket;
    std::uint64_t receive_bytes = 0;  // of kernel memory
    std::uint64_t receive_drops = 0;
    bool room_wanted = false;  // a kRoomOnUplink event is on its way
    bool paused = false;
    bool down = false;
  };

  static constexpr std::uint32_t kNoOverride = ~std::uint32_t{0};

  struct Pair {
    PairCounters counters;
    Instant last_arrival{};
    bool bad = false;  // in a burst of loss
    std::uint32_t override_index = kNoOverride;
    std::size_t carries_bytes = ~std::size_t{0};
  };

  // An interval of a partition or a clog.
  struct Block {
    Instant begin;
    Instant end;
    std::vector<bool> pairs;  // by PairIndex
  };
  using Blocks = std::vector<Block>;

  // For SimPort.
  std::uint64_t WireBytes(std::size_t packet_bytes) const {
    return packet_bytes + config_.wire_overhead_bytes;
  }
  // False when the uplink is busy; the node is then woken when so many bytes fit.
  bool UplinkTakes(NodePair pair, std::uint64_t wire_bytes);
  // Sends one packet, a copy of the two parts. False: refused, or dropped by the uplink's queue.
  bool Transmit(NodePair pair, std::span<const std::byte> header,
                std::span<const std::byte> payload);
  // The oldest packet of the receive queue, or kNoPacket. Its kernel memory is free at once; the
  // port gives the packet back to the pool.
  PacketIndex PopReceived(NodeId node);
  void Wake(NodeId node);

  void OnEvent(std::uint32_t what, std::uint64_t argument) override;
  void AtSwitch(PacketIndex index);
  // Whether the faults of the pair end the packet here, and why.
  bool LostAtSwitch(NodePair pair, DropReason* reason);
  void Forward(PacketIndex index);
  void Corrupt(PacketIndex index);
  PacketIndex Duplicate(PacketIndex index);
  void AtNode(PacketIndex index);
  void Drop(PacketIndex index, DropReason reason);

  void AddBlock(Blocks* blocks, std::span<const NodePair> pairs, Instant begin, Instant end) const;
  // The latest end of those that hold for the pair now; the epoch: none does.
  Instant BlockedUntil(const Blocks& blocks, NodePair pair) const;
  std::size_t PairIndex(NodePair pair) const;
  NodePair PairOf(PacketIndex index) const { return {pool_[index].from, pool_[index].to}; }
  void Trace(TraceKind kind, PacketIndex index, DropReason reason = DropReason::kLoss,
             std::uint64_t copy_of = 0);
  void TraceNode(TraceKind kind, NodeId node);
  void Emit(const TraceRecord& record);

  World* const world_;
  NetworkConfig config_;
  std::vector<Node> nodes_;
  std::vector<Pair> pairs_;  // by PairIndex
  PairConditions conditions_;
  std::vector<PairConditions> overrides_;
  Blocks partitions_;
  Blocks clogs_;
  PacketPool pool_;
  std::uint64_t packets_made_ = 0;
  TraceHash trace_hash_;
  TraceSink sink_;
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TRANSPORT_SIM_NETWORK_H_
