// What goes out next: control messages first, then cells to the peers in turn, then reports that
// found no cells to ride with.
#include <algorithm>

#include "lib/check.h"
#include "transport/ubt/group.h"
#include "transport/wire/parse.h"
#include "transport/wire/serialize.h"

namespace optireduce::ubt {
namespace {

using wire::MessageType;

}  // namespace

bool Group::NextSend(bool idle, Instant now, SendOrder* out) {
  out->cell_count = 0;
  out->control_bytes = 0;
  out->filling_bytes = 0;
  if (!failure_.ok()) return false;
  if (NextControl(now, out) || NextProbe(now, out)) return true;
  for (std::uint32_t i = 0; i < peers(); ++i) {
    const std::uint32_t at = (serve_next_ + i) % peers();
    const Rank peer = settings_.serve_order[at];
    if (!NextCells(peer, idle, now, out)) continue;
    serve_next_ = (at + 1) % peers();
    return true;
  }
  for (const Rank peer : settings_.serve_order) {
    Link& link = links_[peer];
    if (link.left || !ReportDue(link, now)) continue;
    out->peer = peer;
    WriteReportMessage(peer, 0, now, out);
    return true;
  }
  return false;
}

// ---- Control messages ------------------------------------------------------------------------

bool Group::NextControl(Instant now, SendOrder* out) {
  while (!control_.empty()) {
    const ControlItem item = control_.Pop();
    if (!links_[item.peer].left && WriteControl(item, now, out)) return true;
  }
  return false;
}

// The header of a control message, with its own packet number.
void Group::BeginControl(const ControlItem& item, Instant now, SendOrder* out) {
  Link& link = links_[item.peer];
  const PacketNumber number = link.tx.TakeNumber(false, now);
  ++link.packets_sent;
  wire::Header header;
  header.type = item.type;
  header.flags = item.flags;
  header.sender = static_cast<std::uint16_t>(settings_.rank);
  header.group = settings_.group_id;
  header.epoch = settings_.epoch;
  header.shard = static_cast<std::uint16_t>(item.shard);
  header.op_low = static_cast<std::uint32_t>(item.op);
  header.number_low = static_cast<std::uint32_t>(number);
  wire::WriteHeader(header, std::span<std::byte>(out->control).first<wire::kHeaderBytes>());
  out->peer = item.peer;
  out->control_op = item.op;
  out->control_number = number;
  out->control_bytes = wire::kHeaderBytes;
}

bool Group::WriteControl(const ControlItem& item, Instant now, SendOrder* out) {
  const auto body = std::span<std::byte>(out->control).subspan(wire::kHeaderBytes);
  Link& link = links_[item.peer];
  switch (item.type) {
    case MessageType::kOpen: {
      if (!IsOpen(item.op)) return false;
      OpState& op = At(item.op);
      BeginControl(item, now, out);
      op.open_number[item.peer] = out->control_number;
      wire::Open open;
      open.report = MakeReport(link, now);
      open.report.age_ns = static_cast<std::uint64_t>((now - op.called_at).count());
      open.count = op.spec.count;
      open.data_type = static_cast<std::uint8_t>(op.spec.type);
      open.reduce_op = static_cast<std::uint8_t>(op.spec.reduce);
      open.mode = static_cast<std::uint8_t>(op.spec.mode);
      open.fingerprint = op.spec.fingerprint;
      out->control_bytes += wire::WriteOpen(open, body);
      NoteReported(link, now);
      counters_->Add(Counter::kOpensSent);
      return true;
    }
    case MessageType::kNack:
      BeginControl(item, now, out);
      out->control_bytes += wire::WriteNack(item.nack, body);
      counters_->Add(Counter::kNacksSent);
      Note(now, Event::kNackSent, item.op, item.peer, item.nack.ranges[0].first,
           item.nack.ranges[0].count);
      return true;
    case MessageType::kNotYet:
      BeginControl(item, now, out);
      out->control_bytes += wire::WriteNotYet({item.stage, item.reason}, body);
      counters_->Add(Counter::kNotYetSent);
      return true;
    case MessageType::kReport:
      WriteReportMessage(item.peer, item.flags, now, out);
      return true;
    case MessageType::kSets:
      return WriteSets(item, now, out);
    case MessageType::kData:
    case MessageType::kResult:
    case MessageType::kStatement:
    case MessageType::kProbe:
      break;
  }
  OR_CHECK(false);
  return false;
}

// One packet of sets of incomplete cells; what does not fit goes in a next one.
bool Group::WriteSets(const ControlItem& item, Instant now, SendOrder* out) {
  if (!IsOpen(item.op)) return false;
  OpState& op = At(item.op);
  CellIndex cell = op.sets_from[item.peer];
  const std::size_t set_bytes = (settings_.ranks + 7) / 8;
  std::array<std::byte, kRanksMax / 8> set;
  ControlItem named = item;
  named.shard = settings_.rank;
  wire::SetsWriter writer(std::span<std::byte>(out->control).subspan(wire::kHeaderBytes),
                          static_cast<std::uint32_t>(set_bytes));
  for (; cell < op.own_cells; ++cell) {
    if (!op.closed.Test(cell) || op.complete.Test(cell)) continue;
    set.fill(std::byte{0});
    for (Rank r = 0; r < settings_.ranks; ++r) {
      if (op.received.Test(r, cell)) set[r / 8] |= static_cast<std::byte>(1U << r % 8);
    }
    if (!writer.Append({cell, 1}, std::span(set).first(set_bytes))) break;
  }
  op.sets_from[item.peer] = cell;
  if (cell < op.own_cells) Push(item);
  if (writer.run_count() == 0) return false;
  BeginControl(named, now, out);
  out->control_bytes += writer.bytes_written();
  counters_->Add(Counter::kSetsSent);
  return true;
}

// ---- Reports ---------------------------------------------------------------------------------

// Owed when the peer has used up three eighths of what it may have in flight, when it asks, or when
// the time for it has come.
bool Group::ReportDue(const Link& link, Instant now) const {
  const PacketNumber since = link.rx.highest() - link.credited_at_report;
  // Reports alone never make a report: with little credit two ranks would play ping-pong.
  const bool used = link.rx.credited_received() != link.payloads_at_report &&
                    since * 8 >= std::uint64_t{link.grant.told_packets()} * 3;
  return used || link.answer_wanted || link.report_due <= now;
}

wire::ReportBlock Group::MakeReport(Link& link, Instant now) {
  if (link.rx.highest() != link.credited_at_report) link.grant.OnCleanReport();
  wire::ReportBlock report;
  report.credit = link.grant.packets();
  report.received_low = static_cast<std::uint32_t>(link.rx.received());
  report.highest_low = static_cast<std::uint32_t>(link.rx.highest());
  report.hold_ns = link.rx.HoldNanos(now);
  report.opened = link.opens_in;
  report.called = called_;
  report.done = done_;
  report.divergent = divergent_;
  report.age_ns = static_cast<std::uint64_t>((now - called_at_).count());
  return report;
}

void Group::NoteReported(Link& link, Instant now) {
  link.credited_at_report = link.rx.highest();
  link.payloads_at_report = link.rx.credited_received();
  link.answer_wanted = false;
  if (done_ != called_) {
    link.report_due = kNever;  // RunReportTimers says when again
  } else if (link.reports_left > 0) {
    --link.reports_left;
    link.report_due = now + link.report_gap;
    link.report_gap *= 4;
    WakeBy(link.report_due);
  } else {
    link.report_due = kNever;
  }
  link.reported_at = now;
}

void Group::WriteReportMessage(Rank peer, std::uint8_t flags, Instant now, SendOrder* out) {
  Link& link = links_[peer];
  const std::uint32_t cells = out->cell_count;
  BeginControl({.type = MessageType::kReport, .peer = peer, .op = called_, .flags = flags,
                .nack = {}},
               now, out);
  out->cell_count = cells;
  out->control_bytes += wire::WriteReport(
      MakeReport(link, now), std::span<std::byte>(out->control).subspan(wire::kHeaderBytes));
  NoteReported(link, now);
  counters_->Add(Counter::kReportsSent);
}

// ---- Cells -----------------------------------------------------------------------------------

// One super-packet of cells for the peer, as far as its credit allows; a report rides with it.
bool Group::NextCells(Rank peer, bool idle, Instant now, SendOrder* out) {
  Link& link = links_[peer];
  if (link.left) return false;
  link.tx.NoteIdle(now);
  const std::uint32_t room = link.tx.Room();
  if (room == 0) return false;
  // At most half of the credit, so that the peer reports before it is used up.
  const std::uint32_t burst = std::clamp<std::uint32_t>(link.tx.credit() / 2, 1,
                                                        settings_.burst_cells_max);
  // A window smaller than a burst dribbles: wait for the report, unless nothing is in flight.
  if (room < burst && link.tx.in_flight() > 0) return false;
  const std::uint32_t most = std::min(room, burst);
  if (FillRepeats(peer, most, now, out)) {
    Note(now, Event::kRepeated, out->op, peer, out->cells[0].cell, out->cell_count);
  } else if (!FillNew(peer, most, idle, now, out)) {
    return false;
  }
  out->peer = peer;
  const PacketNumber since = link.rx.highest() - link.credited_at_report;
  // Only the last packet of a super-packet may be short, and the last cell of a shard is.
  const SendOrder::Cell& last = out->cells[out->cell_count - 1];
  const bool full = At(out->op).grid.CellIsFull(out->shard, last.cell) &&
                    (last.flags & wire::kFlagPiece) == 0;
  if (full && (since * 4 >= link.grant.told_packets() || ReportDue(link, now))) {
    WriteReportMessage(peer, 0, now, out);
  }
  return true;
}

// Repair goes before new data, the oldest op first, results before contributions.
bool Group::FillRepeats(Rank peer, std::uint32_t most, Instant now, SendOrder* out) {
  for (OpNumber number = oldest_; number <= newest_; ++number) {
    OpState& op = At(number);
    if (op.result_repeats[peer] > 0) {
      std::size_t cell = op.result_repeat.NextSet(peer);
      for (; cell != kNoBit && out->cell_count < most;
           cell = op.result_repeat.NextSet(peer, cell + 1)) {
        op.result_repeat.Clear(peer, cell);
        --op.result_repeats[peer];
        if (!AddCell(op, Stage::kBroadcast, peer, static_cast<CellIndex>(cell), true, now, out)) {
          break;
        }
      }
    }
    if (out->cell_count > 0) return true;
    if (op.data_repeats[peer] == 0) continue;
    const std::size_t first = op.grid.Flat(peer);
    const std::size_t end = first + op.grid.Cells(peer);
    for (std::size_t flat = op.data_repeat.NextSet(first);
         flat < end && out->cell_count < most; flat = op.data_repeat.NextSet(flat + 1)) {
      op.data_repeat.Clear(flat);
      --op.data_repeats[peer];
      // Its result may have come since: the contribution is overwritten and needed no more.
      if (op.held.Test(flat) || op.finished) continue;
      const auto cell = static_cast<CellIndex>(flat - first);
      if (!AddCell(op, Stage::kScatter, peer, cell, true, now, out)) break;
    }
    if (out->cell_count > 0) return true;
  }
  return false;
}

// The oldest op first, its results before its contributions. A burst that could still grow waits
// until there is nothing to receive.
bool Group::FillNew(Rank peer, std::uint32_t most, bool idle, Instant now, SendOrder* out) {
  for (OpNumber number = oldest_; number <= newest_; ++number) {
    OpState& op = At(number);
    const auto results =
        static_cast<std::uint32_t>(op.closed_order.size()) - op.broadcast_next[peer];
    if (results > 0 && (idle || results >= most || op.OwnShardClosed())) {
      FillResults(op, peer, most, now, out);
      if (out->cell_count > 0) return true;
    }
    if (op.called && !op.finished && op.scatter_next[peer] < op.grid.Cells(peer)) {
      FillData(op, peer, most, now, out);
      if (out->cell_count > 0) return true;
    }
  }
  return false;
}

void Group::FillResults(OpState& op, Rank peer, std::uint32_t most, Instant now, SendOrder* out) {
  std::uint32_t& next = op.broadcast_next[peer];
  while (next < op.closed_order.size() && out->cell_count < most) {
    const CellIndex cell = op.closed_order[next++];
    op.result_sent.Set(peer, cell);
    if (!AddCell(op, Stage::kBroadcast, peer, cell, false, now, out)) break;
  }
}

void Group::FillData(OpState& op, Rank peer, std::uint32_t most, Instant now, SendOrder* out) {
  CellIndex& next = op.scatter_next[peer];
  const CellIndex cells = op.grid.Cells(peer);
  while (next < cells && out->cell_count < most) {
    const CellIndex cell = next++;
    if (op.held.Test(op.grid.Flat(peer) + cell)) continue;  // decided without us
    if (!AddCell(op, Stage::kScatter, peer, cell, false, now, out)) break;
  }
}

// Adds a cell to the super-packet: whole, or, where the path does not carry that, in pieces. False:
// nothing of the same size may follow.
bool Group::AddCell(OpState& op, Stage stage, Rank peer, CellIndex cell, bool repeat, Instant now,
                    SendOrder* out) {
  const Rank shard = stage == Stage::kScatter ? peer : settings_.rank;
  const std::size_t bytes =
      std::size_t{op.grid.CellElements(shard, cell)} * op.grid.element_bytes();
  const std::uint8_t flags = repeat ? wire::kFlagRepeat : std::uint8_t{0};
  if (wire::kHeaderBytes + bytes <= links_[peer].carries_bytes) {
    AddPacket(op, stage, peer, cell, flags, now, out);
    return op.grid.CellIsFull(shard, cell);
  }
  for (std::uint32_t piece = 0; piece < PieceCount(bytes); ++piece) {
    AddPacket(op, stage, peer, cell,
              static_cast<std::uint8_t>(flags | wire::kFlagPiece | piece << wire::kPieceShift),
              now, out);
  }
  return false;
}

void Group::AddPacket(OpState& op, Stage stage, Rank peer, CellIndex cell, std::uint8_t flags,
                      Instant now, SendOrder* out) {
  Link& link = links_[peer];
  const bool repeat = (flags & wire::kFlagRepeat) != 0;
  const PacketNumber number = link.tx.TakeNumber(true, now);
  SendOrder::Cell& entry = out->cells[out->cell_count++];
  entry = {cell, number, flags};
  out->stage = stage;
  out->op = op.number;
  ++link.packets_sent;
  if (repeat) ++link.packets_repeated;
  if (stage == Stage::kScatter) {
    out->shard = peer;
    op.data_number_low[op.grid.Flat(peer) + cell] = static_cast<std::uint32_t>(number);
    counters_->Add(repeat ? Counter::kDataRepeated : Counter::kDataSent);
  } else {
    out->shard = settings_.rank;
    if (op.complete.Test(cell)) entry.flags |= wire::kFlagComplete;
    op.result_number_low[op.OwnIndex(peer, cell)] = static_cast<std::uint32_t>(number);
    counters_->Add(repeat ? Counter::kResultRepeated : Counter::kResultSent);
  }
}

}  // namespace optireduce::ubt
