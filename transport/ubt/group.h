// The protocol of one group at one rank: which packets to send, accept, repair or give up, and when
// to be woken. No socket, clock, thread, lock or log; packets and time come in as arguments, what
// goes out is (peer, op, stage, cells) or a control message, payloads are moved by PayloadActions.
//
// Threads: one at a time, whoever turns the engine.
//
// The code is in five files: group.cc (ops: call, open, finish, retire), group_receive.cc (one
// handler per message), group_send.cc (what goes out next), group_timers.cc (deadlines, repair),
// group_paths.cc (paths that narrow, and the change to smaller cells).
#ifndef OPTIREDUCE_TRANSPORT_UBT_GROUP_H_
#define OPTIREDUCE_TRANSPORT_UBT_GROUP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/bounded.h"
#include "lib/counters.h"
#include "lib/flight_recorder.h"
#include "lib/ids.h"
#include "optireduce/status.h"
#include "optireduce/time.h"
#include "transport/ubt/link.h"
#include "transport/ubt/op_spec.h"
#include "transport/ubt/op_state.h"
#include "transport/ubt/pair_probe.h"
#include "transport/ubt/payload_actions.h"
#include "transport/ubt/pieces.h"
#include "transport/wire/message.h"

namespace optireduce::ubt {

struct GroupSettings {
  Rank rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t group_id = 0;
  std::uint16_t epoch = 0;
  std::uint32_t cell_bytes = 1440;    // payload of a full cell, until it is changed
  // Packet sizes to ask a path for that seems to have narrowed, falling; those of a full cell and
  // above are passed over. Empty: no path is asked.
  std::vector<std::uint32_t> probe_bytes;
  std::uint32_t burst_cells_max = 44;  // of one super-packet
  std::uint64_t op_bytes_max = 0;      // larger ops are refused
  std::uint32_t ops_behind_max = 8;
  std::uint32_t ops_in_flight_max = 8;
  Duration bound{};                    // of a bounded op, from its anchor
  std::uint32_t scatter_share_pct = 75;
  Duration fetch_grace{};
  std::uint32_t credit_start_packets = 44;
  std::uint32_t credit_max_packets = 90;
  OpNumber ops_before = 0;             // the first op is the next one; equal on all ranks
  PacketNumber first_number = 1;       // equal on all ranks
  std::vector<Rank> serve_order;       // peers, in the order in which this rank serves them
  std::vector<Rank> sum_order;         // all ranks, in the order in which this owner adds
  std::vector<std::string> rank_names;  // for error texts: "rank 2 (10.0.0.2:4711)"
};

// A turn this long after the last one means that the process was stopped or starved.
inline constexpr Duration kPause = std::chrono::milliseconds(20);

// The largest control message: header and body of a packet of at most this size.
inline constexpr std::size_t kControlBytesMax = 512;
inline constexpr std::size_t kBurstCellsLimit = 64;

// One super-packet to send: cells, a control message, or cells with one riding last.
struct SendOrder {
  struct Cell {
    CellIndex cell = 0;
    PacketNumber number = 0;
    std::uint8_t flags = 0;
  };
  Rank peer = 0;

  std::uint32_t cell_count = 0;
  Stage stage = Stage::kScatter;
  OpNumber op = 0;
  Rank shard = 0;
  std::array<Cell, kBurstCellsLimit> cells;

  std::size_t filling_bytes = 0;  // zeros behind the control message, of a probe
  std::size_t control_bytes = 0;  // header (without tag) and body; 0: none
  OpNumber control_op = 0;
  PacketNumber control_number = 0;
  std::array<std::byte, kControlBytesMax> control;
};

struct OpEnd {
  enum class Outcome : std::uint8_t { kAgreed, kDivergent };
  OpNumber op = 0;
  Outcome outcome = Outcome::kAgreed;
  std::uint64_t count = 0;     // elements
  LossLedger ledger;
  Instant deadline = kNever;   // of a bounded op
  Instant ended_at{};
};

// A path from here that carries less than it did, in whole packets.
struct Narrowing {
  Rank peer = 0;
  std::uint32_t from_bytes = 0;
  std::uint32_t to_bytes = 0;
};

enum class Admission : std::uint8_t { kAdmitted, kNoRoomYet };

class Group {
 public:
  // `recorder` may be null: nothing is recorded.
  Group(GroupSettings settings, PayloadActions* actions, Counters* counters,
        FlightRecorder* recorder = nullptr);

