// A peer that is made up packet by packet, towards one rank of a Net.
#ifndef OPTIREDUCE_TEST_UNIT_UBT_FORGER_H_
#define OPTIREDUCE_TEST_UNIT_UBT_FORGER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "test/unit/ubt/net.h"

namespace optireduce::ubt {

class Forger {
 public:
  Forger(Net* net, Rank from, Rank to = 0)
      : net_(net),
        from_(from),
        to_(to),
        next_number(net->settings().first_number),
        highest_seen(net->settings().first_number - 1) {
    report.credit = 90;
    report.opened = report.called = report.done = net->settings().ops_before;
  }

  // All calls return the verdict.
  Counter Send(MessageType type, OpNumber op, Rank shard, CellIndex cell, std::uint8_t flags,
               std::span<const std::byte> body) {
    Packet packet;
    packet.from = from_;
    packet.to = to_;
    packet.op = op;
    packet.number = next_number++;
    packet.header.type = type;
    packet.header.flags = flags;
    packet.header.sender = static_cast<std::uint16_t>(from_);
    packet.header.shard = static_cast<std::uint16_t>(shard);
    packet.header.op_low = static_cast<std::uint32_t>(op);
    packet.header.cell = cell;
    packet.header.number_low = static_cast<std::uint32_t>(packet.number);
    packet.body.assign(body.begin(), body.end());
    last = packet;
    return net_->Deliver(packet);
  }

  Counter Open(OpNumber op, const OpSpec& spec, Duration age = Duration{0}) {
    wire::Open open;
    report.called = std::max(report.called, op);
    open.report = Filled();
    open.report.age_ns = static_cast<std::uint64_t>(age.count());
    open.count = spec.count;
    open.data_type = static_cast<std::uint8_t>(spec.type);
    open.reduce_op = static_cast<std::uint8_t>(spec.reduce);
    open.mode = static_cast<std::uint8_t>(spec.mode);
    open.fingerprint = spec.fingerprint;
    std::array<std::byte, wire::kOpenBytes> body;
    wire::WriteOpen(open, body);
    return Send(MessageType::kOpen, op, 0, 0, 0, body);
  }

  // This peer's contribution to a cell of the receiver's shard.
  Counter Data(OpNumber op, CellIndex cell, std::uint8_t flags = 0) {
    return Send(MessageType::kData, op, to_, cell, flags,
                Cell(std::uint64_t{1} << from_, op, to_, cell));
  }
  // A result of this peer's shard; complete when all are in the set.
  Counter Result(OpNumber op, CellIndex cell) {
    return Result(op, cell, SetOfAll(net_->ranks()));
  }
  Counter Result(OpNumber op, CellIndex cell, std::uint64_t set) {
    const std::uint8_t flags = set == SetOfAll(net_->ranks()) ? wire::kFlagComplete : 0;
    return Send(MessageType::kResult, op, from_, cell, flags, Cell(set, op, from_, cell));
  }
  Counter Sets(OpNumber op, std::initializer_list<std::pair<wire::CellRange, std::uint64_t>> runs) {
    std::array<std::byte, 256> body;
    const std::uint32_t set_bytes = wire::SetBytes(net_->ranks());
    wire::SetsWriter writer(body, set_bytes);
    for (const auto& [range, set] : runs) {
      const std::array<std::byte, 1> bytes{static_cast<std::byte>(set)};
      EXPECT_TRUE(writer.Append(range, bytes));
    }
    return Send(MessageType::kSets, op, from_, 0, 0,
                std::span(body).first(writer.bytes_written()));
  }
  // `unread`: how long it lies in the receiver's queue.
  Counter Nack(OpNumber op, Stage stage, std::initializer_list<wire::CellRange> ranges,
               bool sets_only = false, Duration unread = Duration{0}) {
    wire::Nack nack;
    nack.stage = stage;
    nack.sets_only = sets_only;
    nack.highest_low = static_cast<std::uint32_t>(highest_seen);
    nack.hold_ns = static_cast<std::uint32_t>(
        std::min<Duration::rep>((net_->now - seen_at_).count(), 0xffffffff));
    for (const wire::CellRange& range : ranges) nack.ranges[nack.range_count++] = range;
    std::array<std::byte, wire::NackBytes(wire::kNackRangesMax)> body;
    const std::size_t bytes = wire::WriteNack(nack, body);
    net_->now += unread;
    return Send(MessageType::kNack, op, stage == Stage::kScatter ? from_ : to_, 0, 0,
                std::span(body).first(bytes));
  }
  Counter Report(std::uint8_t flags = 0) {
    std::array<std::byte, wire::kReportBlockBytes> body;
    wire::WriteReport(Filled(), body);
    return Send(MessageType::kReport, report.called, 0, 0, flags, body);
  }
  Counter NotYet(OpNumber op, Stage stage, wire::NotYet::Reason reason) {
    std::array<std::byte, wire::kNotYetBytes> body;
    wire::WriteNotYet({stage, reason}, body);
    return Send(MessageType::kNotYet, op, stage == Stage::kScatter ? to_ : from_, 0, 0, body);
  }

  // Contributes to all cells of the receiver's shard.
  void DataAll(OpNumber op) {
    const CellIndex cells = GridOf(op).Cells(to_);
    for (CellIndex cell = 0; cell < cells; ++cell) Data(op, cell);
  }

  // Takes note of what came from the receiver, for reports and NACKs.
  void See(const std::vector<Packet>& packets) {
    for (const Packet& packet : packets) {
      if (packet.to == from_ && packet.number > highest_seen) SeeUpTo(packet.number);
    }
  }
  void SeeUpTo(PacketNumber number) {
    highest_seen = number;
    seen_at_ = net_->now;
  }

  const Grid& GridOf(OpNumber op) const { return (*net_)[to_].actions.shards.at(op).grid; }
  std::vector<std::byte> Cell(std::uint64_t set, OpNumber op, Rank shard, CellIndex cell) const {
    const auto& shards = (*net_)[to_].actions.shards;
    Elements elements;
    if (!shards.contains(op)) {  // not open there: any full cell will do
      return ToBytes(Elements(kCellElements, SumOf(set, op, 0)));
    }
    const Grid& grid = GridOf(op);
    const std::uint64_t first = grid.ShardFirst(shard) + grid.CellFirst(cell);
    for (std::uint32_t i = 0; i < grid.CellElements(shard, cell); ++i) {
      elements.push_back(SumOf(set, op, first + i));
    }
    return ToBytes(elements);
  }

 private:
  wire::ReportBlock Filled() {
    report.highest_low = static_cast<std::uint32_t>(highest_seen);
    return report;
  }

  Net* net_;
  Rank from_;
  Rank to_;
  Instant seen_at_ = net_->now;

 public:
  wire::ReportBlock report;  // sent with OPEN and REPORT
  PacketNumber next_number;
  PacketNumber highest_seen;
  Packet last;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TEST_UNIT_UBT_FORGER_H_
