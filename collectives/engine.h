// One rank's engine in one group: moves packets between the port and the protocol core, moves
// payloads as the core decides, and ends calls. One loop body, Turn(now), bounded in every step; a
// blocking thread, the caller itself, or the simulator's event queue turns it.
//
// Threads: Turn, NextWake, Settled, AskToSettle and the accessors belong to whoever turns it, one
// thread at a time. Submit and the Post functions may be called from any thread.
// It knows no sockets, no clock and no rendezvous.
#ifndef OPTIREDUCE_COLLECTIVES_ENGINE_H_
#define OPTIREDUCE_COLLECTIVES_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collectives/arena.h"
#include "collectives/call.h"
#include "collectives/reduce.h"
#include "lib/bounded.h"
#include "lib/counters.h"
#include "lib/flight_recorder.h"
#include "lib/settings.h"
#include "transport/control/changeover.h"
#include "transport/packet_io.h"
#include "transport/ubt/group.h"
#include "transport/wire/seal.h"

namespace optireduce {

struct EngineOptions {
  explicit EngineOptions(const wire::JobKey& key) : job_key(key) {}

  wire::JobKey job_key;
  ubt::GroupSettings group;
  std::size_t arena_bytes = 0;
  std::uint64_t bucket_bytes_max = 0;
  std::uint32_t calls_queued_max = 8;
  TagMode tag = TagMode::kHeader;
  bool check = false;
  // Called once, from Turn, when the group fails. `found_here`: this engine found the cause, which
  // is to reach all ranks; otherwise it was posted.
  std::function<void(const Status& cause, bool found_here)> on_failure;
  // A path from this rank carries less than before; from Turn.
  std::function<void(const ubt::Narrowing&)> on_narrowing;
  // The answer to a changeover's question, for rank 0; from Turn.
  std::function<void(const control::Ready&)> on_ready;
  // Called from Turn each time that calls have waited this long without the end of any op, with
  // what they wait for; 0: never.
  Duration stall_after{0};
  std::function<void(const std::string& what)> on_stall;
  // Takes every call that has ended, from Turn; notifies whoever waits for it.
  std::function<void(std::shared_ptr<Call>)> on_call_end;
};

// The settings of the protocol core that follow from configuration and from what the port can do.
ubt::GroupSettings MakeGroupSettings(const Settings& settings, const PortLimits& limits,
                                     Rank rank, std::uint32_t ranks);

// Elements of the largest op: a longer call travels as several. Counted in accumulators where those
// are larger than elements, so that the memory of a shard has one bound.
std::uint64_t OpElementsMax(std::uint64_t bucket_bytes_max, DataType type, ReduceOp reduce);
// Whether the arena holds a shard of the largest op; else an error that names both options.
Status CheckArena(const Settings& settings, std::uint32_t ranks);

class Engine : private ubt::PayloadActions {
 public:
  Engine(EngineOptions options, PacketPort* port);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues a call. False: calls_queued_max calls wait already.
  bool Submit(const std::shared_ptr<Call>& call);
  // Ends everything with this cause (an abort, or a lost peer).
  void PostFailure(const Status& cause);
  void PostPeerLeft(Rank peer);
  // Of changeovers, in the order in which rank 0 sent them.
  void PostPrepare(const control::Prepare& prepare);
  void PostDecision(const control::Decision& decision);

  // One turn. True: something was done, turn again; false: nothing to do before NextWake() unless
  // a packet comes in or something is posted.
  bool Turn(Instant now);
  Instant NextWake() const;

  // Every call has ended, and every peer has all it needs from this rank.
  bool Settled() const {
    return !posted_.load(std::memory_order_acquire) && queued_.empty() && running_.empty() &&
           group_.Settled();
  }
  void AskToSettle(Instant now) { group_.AskToSettle(now); }

  const ubt::Group& group() const { return group_; }
  const Counters& counters() const { return counters_; }
  const FlightRecorder& recorder() const { return recorder_; }
  // What is taken of the arena; nothing when settled and no packet has come since.
  std::size_t cells_staged() const { return cells_.in_use(); }
  std::size_t shards_held() const { return shards_.in_use(); }

 private:
  // What an op's payloads are, by op number modulo the core's slots.
  struct OpData {
    ubt::Grid grid;
    Kernels kernels;
    std::byte* shard = nullptr;  // accumulators while a cell is open, its result when closed
    std::shared_ptr<Call> call;  // null until called, and after its end
    std::uint64_t first_element = 0;  // of the call
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
  };

  // Cells of one shard whose contributions were given to the port and may still be queued there.
  struct QueuedData {
    OpNumber op = 0;
    Rank shard = 0;
    CellIndex first = 0;
    CellIndex last = 0;
  };
  // What goes to a caller's memory once nothing that is queued points to it any more.
  struct HeldWrite {
    std::byte* to = nullptr;
    std::vector<std::byte> bytes;
  };