  // ---- The caller's side -------------------------------------------------------------------
  // Begins this rank's next op, which fails the group when it has not ended after `timeout`.
  // kNoRoomYet: back-pressure, try again after packets came in. Not after failure().
  Admission Call(const OpSpec& spec, Duration timeout, Instant now, OpNumber* op);
  // The next op that has ended for this rank's caller.
  std::optional<OpEnd> NextEnd();

  // Ends everything; no packet is sent or accepted any more. The first cause stays.
  void Fail(const Status& cause);
  const Status& failure() const { return failure_; }
  // The peer said goodbye: it needs nothing more.
  void OnPeerLeft(Rank peer, Instant now);
  // Every slot of ops that may be known at once has its own number modulo this.
  std::size_t slot_count() const { return slots_.size(); }
  // Every op this rank called has ended, and every peer has all it needs from this rank.
  bool Settled() const;
  // Asks peers that owe it for a report, until Settled().
  void AskToSettle(Instant now);

  // ---- Packets in --------------------------------------------------------------------------
  // The 64-bit numbers that a header means, for the tag and OnPacket.
  OpNumber WidenOp(std::uint32_t low) const;
  PacketNumber WidenNumber(Rank sender, std::uint32_t low) const;
  // One packet whose tag is right. Returns which verdict it got.
  Counter OnPacket(const wire::Header& header, OpNumber op, PacketNumber number,
                   std::span<const std::byte> body, Instant now);
  // The port's own receive queue dropped packets: grant less.
  void OnReceiveOverflow(std::uint64_t drops, Instant now);

  // ---- Packets out -------------------------------------------------------------------------
  // The next super-packet to send. `idle`: nothing waits to be received, so a super-packet that is
  // not full may go. False: nothing may or need be sent now.
  bool NextSend(bool idle, Instant now, SendOrder* out);

  // ---- Time --------------------------------------------------------------------------------
  // Acts on expired deadlines and, when nothing waits to be received, on repair timers.
  void OnTime(bool idle, Instant now);
  // When OnTime must be called next at the latest.
  Instant NextWake() const { return next_wake_; }

  // ---- Paths that narrow -------------------------------------------------------------------
  // The next one that was found.
  std::optional<Narrowing> NextNarrowing();
  // From the first question of a changeover to its decision no further op is opened here. Gives
  // the newest that is.
  OpNumber HoldOpens();
  void ReleaseOpens();
  // Ops from `first` on have full cells of this payload. Fails the group where one is open already.
  void ChangeCellBytes(OpNumber first, std::uint32_t cell_bytes);
  std::uint32_t CellBytesOf(OpNumber op) const;

  // ---- To look at --------------------------------------------------------------------------
  const Link& link(Rank peer) const { return links_[peer]; }
  OpNumber called() const { return called_; }
  OpNumber done() const { return done_; }
  const GroupSettings& settings() const { return settings_; }
  // "op 7 (all_reduce sum of 1000 float32 (exact))"; only while it is open.
  std::string DescribeOp(OpNumber op) const;
  // Which ranks an op waits for and for what, e.g. "rank 2: has not called it".
  std::string DescribeWaiting(OpNumber op) const;
  // Which ranks the next op's admission waits for.
  std::string DescribeRoom() const;

 private:
  struct ControlItem {
    wire::MessageType type{};
    Rank peer = 0;
    OpNumber op = 0;
    Rank shard = 0;
    std::uint8_t flags = 0;
    Stage stage = Stage::kScatter;
    wire::NotYet::Reason reason{};
    wire::Nack nack;
  };

