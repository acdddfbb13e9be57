#include "collectives/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/tar/schedule.h"
#include "lib/check.h"
#include "transport/wire/parse.h"
#include "transport/wire/serialize.h"

namespace optireduce {
namespace {

using std::chrono::milliseconds;

// A turn takes in this many bursts and sends this many super-packets at most.
constexpr int kBurstsPerTurn = 32;
constexpr int kSendsPerTurn = 16;
constexpr std::size_t kFlightRecords = 4096;
constexpr Duration kLookAtDropsEvery = milliseconds(1);

// Of the arena, the part in which payloads wait for their turn; the rest holds shards.
constexpr std::size_t PoolBytes(std::size_t arena_bytes) { return arena_bytes / 4; }

std::vector<wire::Sealer> MakeSealers(const EngineOptions& options, bool outgoing) {
  const wire::GroupKey key =
      wire::DeriveGroupKey(options.job_key, options.group.group_id, options.group.epoch);
  std::vector<wire::Sealer> sealers;
  const Rank self = options.group.rank;
  for (Rank peer = 0; peer < options.group.ranks; ++peer) {
    sealers.emplace_back(
        wire::DerivePairKey(key, outgoing ? self : peer, outgoing ? peer : self),
        wire::DeriveCookie(key), options.tag, options.check);
  }
  return sealers;
}

}  // namespace

std::uint64_t OpElementsMax(std::uint64_t bucket_bytes_max, DataType type, ReduceOp reduce) {
  return bucket_bytes_max / std::max(ElementBytes(type), AccumulatorBytes(type, reduce));
}

Status CheckArena(const Settings& settings, std::uint32_t ranks) {
  const std::uint64_t shard = settings.bucket_bytes_max / ranks + 2 * ubt::kShardAlignBytes;
  const std::uint64_t room = settings.arena_bytes_max - PoolBytes(settings.arena_bytes_max);
  if (shard <= room) return Status::Ok();
  return {Code::kInvalidArgument,
          "arena.bytes_max = " + std::to_string(settings.arena_bytes_max) +
              " has no room for a shard of bucket_bytes_max = " +
              std::to_string(settings.bucket_bytes_max) + " with " + std::to_string(ranks) +
              " ranks; raise the first to " + std::to_string(shard * 2) + " or lower the second"};
}

Engine::Engine(EngineOptions options, PacketPort* port)
    : group_id_(options.group.group_id),
      epoch_(options.group.epoch),
      rank_(options.group.rank),
      ranks_(options.group.ranks),
      bucket_bytes_max_(options.bucket_bytes_max),
      on_failure_(std::move(options.on_failure)),
      on_narrowing_(std::move(options.on_narrowing)),
      on_ready_(std::move(options.on_ready)),
      on_call_end_(std::move(options.on_call_end)),
      stall_after_(options.stall_after),
      on_stall_(std::move(options.on_stall)),
      port_(port),
      recorder_(kFlightRecords),
      shards_(options.arena_bytes - PoolBytes(options.arena_bytes),
              std::size_t{4} * options.group.ops_behind_max + 8),
      cells_(PoolBytes(options.arena_bytes), options.group.cell_bytes),
      group_(options.group, this, &counters_, &recorder_),
      ops_(group_.slot_count()),
      seal_(MakeSealers(options, true)),
      verify_(MakeSealers(options, false)),
      queued_(options.calls_queued_max),
      order_(std::make_unique<ubt::SendOrder>()),
      headers_(ubt::kBurstCellsLimit * wire::kHeaderBytes),
      segments_(ubt::kBurstCellsLimit + 1),
      zero_cell_(options.group.cell_bytes),
      posted_calls_(options.calls_queued_max) {
  queued_data_.reserve(kSendsPerTurn);
}

Engine::~Engine() = default;

// ---- From other threads ------------------------------------------------------------------------

bool Engine::Submit(const std::shared_ptr<Call>& call) {
  const std::lock_guard lock(mutex_);
  if (!posted_calls_.Push(call)) return false;
  posted_.store(true, std::memory_order_release);
  return true;
}

void Engine::PostFailure(const Status& cause) {
  const std::lock_guard lock(mutex_);
  if (posted_failure_.ok()) posted_failure_ = cause;
  posted_.store(true, std::memory_order_release);
}

void Engine::PostPeerLeft(Rank peer) {
  const std::lock_guard lock(mutex_);
  posted_left_.push_back(peer);
  posted_.store(true, std::memory_order_release);
}

void Engine::PostPrepare(const control::Prepare& prepare) {
  const std::lock_guard lock(mutex_);
  posted_changeovers_.emplace_back(prepare);
  posted_.store(true, std::memory_order_release);
}

void Engine::PostDecision(const control::Decision& decision) {
  const std::lock_guard lock(mutex_);
  posted_changeovers_.emplace_back(decision);
  posted_.store(true, std::memory_order_release);
}

// Under mutex_.
void Engine::TakeChangeovers() {
  for (const auto& message : posted_changeovers_) {
    if (!group_.failure().ok()) break;
    std::visit([this](const auto& one) { Obey(one); }, message);
  }
  posted_changeovers_.clear();
}

void Engine::Obey(const control::Prepare& prepare) {
  prepared_ = prepare;
  const OpNumber newest = group_.HoldOpens();
  if (on_ready_) on_ready_({prepare.id, newest});
}

void Engine::Obey(const control::Decision& decision) {
  if (!prepared_ || prepared_->id != decision.id) return;
  group_.ReleaseOpens();
  if (decision.commit) {
    group_.ChangeCellBytes(decision.first, ubt::CellBytes(prepared_->change.packet_bytes,
                                                          wire::kHeaderBytes));
    counters_.Add(Counter::kChangeovers);
  }
  prepared_.reset();
}

bool Engine::TakePosted(Instant now) {
  if (!posted_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  bool any = !posted_left_.empty() || !posted_failure_.ok() || !posted_changeovers_.empty();
  if (!posted_failure_.ok() && group_.failure().ok()) {
    group_.Fail(posted_failure_);
    failure_posted_ = true;
  }
  // After the failure: who knows its cause may have left because of it.
  for (const Rank peer : posted_left_) group_.OnPeerLeft(peer, now);
  posted_left_.clear();
  TakeChangeovers();
  while (!posted_calls_.empty() && !queued_.full()) {
    OR_CHECK(queued_.Push(posted_calls_.Pop()));
    queued_.Back()->started_at = now;
    any = true;
  }
  posted_.store(!posted_calls_.empty(), std::memory_order_release);
  return any;
}

// ---- The turn ----------------------------------------------------------------------------------

bool Engine::Turn(Instant now) {
  counters_.Add(Counter::kTurns);
  bool worked = TakePosted(now);
  bool idle = false;
  if (failed_) {
    FailAll(now);
    return ReceiveAll(now, &idle) || worked;  // packets still come in, and are refused
  }
  worked |= ReceiveAll(now, &idle);
  worked |= FlushQueued(now);
  worked |= AdmitCalls(now);
  group_.OnTime(idle, now);
  while (const std::optional<ubt::Narrowing> narrowing = group_.NextNarrowing()) {
    if (on_narrowing_) on_narrowing_(*narrowing);
  }
  worked |= SendAll(idle, now);
  worked |= EndOps(now);
  if (StallAt() <= now) TellOfStall(now);
  if (!group_.failure().ok()) {
    failed_ = true;
    recorder_.Record(now, Event::kGroupFailed, group_.called(), kNoRank,
                     static_cast<std::uint64_t>(group_.failure().code()));
    if (on_failure_) on_failure_(group_.failure(), !failure_posted_);
    FailAll(now);
    worked = true;
  }
  return worked;
}

bool Engine::ReceiveAll(Instant now, bool* idle) {
  bool any = false;
  *idle = false;
  for (int burst = 0; burst < kBurstsPerTurn && !*idle; ++burst) {
    const std::span<const RxPacket> packets = port_->Receive(now);
    *idle = packets.empty();
    for (const RxPacket& packet : packets) {
      const Counter verdict = TakePacket(packet.bytes, now);
      counters_.Add(verdict);
      if (verdict >= Counter::kMalformed) {
        recorder_.Record(now, Event::kPacketRefused, 0, kNoRank,
                         static_cast<std::uint64_t>(verdict), packet.bytes.size());
      }
      counters_.Add(Counter::kPacketsReceived);
      counters_.Add(Counter::kBytesReceived, packet.bytes.size());
    }
    any |= !packets.empty();
  }
  if (any && now >= look_at_drops_) {
    look_at_drops_ = now + kLookAtDropsEvery;  // it may cost a system call
    const std::uint64_t drops = port_->counters().receive_queue_drops;
    if (drops > receive_drops_) {
      counters_.Add(Counter::kKernelReceiveDrops, drops - receive_drops_);
      group_.OnReceiveOverflow(drops - receive_drops_, now);
      receive_drops_ = drops;
    }
  }
  return any;
}

// From bytes of anybody to a message of a known peer, or a counter.
Counter Engine::TakePacket(std::span<const std::byte> packet, Instant now) {
  wire::Header header;
  if (wire::ParseHeader(packet, &header) != wire::ParseResult::kOk) return Counter::kMalformed;
  if (header.group != group_id_) return Counter::kForeignGroup;
  if (header.epoch == wire::kProbeEpoch) return Counter::kLateProbe;
  if (header.epoch != epoch_) return Counter::kStaleEpoch;
  if (header.sender >= ranks_ || header.sender == rank_) return Counter::kUnknownSender;
  const OpNumber op = group_.WidenOp(header.op_low);
  const PacketNumber number = group_.WidenNumber(header.sender, header.number_low);
  if (!verify_[header.sender].Verify(packet, op, number)) return Counter::kBadTag;
  return group_.OnPacket(header, op, number, packet.subspan(wire::kHeaderBytes), now);
}

bool Engine::AdmitCalls(Instant now) {
  bool any = false;
  // While the port is busy no op's end is taken, and its place must not be given to another.
  if (port_busy_) return false;
  while (!queued_.empty() && group_.failure().ok()) {
    std::shared_ptr<Call>& call = queued_.Front();
    if (!StartOp(call, now)) {
      if (now >= call->started_at + call->timeout) {
        group_.Fail({Code::kTimeout, "an op could not begin within " +
                                         std::to_string(call->timeout / milliseconds(1)) +
                                         " ms (op_timeout); waiting for " +
                                         group_.DescribeRoom()});
      }
      break;
    }
    any = true;
    if (call->all_handed_out) {
      if (call->ops_open > 0) running_.push_back(call);
      queued_.Pop();
    }
  }
  return any;
}

// The next op of a call. False: no room now.
bool Engine::StartOp(const std::shared_ptr<Call>& call, Instant now) {
  const std::uint64_t element_bytes = ElementBytes(call->type);
  ubt::OpSpec spec;
  spec.count = std::min(call->count - call->next_element,
                        OpElementsMax(bucket_bytes_max_, call->type, call->reduce));
  spec.type = call->type;
  spec.reduce = call->reduce;
  spec.mode = call->mode;
  spec.fingerprint = call->key;
  // The op's data must be in place before the core opens it: results may be there already.
  const OpNumber number = group_.called() + 1;
  OpData& data = Data(number);
  const std::uint64_t first = call->next_element;
  data.call = call;
  data.first_element = first;
  data.in = call->in + first * element_bytes;
  data.out = call->out + first * element_bytes;
  ++call->ops_open;
  OpNumber op = 0;
  if (group_.Call(spec, call->timeout, now, &op) == ubt::Admission::kNoRoomYet) {
    --call->ops_open;
    data.call = nullptr;
    return false;
  }
  call->next_element += spec.count;
  call->all_handed_out = call->next_element == call->count;
  return true;
}

bool Engine::Flush(Instant now) {
  port_busy_ = !port_->Flush(now);
  if (port_busy_) return false;
  queued_data_.clear();
  for (const HeldWrite& write : held_writes_) {
    std::memcpy(write.to, write.bytes.data(), write.bytes.size());
  }
  held_writes_.clear();
  return true;
}

// What a busy network had left queued. Once it is out, callers and shards get their memory back,
// and before anything new is queued: a network may be busy after every turn.
bool Engine::FlushQueued(Instant now) {
  if (!port_busy_ || !Flush(now)) return false;
  GiveBackShards();
  EndOps(now);
  return true;
}

bool Engine::SendAll(bool idle, Instant now) {
  bool any = false;
  for (int i = 0; i < kSendsPerTurn && !port_busy_; ++i) {
    if (!group_.NextSend(idle, now, order_.get())) break;
    any = true;
    if (!SendOne(*order_, now)) break;
  }
  if (any) Flush(now);
  GiveBackShards();
  return any;
}

bool Engine::SendOne(ubt::SendOrder& order, Instant now) {
  wire::Sealer& seal = seal_[order.peer];
  std::size_t count = 0;
  std::size_t bytes = 0;
  wire::Header header;
  header.type = order.stage == Stage::kScatter ? wire::MessageType::kData
                                               : wire::MessageType::kResult;
  header.sender = static_cast<std::uint16_t>(rank_);
  header.group = group_id_;
  header.epoch = epoch_;
  header.shard = static_cast<std::uint16_t>(order.shard);
  header.op_low = static_cast<std::uint32_t>(order.op);
  for (std::uint32_t i = 0; i < order.cell_count; ++i) {
    const ubt::SendOrder::Cell& cell = order.cells[i];
    const auto out = std::span<std::byte>(headers_)
                         .subspan(i * wire::kHeaderBytes)
                         .first<wire::kHeaderBytes>();
    header.flags = cell.flags;
    header.cell = cell.cell;
    header.number_low = static_cast<std::uint32_t>(cell.number);
    wire::WriteHeader(header, out);
    const std::span<const std::byte> payload = PayloadOf(order, cell);
    seal.Seal(out, {}, payload, order.op, cell.number);
    segments_[count] = {out, payload};
    bytes += segments_[count++].bytes();
  }
  if (order.control_bytes > 0) {
    const auto control = std::span<std::byte>(order.control).first(order.control_bytes);
    const auto filling = std::span(zero_cell_).first(order.filling_bytes);
    seal.Seal(control.first<wire::kHeaderBytes>(), control.subspan(wire::kHeaderBytes), filling,
              order.control_op, order.control_number);
    segments_[count] = {control, filling};
    bytes += segments_[count++].bytes();
  }
  counters_.Add(Counter::kPacketsSent, count);
  counters_.Add(Counter::kBytesSent, bytes);
  bool taken = true;
  // More than one super-packet only of a cell in pieces, of which a port may take few at once.
  for (std::size_t first = 0; first < count && taken; first += port_->limits().segments_max) {
    const auto segments = std::span<const TxSegment>(segments_).subspan(first).first(
        std::min(count - first, port_->limits().segments_max));
    taken = port_->Send(order.peer, segments);
    if (taken) continue;
    Flush(now);
    // A network that takes nothing has lost the packet; repair brings it.
    taken = port_->Send(order.peer, segments);
  }
  const OpData& data = Data(order.op);
  if (taken && order.cell_count > 0 && order.stage == Stage::kScatter && data.in == data.out) {
    queued_data_.push_back({order.op, order.shard, order.cells[0].cell,
                            order.cells[order.cell_count - 1].cell});
  }
  return taken;
}

Instant Engine::NextWake() const {
  if (failed_) return group_.NextWake();
  const Instant wake = std::min(group_.NextWake(), StallAt());
  if (queued_.empty()) return wake;
  const Call& waiting = *queued_.Front();
  return std::min(wake, waiting.started_at + waiting.timeout);
}

Instant Engine::StallAt() const {
  if (stall_after_ == Duration{0} || (running_.empty() && queued_.empty())) return kNever;
  const Call& oldest = running_.empty() ? *queued_.Front() : *running_.front();
  return std::max({oldest.started_at, op_ended_at_, stall_told_at_}) + stall_after_;
}

void Engine::TellOfStall(Instant now) {
  stall_told_at_ = now;
  const Call& oldest = running_.empty() ? *queued_.Front() : *running_.front();
  const Duration waits = now - std::max(oldest.started_at, op_ended_at_);
  const OpNumber open = group_.done() + 1;
  std::string what = "what ended last has not left the network's queue of this rank";
  if (open <= group_.called()) {
    what = group_.DescribeOp(open) + " waits for " + group_.DescribeWaiting(open);
  } else if (!queued_.empty()) {
    what = "the next op waits for room: " + group_.DescribeRoom();
  }
  on_stall_("no op has ended for " + std::to_string(waits / milliseconds(1)) + " ms, of " +
            std::to_string(oldest.timeout / milliseconds(1)) + " ms (op_timeout); " + what);
}

std::span<const std::byte> Engine::PayloadOf(const ubt::SendOrder& order,
                                             const ubt::SendOrder::Cell& cell) {
  OpData& data = Data(order.op);
  const std::size_t bytes =
      std::size_t{data.grid.CellElements(order.shard, cell.cell)} * data.grid.element_bytes();
  const std::byte* const whole = order.stage == Stage::kBroadcast
                                     ? CellMemory(data, cell.cell)
                                     : data.in + Offset(data, order.shard, cell.cell);
  if ((cell.flags & wire::kFlagPiece) == 0) return {whole, bytes};
  const ubt::PieceRange piece =
      ubt::PieceAt((cell.flags & wire::kPieceMask) >> wire::kPieceShift, bytes);
  return {whole + piece.first, piece.bytes};
}

// Ends ops for their callers once nothing that was queued points into their memory any more.
bool Engine::EndOps(Instant now) {
  if (port_busy_) return false;
  bool any = false;
  while (const std::optional<ubt::OpEnd> end = group_.NextEnd()) {
    any = true;
    op_ended_at_ = now;
    const std::shared_ptr<Call> call = std::move(Data(end->op).call);
    Report& report = call->report;
    report.entries += end->count * ranks_;
    report.late_entries += end->ledger.late_entries;
    report.lost_entries += end->ledger.lost_entries;
    report.own_left_out_entries += end->ledger.own_left_out_entries;
    // Now: a busy network may have kept the caller's memory for a while after the op's own end.
    if (end->deadline != kNever && now > end->deadline) {
      report.after_deadline = std::max(report.after_deadline, now - end->deadline);
    }
    counters_.Add(Counter::kEntriesLost, end->ledger.lost_entries);
    if (end->outcome == ubt::OpEnd::Outcome::kDivergent) {
      report.outcome = Report::Outcome::kDivergent;
      counters_.Add(Counter::kOpsDivergent);
    } else {
      counters_.Add(Counter::kOpsAgreed);
    }
    if (--call->ops_open == 0 && call->all_handed_out) EndCall(call, now);
  }
  return any;
}

void Engine::EndCall(const std::shared_ptr<Call>& call, Instant now) {
  std::erase(running_, call);
  call->report.elapsed = now - call->started_at;
  on_call_end_(call);
}

// The group is broken: every call ends with the cause.
void Engine::FailAll(Instant now) {
  const auto fail = [&](const std::shared_ptr<Call>& call) {
    call->report.outcome = Report::Outcome::kFailed;
    call->report.status = group_.failure();
    call->report.elapsed = now - call->started_at;
    counters_.Add(Counter::kOpsFailed);
    on_call_end_(call);
  };
  // Nothing may point into the callers' memory when they get it back.
  if (!Flush(now)) return;
  for (OpData& data : ops_) data.call = nullptr;
  for (const std::shared_ptr<Call>& call : std::exchange(running_, {})) fail(call);
  while (!queued_.empty()) fail(queued_.Pop());
}

// ---- Payloads ----------------------------------------------------------------------------------

bool Engine::OpenShard(OpNumber op, const ubt::OpSpec& spec, const ubt::Grid& grid) {
  OpData& data = Data(op);
  const Kernels kernels = KernelsFor(spec.type, spec.reduce);
  std::byte* const shard = shards_.Take(grid.ShardElements(rank_) * kernels.accumulator_bytes);
  if (shard == nullptr) return false;
  data.grid = grid;
  data.kernels = kernels;
  data.shard = shard;
  return true;
}

void Engine::RetireShard(OpNumber op) {
  Data(op).shard = nullptr;
  ++shards_retired_;
}

// Once nothing that is queued in the port points into them any more.
void Engine::GiveBackShards() {
  for (; shards_retired_ > 0 && !port_busy_; --shards_retired_) shards_.GiveBackOldest();
}

ubt::StagedId Engine::Stage(std::span<const std::byte> payload) { return cells_.Take(payload); }

void Engine::Unstage(ubt::StagedId id) { cells_.GiveBack(id); }

void Engine::AddOwn(OpNumber op, CellIndex cell, bool first) {
  OpData& data = Data(op);
  const std::byte* const own = data.in + Offset(data, rank_, cell);
  Add(op, cell,
      {own, std::size_t{data.grid.CellElements(rank_, cell)} * data.grid.element_bytes()}, first);
}

void Engine::Add(OpNumber op, CellIndex cell, std::span<const std::byte> payload, bool first) {
  OpData& data = Data(op);
  const std::size_t count = payload.size() / data.grid.element_bytes();
  (first ? data.kernels.load : data.kernels.add)(CellMemory(data, cell), payload.data(), count);
}

void Engine::AddStaged(OpNumber op, CellIndex cell, ubt::StagedId id, bool first) {
  Add(op, cell, cells_.Get(id), first);
  cells_.GiveBack(id);
}

void Engine::CloseCell(OpNumber op, CellIndex cell, std::uint32_t contributors) {
  OpData& data = Data(op);
  std::byte* const memory = CellMemory(data, cell);
  const std::size_t count = data.grid.CellElements(rank_, cell);
  if (contributors == 0) {
    std::memset(memory, 0, count * data.grid.element_bytes());
    return;
  }
  data.kernels.finish(memory, memory, count, ranks_);
}

void Engine::PlaceOwn(OpNumber op, CellIndex cell) {
  OpData& data = Data(op);
  Place(op, rank_, cell,
        {CellMemory(data, cell),
         std::size_t{data.grid.CellElements(rank_, cell)} * data.grid.element_bytes()});
}

void Engine::Place(OpNumber op, Rank shard, CellIndex cell, std::span<const std::byte> payload) {
  Write(op, shard, cell, payload);
}

void Engine::Write(OpNumber op, Rank shard, CellIndex cell, std::span<const std::byte> payload) {
  OpData& data = Data(op);
  std::byte* const to = data.out + Offset(data, shard, cell);
  if (port_busy_ && IsQueued(op, shard, cell)) {
    held_writes_.push_back({to, {payload.begin(), payload.end()}});
    return;
  }
  std::memcpy(to, payload.data(), payload.size());
}

// A repeat, or the contribution to a cell that its owner has closed without it.
bool Engine::IsQueued(OpNumber op, Rank shard, CellIndex cell) const {
  return std::any_of(queued_data_.begin(), queued_data_.end(), [&](const QueuedData& queued) {
    return queued.op == op && queued.shard == shard && queued.first <= cell && cell <= queued.last;
  });
}

void Engine::PlaceStaged(OpNumber op, Rank shard, CellIndex cell, ubt::StagedId id) {
  Place(op, shard, cell, cells_.Get(id));
  cells_.GiveBack(id);
}

void Engine::PlaceZero(OpNumber op, Rank shard, CellIndex cell) {
  OpData& data = Data(op);
  const std::uint64_t count = data.grid.CellElements(shard, cell);
  Write(op, shard, cell, std::span(zero_cell_).first(count * data.grid.element_bytes()));
  const std::uint64_t first =
      data.first_element + data.grid.ShardFirst(shard) + data.grid.CellFirst(cell);
  Report& report = data.call->report;
  report.missing_elements += count;
  auto& ranges = report.missing_ranges;
  if (!ranges.empty() && ranges.back().first + ranges.back().second == first) {
    ranges.back().second += count;
  } else {
    ranges.emplace_back(first, count);
  }
}

}  // namespace optireduce