  OpData& Data(OpNumber op) { return ops_[op % ops_.size()]; }
  std::byte* CellMemory(OpData& data, CellIndex cell) const {
    return data.shard + data.grid.CellFirst(cell) * data.kernels.accumulator_bytes;
  }
  std::size_t Offset(const OpData& data, Rank shard, CellIndex cell) const {
    return (data.grid.ShardFirst(shard) + data.grid.CellFirst(cell)) * data.grid.element_bytes();
  }

  // ubt::PayloadActions
  bool OpenShard(OpNumber op, const ubt::OpSpec& spec, const ubt::Grid& grid) override;
  void RetireShard(OpNumber op) override;
  ubt::StagedId Stage(std::span<const std::byte> payload) override;
  void Unstage(ubt::StagedId id) override;
  void AddOwn(OpNumber op, CellIndex cell, bool first) override;
  void Add(OpNumber op, CellIndex cell, std::span<const std::byte> payload, bool first) override;
  void AddStaged(OpNumber op, CellIndex cell, ubt::StagedId id, bool first) override;
  void CloseCell(OpNumber op, CellIndex cell, std::uint32_t contributors) override;
  void PlaceOwn(OpNumber op, CellIndex cell) override;
  void Place(OpNumber op, Rank shard, CellIndex cell, std::span<const std::byte> payload) override;
  void PlaceStaged(OpNumber op, Rank shard, CellIndex cell, ubt::StagedId id) override;
  void PlaceZero(OpNumber op, Rank shard, CellIndex cell) override;

  bool TakePosted(Instant now);
  void TakeChangeovers();
  void Obey(const control::Prepare& prepare);
  void Obey(const control::Decision& decision);
  bool ReceiveAll(Instant now, bool* idle);
  Counter TakePacket(std::span<const std::byte> packet, Instant now);
  bool AdmitCalls(Instant now);
  bool StartOp(const std::shared_ptr<Call>& call, Instant now);
  // Hands what is queued to the network and says whether all of it is out.
  bool Flush(Instant now);
  bool FlushQueued(Instant now);
  bool SendAll(bool idle, Instant now);
  bool SendOne(ubt::SendOrder& order, Instant now);
  std::span<const std::byte> PayloadOf(const ubt::SendOrder& order,
                                       const ubt::SendOrder::Cell& cell);
  // Writes to the caller's memory; later, where a queued contribution of the cell lies there.
  void Write(OpNumber op, Rank shard, CellIndex cell, std::span<const std::byte> payload);
  bool IsQueued(OpNumber op, Rank shard, CellIndex cell) const;
  void GiveBackShards();
  bool EndOps(Instant now);
  // When the calls that wait have done so for stall_after; kNever while none does.
  Instant StallAt() const;
  void TellOfStall(Instant now);
  void EndCall(const std::shared_ptr<Call>& call, Instant now);
  void FailAll(Instant now);

  const std::uint32_t group_id_;
  const std::uint16_t epoch_;
  const Rank rank_;
  const std::uint32_t ranks_;
  const std::uint64_t bucket_bytes_max_;
  std::function<void(const Status&, bool)> on_failure_;
  std::function<void(const ubt::Narrowing&)> on_narrowing_;
  std::function<void(const control::Ready&)> on_ready_;
  std::function<void(std::shared_ptr<Call>)> on_call_end_;
  const Duration stall_after_;
  std::function<void(const std::string&)> on_stall_;
  PacketPort* const port_;

  Counters counters_;
  FlightRecorder recorder_;
  ShardRing shards_;
  CellPool cells_;
  ubt::Group group_;
  std::vector<OpData> ops_;
  std::vector<wire::Sealer> seal_;    // by peer: what this rank sends
  std::vector<wire::Sealer> verify_;  // by peer: what this rank receives
  RingQueue<std::shared_ptr<Call>> queued_;   // not wholly handed out to ops
  std::vector<std::shared_ptr<Call>> running_;  // the others that have not ended
  bool port_busy_ = false;
  // Since the port was last empty, at most those of one turn; of ops in place only.
  std::vector<QueuedData> queued_data_;
  std::vector<HeldWrite> held_writes_;   // while the port is busy; at most what is queued there
  Instant op_ended_at_{};       // the last one
  Instant stall_told_at_{};
  bool failed_ = false;
  bool failure_posted_ = false;
  std::uint64_t receive_drops_ = 0;
  Instant look_at_drops_{};
  std::size_t shards_retired_ = 0;  // and not given back yet
  std::optional<control::Prepare> prepared_;  // and not decided yet
  std::unique_ptr<ubt::SendOrder> order_;
  std::vector<std::byte> headers_;
  std::vector<TxSegment> segments_;
  const std::vector<std::byte> zero_cell_;

  std::atomic<bool> posted_{false};
  std::mutex mutex_;  // guards the posted things below
  RingQueue<std::shared_ptr<Call>> posted_calls_;
  std::vector<Rank> posted_left_;
  std::vector<std::variant<control::Prepare, control::Decision>> posted_changeovers_;
  Status posted_failure_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_ENGINE_H_