  // group.cc
  OpState& At(OpNumber op) { return slots_[op % slots_.size()]; }
  const OpState& At(OpNumber op) const { return slots_[op % slots_.size()]; }
  bool IsOpen(OpNumber op) const { return op >= oldest_ && op <= newest_; }
  bool EnsureOpen(OpNumber op, Rank by, const OpSpec& spec, Instant now);
  void NoteStart(OpState& op, Rank rank, Instant start, Instant now);
  void TakeOwnContribution(OpState& op, Instant now);
  void PlaceStagedResults(OpState& op);
  void Advance(OpState& op, CellIndex cell, Instant now);
  bool AllAwaitedIn(const OpState& op, CellIndex cell) const;
  void Close(OpState& op, CellIndex cell, Instant now);
  void CloseAllOpen(OpState& op, Instant now);
  void NoteOwnSet(OpState& op, CellIndex cell);
  void OnOwnShardClosed(OpState& op, Instant now);
  void MarkHeld(OpState& op, Rank shard, CellIndex cell);
  void MaybeFinish(OpState& op, Instant now);
  void Finish(OpState& op, OpEnd::Outcome outcome, Instant now);
  void Retire(Instant now);
  Status LeftBefore(Rank peer, OpNumber op) const;
  bool Push(const ControlItem& item);
  void PushSets(OpState& op, Rank peer, CellIndex from);
  void PushOpen(Rank peer, OpNumber op);
  std::uint32_t peers() const { return settings_.ranks - 1; }
  void Note(Instant at, Event event, OpNumber op, Rank peer = kNoRank, std::uint64_t a = 0,
            std::uint64_t b = 0) {
    if (recorder_ != nullptr) recorder_->Record(at, event, op, peer, a, b);
  }

  // group_receive.cc
  Counter OnOpen(Link& link, Rank sender, OpNumber op, PacketNumber number,
                 std::span<const std::byte> body, Instant now);
  Counter OnData(Link& link, Rank sender, const wire::Header& header, OpNumber op,
                 std::span<const std::byte> payload, Instant now);
  Counter OnResult(Link& link, Rank sender, const wire::Header& header, OpNumber op,
                   std::span<const std::byte> payload, Instant now);
  Counter OnSets(Rank sender, const wire::Header& header, OpNumber op,
                 std::span<const std::byte> body, Instant now);
  Counter OnNack(Link& link, Rank sender, const wire::Header& header, OpNumber op,
                 std::span<const std::byte> body, Instant now);
  Counter OnReport(Link& link, Rank sender, const wire::Header& header, PacketNumber number,
                   std::span<const std::byte> body, Instant now);
  Counter OnNotYet(Rank sender, const wire::Header& header, OpNumber op,
                   std::span<const std::byte> body, Instant now);
  void TakeReport(Link& link, const wire::ReportBlock& report, PacketNumber number, Instant now);
  void ResendLostOpens(Link& link, PacketNumber seen, Instant now);
  void TakeEarlyData(OpState& op, Rank sender, Instant now);
  bool RepeatData(OpState& op, Rank owner, const wire::CellRange& range, PacketNumber seen,
                  const Link& link, Instant old);
  bool RepeatResults(OpState& op, Rank peer, const wire::CellRange& range, PacketNumber seen,
                     const Link& link, Instant old);
  Counter RefuseForRoom(Link& link, Instant now);
  Counter RefuseData(OpState& op, Link& link, Instant now);

