// One handler per message. Every packet gets exactly one verdict.
#include <algorithm>
#include <bit>
#include <utility>

#include "lib/check.h"
#include "lib/serial.h"
#include "transport/ubt/group.h"
#include "transport/wire/parse.h"

namespace optireduce::ubt {
namespace {

using std::chrono::milliseconds;
using wire::MessageType;

// After that long without DATA or RESULT a sender's credit is back at its start.
constexpr Duration kIdleCredit = std::chrono::seconds(1);

bool ValidSpec(const wire::Open& open, std::uint64_t bytes_max) {
  if (open.data_type >= kDataTypes || open.reduce_op >= kReduceOps || open.transform != 0) {
    return false;
  }
  const auto type = static_cast<DataType>(open.data_type);
  const auto reduce = static_cast<ReduceOp>(open.reduce_op);
  if (!Supported(type, reduce)) return false;
  if (open.count > bytes_max / ElementBytes(type)) return false;
  return open.mode == 0 || (open.mode == 1 && MayBeBounded(type, reduce));
}

}  // namespace

Counter Group::OnPacket(const wire::Header& header, OpNumber op, PacketNumber number,
                        std::span<const std::byte> body, Instant now) {
  const Rank sender = header.sender;
  OR_CHECK(sender < settings_.ranks && sender != settings_.rank);
  if (!failure_.ok()) return Counter::kUnexpected;
  Link& link = links_[sender];
  const bool credited = header.type == MessageType::kData || header.type == MessageType::kResult;
  if (credited && now - link.rx.credited_at() > kIdleCredit) link.grant.OnIdle();
  if (!link.rx.Accept(number, credited, now)) return Counter::kDuplicate;
  switch (header.type) {
    case MessageType::kOpen:
      return OnOpen(link, sender, op, number, body, now);
    case MessageType::kData:
      return OnData(link, sender, header, op, body, now);
    case MessageType::kResult:
      return OnResult(link, sender, header, op, body, now);
    case MessageType::kSets:
      return OnSets(sender, header, op, body, now);
    case MessageType::kNack:
      return OnNack(link, sender, header, op, body, now);
    case MessageType::kReport:
      return OnReport(link, sender, header, number, body, now);
    case MessageType::kNotYet:
      return OnNotYet(sender, header, op, body, now);
    case MessageType::kProbe:
      return OnProbe(sender, header, body, now);
    case MessageType::kStatement:
      break;
  }
  return Counter::kUnexpected;
}

// There was no room for a packet: it counts as not received, and is asked for after a while.
Counter Group::RefuseForRoom(Link& link, Instant now) {
  const Instant due = now + BackedOff(link.rtt.repair_time(), link.refused_backoff++);
  link.rx.Refused(due);
  WakeBy(due);
  return Counter::kEarlyNoRoom;
}

// Room comes with the contributions that are next in order. Where ours is one of them, asking again
// before the call would only bring the same packets to the same full arena.
Counter Group::RefuseData(OpState& op, Link& link, Instant now) {
  counters_->Add(Counter::kArenaFull);
  op.waits_for_call = !op.called;
  return RefuseForRoom(link, now);
}

Counter Group::OnOpen(Link& link, Rank sender, OpNumber number, PacketNumber packet,
                      std::span<const std::byte> body, Instant now) {
  wire::Open open;
  if (wire::ParseOpen(body, &open) != wire::ParseResult::kOk ||
      !ValidSpec(open, settings_.op_bytes_max)) {
    return Counter::kMalformed;
  }
  TakeReport(link, open.report, packet, now);
  if (number < oldest_) return Counter::kDuplicate;
  OpSpec spec;
  spec.count = open.count;
  spec.type = static_cast<DataType>(open.data_type);
  spec.reduce = static_cast<ReduceOp>(open.reduce_op);
  spec.mode = static_cast<Mode>(open.mode);
  spec.fingerprint = open.fingerprint;
  // Bounded by what OpenShard has room for; the sender repeats what is not covered.
  if (!IsOpen(number) && !EnsureOpen(number, sender, spec, now)) return Counter::kEarlyNoRoom;
  OpState& op = At(number);
  if (!(op.spec == spec)) {
    Fail(Mismatch(number, sender, spec, op.opened_by, op.spec));
    return Counter::kAccepted;
  }
  if (op.opened_from.Test(sender)) return Counter::kDuplicate;
  const auto age = Duration(static_cast<Duration::rep>(
      std::min<std::uint64_t>(open.report.age_ns, std::uint64_t{1} << 62)));
  Note(now, Event::kOpOpened, number, sender, static_cast<std::uint64_t>(age.count()));
  NoteStart(op, sender, now - std::min(age, now - Instant{}), now);
  if (op.early_count > 0) TakeEarlyData(op, sender, now);
  while (link.opens_in < newest_) {
    const OpNumber next = link.opens_in + 1;
    if (next >= oldest_ && !At(next).opened_from.Test(sender)) break;
    link.opens_in = next;
  }
  if (op.spec.count == 0) MaybeFinish(op, now);
  return Counter::kAccepted;
}

// The sender's OPEN has come after some of its contributions, or the shard was decided without it:
// what waits for that becomes a contribution, or is dropped where its cell is closed.
void Group::TakeEarlyData(OpState& op, Rank sender, Instant now) {
  for (CellIndex cell = 0; cell < op.own_cells && op.early_count > 0; ++cell) {
    StagedId& waiting = op.data_staged[op.OwnIndex(sender, cell)];
    if (waiting == kNotStaged || op.received.Test(sender, cell)) continue;
    --op.early_count;
    if (op.closed.Test(cell)) {
      actions_->Unstage(std::exchange(waiting, kNotStaged));
      continue;
    }
    op.received.Set(sender, cell);
    ++op.in[cell];
    --op.data_lacking[sender];
    op.data_seen[sender] = cell + 1;
    Advance(op, cell, now);
  }
}

Counter Group::OnData(Link& link, Rank sender, const wire::Header& header, OpNumber number,
                      std::span<const std::byte> payload, Instant now) {
  if (header.shard != settings_.rank) return Counter::kMalformed;
  if (number < oldest_) return Counter::kLate;
  if (!IsOpen(number)) return RefuseForRoom(link, now);
  OpState& op = At(number);
  const CellIndex cell = header.cell;
  if (cell >= op.own_cells) return Counter::kMalformed;
  const std::size_t bytes =
      std::size_t{op.grid.CellElements(settings_.rank, cell)} * op.grid.element_bytes();
  const bool piece = (header.flags & wire::kFlagPiece) != 0;
  if (!piece && payload.size() != bytes) return Counter::kMalformed;
  if (op.received.Test(sender, cell)) return Counter::kDuplicate;
  if (op.closed.Test(cell)) return Counter::kLate;
  if (piece) {
    if (!TakePiece(header, number, Stage::kScatter, bytes, &payload)) return Counter::kMalformed;
    if (payload.empty()) return Counter::kWaited;
  }
  if (!op.opened_from.Test(sender)) {
    // A contribution counts only after its sender's OPEN was compared: until then it waits.
    StagedId& waiting = op.data_staged[op.OwnIndex(sender, cell)];
    if (waiting != kNotStaged) return Counter::kDuplicate;
    link.answer_wanted = true;  // a report shows the sender that its OPEN is lost
    waiting = actions_->Stage(payload);
    if (waiting == kNotStaged) return RefuseData(op, link, now);
    ++op.early_count;
    return Counter::kWaited;
  }

  const std::uint32_t place = place_in_sum_[sender];
  std::uint16_t& next = op.next[cell];
  // The own contribution comes first and costs no waiting.
  if (next < settings_.ranks && settings_.sum_order[next] == settings_.rank &&
      op.received.Test(settings_.rank, cell)) {
    actions_->AddOwn(op.number, cell, next == 0);
    ++next;
  }
  Counter verdict = Counter::kAccepted;
  if (place == next) {
    actions_->Add(op.number, cell, payload, next == 0);
    ++next;
  } else {
    const StagedId id = actions_->Stage(payload);
    if (id == kNotStaged) return RefuseData(op, link, now);
    op.data_staged[op.OwnIndex(sender, cell)] = id;
    verdict = Counter::kWaited;
  }
  op.received.Set(sender, cell);
  ++op.in[cell];
  --op.data_lacking[sender];
  if ((header.flags & wire::kFlagRepeat) == 0) {
    op.data_seen[sender] = std::max(op.data_seen[sender], cell + 1);
  }
  link.ask_backoff = 0;
  link.gaps_in_vain = 0;
  if (op.grid.CellIsFull(settings_.rank, cell) || op.own_cells == 1) link.full_in_vain = 0;
  link.refused_backoff = 0;
  Advance(op, cell, now);
  return verdict;
}

Counter Group::OnResult(Link& link, Rank sender, const wire::Header& header, OpNumber number,
                        std::span<const std::byte> payload, Instant now) {
  if (header.shard != sender) return Counter::kMalformed;
  if (number < oldest_) return Counter::kDuplicate;
  if (!IsOpen(number)) return RefuseForRoom(link, now);
  OpState& op = At(number);
  const CellIndex cell = header.cell;
  if (cell >= op.grid.Cells(sender)) return Counter::kMalformed;
  const std::size_t bytes =
      std::size_t{op.grid.CellElements(sender, cell)} * op.grid.element_bytes();
  const bool piece = (header.flags & wire::kFlagPiece) != 0;
  if (!piece && payload.size() != bytes) return Counter::kMalformed;
  const std::size_t flat = op.grid.Flat(sender) + cell;
  if (op.held.Test(flat) || op.result_staged[flat] != kNotStaged) return Counter::kDuplicate;
  if (op.finished) return Counter::kLate;
  if (piece) {
    if (!TakePiece(header, number, Stage::kBroadcast, bytes, &payload)) return Counter::kMalformed;
    if (payload.empty()) return Counter::kWaited;
  }
  const bool complete = (header.flags & wire::kFlagComplete) != 0;
  if (complete) {
    op.open_covered.Set(sender);
  } else {
    if (op.spec.mode == Mode::kExact) return Counter::kMalformed;
    op.set_wanted.Set(flat);
  }
  op.result_seen[sender] = std::max(op.result_seen[sender], cell + 1);
  link.ask_backoff = 0;
  link.gaps_in_vain = 0;
  if (op.grid.CellIsFull(sender, cell) || op.grid.Cells(sender) == 1) link.full_in_vain = 0;
  link.refused_backoff = 0;
  if (!op.called || (!complete && !op.set_known.Test(flat))) {
    const StagedId id = actions_->Stage(payload);
    if (id == kNotStaged) {
      counters_->Add(Counter::kArenaFull);
      return RefuseForRoom(link, now);
    }
    op.result_staged[flat] = id;
    return Counter::kWaited;
  }
  actions_->Place(op.number, sender, cell, payload);
  MarkHeld(op, sender, cell);
  MaybeFinish(op, now);
  return Counter::kAccepted;
}

// The contributors of cells that are not complete. Counted once per cell, whenever it comes.
Counter Group::OnSets(Rank sender, const wire::Header& header, OpNumber number,
                      std::span<const std::byte> body, Instant now) {
  wire::SetsView sets;
  if (wire::ParseSets(body, settings_.ranks, &sets) != wire::ParseResult::kOk ||
      header.shard != sender) {
    return Counter::kMalformed;
  }
  if (number < oldest_) return Counter::kDuplicate;
  if (!IsOpen(number)) return Counter::kEarlyNoRoom;
  OpState& op = At(number);
  if (op.spec.mode != Mode::kBounded) return Counter::kMalformed;
  const CellIndex cells = op.grid.Cells(sender);
  for (std::uint32_t run = 0; run < sets.run_count; ++run) {
    const wire::CellRange range = sets.range(run);
    if (range.first >= cells || range.count > cells - range.first) return Counter::kMalformed;
  }
  if (op.finished) return Counter::kLate;
  bool any = false;
  for (std::uint32_t run = 0; run < sets.run_count; ++run) {
    const wire::CellRange range = sets.range(run);
    const std::span<const std::byte> set = sets.set(run);
    std::uint32_t in = 0;
    for (const std::byte byte : set) {
      in += static_cast<std::uint32_t>(std::popcount(std::to_integer<unsigned>(byte)));
    }
    const bool own_in =
        (std::to_integer<unsigned>(set[settings_.rank / 8]) >> settings_.rank % 8 & 1) != 0;
    for (CellIndex cell = range.first; cell < range.first + range.count; ++cell) {
      if (!op.set_known.Set(op.grid.Flat(sender) + cell)) continue;
      any = true;
      const std::uint64_t elements = op.grid.CellElements(sender, cell);
      op.ledger.lost_entries += (settings_.ranks - in) * elements;
      if (!own_in) op.ledger.own_left_out_entries += elements;
    }
  }
  if (!any) return Counter::kDuplicate;
  PlaceStagedResults(op);
  MaybeFinish(op, now);
  return Counter::kAccepted;
}

Counter Group::OnNack(Link& link, Rank sender, const wire::Header& header, OpNumber number,
                      std::span<const std::byte> body, Instant now) {
  wire::Nack nack;
  if (wire::ParseNack(body, &nack) != wire::ParseResult::kOk) return Counter::kMalformed;
  counters_->Add(Counter::kNacksReceived);
  Note(now, Event::kNackReceived, number, sender, nack.ranges[0].first, nack.ranges[0].count);
  // DATA is asked for by the owner of the shard, RESULT from its owner.
  const Rank owner = nack.stage == Stage::kScatter ? sender : settings_.rank;
  if (header.shard != owner) return Counter::kMalformed;
  if (number < oldest_) return Counter::kDuplicate;
  const auto answer = [&](wire::NotYet::Reason reason) {
    Push({.type = MessageType::kNotYet, .peer = sender, .op = number, .shard = owner,
          .stage = nack.stage, .reason = reason, .nack = {}});
  };
  if (!IsOpen(number) || (nack.stage == Stage::kScatter && !At(number).called)) {
    answer(wire::NotYet::Reason::kNotCalled);
    return Counter::kAccepted;
  }
  OpState& op = At(number);
  const CellIndex cells = op.grid.Cells(owner);
  const PacketNumber seen = Widen(nack.highest_low, link.tx.last_number());
  for (std::uint32_t i = 0; i < nack.range_count; ++i) {
    const wire::CellRange range = nack.ranges[i];
    if (range.first >= cells || range.count > cells - range.first) return Counter::kMalformed;
  }
  // What had gone out that long before the question was asked, not before it is read, is old.
  const Instant old =
      link.tx.AskedAt(seen, Duration(nack.hold_ns), now) - link.rtt.repair_time();
  bool any = false;
  for (std::uint32_t i = 0; i < nack.range_count; ++i) {
    const wire::CellRange range = nack.ranges[i];
    if (nack.sets_only) {
      PushSets(op, sender, range.first);
      any = true;
    } else if (nack.stage == Stage::kScatter) {
      any |= RepeatData(op, owner, range, seen, link, old);
    } else {
      any |= RepeatResults(op, sender, range, seen, link, old);
    }
  }
  if (any && (header.flags & wire::kFlagInVain) != 0) Suspect(sender, now);
  if (!any && nack.stage == Stage::kBroadcast && !op.OwnShardClosed()) {
    answer(wire::NotYet::Reason::kHeld);
  }
  return Counter::kAccepted;
}

// Queues repeats of contributions that are known or taken to be lost: those that last went out
// with a number the owner has seen past, or longer ago than the repair time.
bool Group::RepeatData(OpState& op, Rank owner, const wire::CellRange& range, PacketNumber seen,
                       const Link& link, Instant old) {
  bool any = false;
  const CellIndex end = std::min<CellIndex>(range.first + range.count, op.scatter_next[owner]);
  for (CellIndex cell = range.first; cell < end; ++cell) {
    const std::size_t flat = op.grid.Flat(owner) + cell;
    // A placed result has overwritten the contribution, and the owner needs it no more.
    if (op.finished || op.held.Test(flat)) continue;
    const PacketNumber sent = Widen(op.data_number_low[flat], link.tx.last_number());
    if (sent > seen && !link.tx.SentBefore(sent, old)) continue;
    any = true;
    if (op.data_repeat.Set(flat)) ++op.data_repeats[owner];
  }
  return any;
}

bool Group::RepeatResults(OpState& op, Rank peer, const wire::CellRange& range, PacketNumber seen,
                          const Link& link, Instant old) {
  bool any = false;
  for (CellIndex cell = range.first; cell < range.first + range.count; ++cell) {
    if (!op.closed.Test(cell) || !op.result_sent.Test(peer, cell)) continue;
    const PacketNumber sent =
        Widen(op.result_number_low[op.OwnIndex(peer, cell)], link.tx.last_number());
    if (sent > seen && !link.tx.SentBefore(sent, old)) continue;
    any = true;
    if (op.result_repeat.Set(peer, cell)) ++op.result_repeats[peer];
    if (!op.complete.Test(cell)) PushSets(op, peer, cell);
  }
  return any;
}

Counter Group::OnReport(Link& link, Rank sender, const wire::Header& header, PacketNumber number,
                        std::span<const std::byte> body, Instant now) {
  wire::ReportBlock report;
  if (wire::ParseReport(body, &report) != wire::ParseResult::kOk) return Counter::kMalformed;
  if ((header.flags & wire::kFlagAnswer) != 0) links_[sender].answer_wanted = true;
  TakeReport(link, report, number, now);
  return Counter::kAccepted;
}

void Group::TakeReport(Link& link, const wire::ReportBlock& report, PacketNumber number,
                       Instant now) {
  if (link.reported && number < link.report_number) return;  // overtaken by a newer one
  link.reported = true;
  link.report_number = number;
  link.report_at = now;
  link.release_backoff = 0;
  const PacketNumber highest = Widen(report.highest_low, link.tx.last_number());
  const Duration rtt =
      link.tx.OnReport(highest, report.credit, Duration(report.hold_ns), now);
  // A report that waited while this process was stopped says nothing about the network.
  const bool paused = last_turn_ != Instant{} && now - last_turn_ > kPause;
  if (rtt >= Duration{0} && !paused) link.rtt.Sample(rtt);
  // Numbers that only rise, and never past what exists.
  link.opened = std::max(link.opened, std::min(report.opened, called_));
  const OpNumber ahead = newest_ + settings_.ops_behind_max + 1;
  link.called = std::max(link.called, std::min(report.called, ahead));
  const OpNumber done_before = link.done;
  link.done = std::max(link.done, std::min(report.done, called_));
  link.divergent = std::max(link.divergent, std::min(report.divergent, ahead));
  if (link.done != done_before) Retire(now);
  ResendLostOpens(link, highest, now);
}

// The peer has seen packets past one of our OPENs and does not have it: it was lost.
void Group::ResendLostOpens(Link& link, PacketNumber seen, Instant now) {
  const auto peer = static_cast<Rank>(&link - links_.data());
  for (OpNumber number = std::max(oldest_, link.opened + 1); number <= called_; ++number) {
    OpState& op = At(number);
    if (op.open_covered.Test(peer) || op.open_number[peer] == 0 || op.open_number[peer] > seen) {
      continue;
    }
    op.open_number[peer] = 0;  // until it has gone out again
    PushOpen(peer, number);
    link.open_due = now + link.rtt.repair_time();
  }
}

Counter Group::OnNotYet(Rank sender, const wire::Header& header, OpNumber number,
                        std::span<const std::byte> body, Instant now) {
  wire::NotYet not_yet;
  if (wire::ParseNotYet(body, &not_yet) != wire::ParseResult::kOk) return Counter::kMalformed;
  if (!IsOpen(number) || header.shard >= settings_.ranks) return Counter::kUnexpected;
  Note(now, Event::kNotYetReceived, number, sender, header.shard,
       static_cast<std::uint64_t>(not_yet.reason));
  At(number).not_yet_after[sender] = now + milliseconds(10);
  if (not_yet.reason == wire::NotYet::Reason::kHeld) At(number).last_held = now;
  return Counter::kAccepted;
}

}  // namespace optireduce::ubt