  // group_send.cc
  bool NextControl(Instant now, SendOrder* out);
  bool WriteControl(const ControlItem& item, Instant now, SendOrder* out);
  bool WriteSets(const ControlItem& item, Instant now, SendOrder* out);
  void BeginControl(const ControlItem& item, Instant now, SendOrder* out);
  bool NextCells(Rank peer, bool idle, Instant now, SendOrder* out);
  bool FillRepeats(Rank peer, std::uint32_t most, Instant now, SendOrder* out);
  bool FillNew(Rank peer, std::uint32_t most, bool idle, Instant now, SendOrder* out);
  void FillResults(OpState& op, Rank peer, std::uint32_t most, Instant now, SendOrder* out);
  void FillData(OpState& op, Rank peer, std::uint32_t most, Instant now, SendOrder* out);
  bool AddCell(OpState& op, Stage stage, Rank peer, CellIndex cell, bool repeat, Instant now,
               SendOrder* out);
  void AddPacket(OpState& op, Stage stage, Rank peer, CellIndex cell, std::uint8_t flags,
                 Instant now, SendOrder* out);
  bool ReportDue(const Link& link, Instant now) const;
  void WriteReportMessage(Rank peer, std::uint8_t flags, Instant now, SendOrder* out);
  wire::ReportBlock MakeReport(Link& link, Instant now);
  void NoteReported(Link& link, Instant now);

  // group_paths.cc
  void Suspect(Rank peer, Instant now);
  bool NextProbe(Instant now, SendOrder* out);
  Counter OnProbe(Rank sender, const wire::Header& header, std::span<const std::byte> body,
                  Instant now);
  void OnPathKnown(Rank peer, Instant now);
  bool TakePiece(const wire::Header& header, OpNumber op, Stage stage, std::size_t cell_bytes,
                 std::span<const std::byte>* payload);

  // group_timers.cc
  void RunOpClocks(Instant now);
  void UpdateClock(OpState& op, Instant now);
  Instant ScatterDeadline(const OpState& op) const;
  // Of an op of bounded mode, kNever when its clock does not run yet.
  Instant Deadline(const OpState& op) const;
  Instant GraceEnd(const OpState& op) const;
  void RunRepair(Instant now);
  bool WantsResults(const OpState& op, Rank peer, Instant now) const;
  bool WantsData(const OpState& op, Rank peer) const;
  Instant TailAskFrom(Rank peer, Instant now) const;
  Instant GapAskFrom(const Link& link) const;
  void Ask(Rank peer, bool tail, Instant now);
  void AskForData(const OpState& op, Rank peer, bool tail, Instant now);
  void AskForResults(const OpState& op, Rank peer, bool tail, Instant now);
  void RepeatOpens(Rank peer, Instant now);
  void AskForRoom(Instant now);
  bool FailWithoutLeft(const OpState& op, Instant now);
  void RunReportTimers(Instant now);
  void WakeBy(Instant at) { next_wake_ = at < next_wake_ ? at : next_wake_; }

  GroupSettings settings_;
  PayloadActions* actions_;
  Counters* counters_;
  FlightRecorder* recorder_;
  std::vector<std::uint32_t> place_in_sum_;  // rank -> place in sum_order
  std::vector<Link> links_;
  std::vector<OpState> slots_;
  std::vector<Instant> sort_space_;
  std::vector<std::uint8_t> late_;  // by rank: the late rule holds
  RingQueue<ControlItem> control_;
  RingQueue<OpEnd> ends_;
  PairProbe watch_;
  std::uint32_t watched_bytes_;  // the packet size that `watch_` doubts
  RingQueue<Narrowing> narrowings_;
  Pieces pieces_;
  struct CellSize {
    OpNumber first = 0;
    std::uint32_t bytes = 0;
  };
  std::vector<CellSize> cell_sizes_;  // by first op, rising; of the oldest op and all after it
  bool opens_held_ = false;

  OpNumber called_;     // the last op this rank's caller called
  OpNumber done_;       // all up to this one have ended here
  OpNumber oldest_;     // the oldest op that is not retired
  OpNumber newest_;     // the newest op that is open here
  OpNumber divergent_ = 0;
  Instant called_at_{};
  Instant retired_ended_at_{};  // of the op before the oldest
  Instant last_turn_{};
  Instant last_wake_{};  // when this process last went on after a pause
  std::uint32_t serve_next_ = 0;  // into serve_order
  bool room_wanted_ = false;  // the next call waits until an op is retired
  Instant ask_room_at_{};
  Instant next_wake_ = kNever;
  Status failure_;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_GROUP_H_
