#include "examples/sim/timeline.h"

#include <array>
#include <cstdio>
#include <utility>

#include "lib/values.h"
#include "transport/wire/parse.h"

namespace optireduce::sim {
namespace {

using wire::MessageType;

std::string_view Name(MessageType type) {
  switch (type) {
    case MessageType::kOpen: return "OPEN";
    case MessageType::kData: return "DATA";
    case MessageType::kResult: return "RESULT";
    case MessageType::kSets: return "SETS";
    case MessageType::kNack: return "NACK";
    case MessageType::kReport: return "REPORT";
    case MessageType::kStatement: return "STATEMENT";
    case MessageType::kNotYet: return "NOT_YET";
    case MessageType::kProbe: return "PROBE";
  }
  return "?";
}

std::string TimeText(Instant at) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%12.3f us  ", static_cast<double>(Nanos(at)) * 1e-3);
  return text.data();
}

std::string Cells(std::uint32_t first, std::uint32_t last) {
  if (first == last) return "cell " + std::to_string(first);
  return "cells " + std::to_string(first) + "-" + std::to_string(last);
}

std::string ReportText(const wire::ReportBlock& report, std::uint32_t ops_before_low) {
  const auto op = [ops_before_low](OpNumber number) {
    return std::to_string(static_cast<std::uint32_t>(number) - ops_before_low);
  };
  return "credit " + std::to_string(report.credit) + ", seen #" +
         std::to_string(report.highest_low) + ", opened " + op(report.opened) + ", called " +
         op(report.called) + ", done " + op(report.done);
}

}  // namespace

Timeline::Timeline(const Scenario& scenario, std::uint64_t lines_max,
                   std::function<void(const std::string&)> write)
    : ranks_(scenario.job.ranks),
      ops_before_low_(static_cast<std::uint32_t>(scenario.job.ops_before)),
      lines_max_(lines_max),
      write_(std::move(write)) {}

void Timeline::Line(const std::string& text) {
  EndBurst();
  if (++lines_ > lines_max_) {
    ++left_out_;
    return;
  }
  write_(text);
}

void Timeline::EndBurst() {
  if (!burst_) return;
  const Burst burst = *std::exchange(burst_, std::nullopt);
  std::string text = burst.what + " " + Cells(burst.first, burst.last);
  if (burst.packets > 1) text += " (" + std::to_string(burst.packets) + " packets)";
  Line(text);
}

void Timeline::AddCell(const std::string& what, std::uint32_t cell) {
  if (burst_ && burst_->what == what && cell > burst_->last) {
    burst_->last = cell;
    ++burst_->packets;
    return;
  }
  EndBurst();
  burst_ = Burst{what, cell, cell, 1};
}

std::string Timeline::OpName(std::uint32_t op_low) const {
  return "op " + std::to_string(op_low - ops_before_low_);
}

void Timeline::OnCall(Instant now, Rank rank, const JobCall& call) {
  std::string text = TimeText(now) + "rank " + std::to_string(rank) + "  call " +
                     std::to_string(call.index);
  if (!call.ended()) {
    Line(text + " made");
    return;
  }
  const Report& report = call.call->report;
  switch (report.outcome) {
    case Report::Outcome::kAgreed: text += " ended agreed"; break;
    case Report::Outcome::kDivergent: text += " ended divergent"; break;
    case Report::Outcome::kFailed: text += " failed: " + report.status.text(); break;
  }
  text += " after " + FormatDuration(report.elapsed);
  if (report.lost_entries > 0) text += ", entries lost " + std::to_string(report.lost_entries);
  Line(text);
}

void Timeline::OnPacket(const TraceRecord& record) {
  if (record.kind == TraceKind::kDeliver || record.kind == TraceKind::kDelay) return;
  if (record.packet == 0) {
    const std::string who = record.kind == TraceKind::kHeal
                                ? "network"
                                : "rank " + std::to_string(record.from);
    Line(TimeText(record.at) + who + "  " + std::string(sim::Name(record.kind)));
    return;
  }
  std::string text =
      TimeText(record.at) + std::to_string(record.from) + ">" + std::to_string(record.to) + "     ";
  if (record.kind != TraceKind::kSend) text += std::string(sim::Name(record.kind)) + " ";
  if (record.kind == TraceKind::kDrop) text += "(" + std::string(sim::Name(record.reason)) + ") ";
  wire::Header header;
  if (wire::ParseHeader(record.bytes, &header) != wire::ParseResult::kOk) {
    Line(text + "unreadable, " + std::to_string(record.bytes.size()) + " bytes");
    return;
  }
  text += std::string(Name(header.type)) + " " + OpName(header.op_low);
  if (!wire::IsPayloadType(header.type)) {
    const bool sent = record.kind == TraceKind::kSend;
    Line(sent ? text + Body(header, record.bytes.subspan(wire::kHeaderBytes)) : text);
    return;
  }
  text += " shard " + std::to_string(header.shard);
  if ((header.flags & wire::kFlagRepeat) != 0) text += " repeat";
  const bool incomplete =
      header.type == MessageType::kResult && (header.flags & wire::kFlagComplete) == 0;
  if (incomplete) text += " incomplete";
  AddCell(text, header.cell);
}

// What the message says, after its name and op.
std::string Timeline::Body(const wire::Header& header, std::span<const std::byte> body) const {
  using wire::ParseResult;
  std::string text;
  wire::Open open;
  wire::ReportBlock report;
  wire::Nack nack;
  wire::NotYet not_yet;
  wire::SetsView sets;
  if (header.type == MessageType::kOpen && wire::ParseOpen(body, &open) == ParseResult::kOk) {
    return ": " + std::to_string(open.count) + " " +
           std::string(optireduce::Name(static_cast<DataType>(open.data_type))) + " " +
           std::string(optireduce::Name(static_cast<ReduceOp>(open.reduce_op))) + " " +
           std::string(optireduce::Name(static_cast<Mode>(open.mode))) + "; " +
           ReportText(open.report, ops_before_low_);
  }
  if (header.type == MessageType::kReport &&
      wire::ParseReport(body, &report) == ParseResult::kOk) {
    return ": " + ReportText(report, ops_before_low_);
  }
  if (header.type == MessageType::kNack && wire::ParseNack(body, &nack) == ParseResult::kOk) {
    text = nack.stage == Stage::kScatter ? " wants contributions" : " wants results";
    if (nack.sets_only) text = " wants sets";
    for (std::uint32_t i = 0; i < nack.range_count; ++i) {
      const wire::CellRange& range = nack.ranges[i];
      text += (i == 0 ? ": " : ", ") + Cells(range.first, range.first + range.count - 1);
    }
    return text + "; seen #" + std::to_string(nack.highest_low);
  }
  if (header.type == MessageType::kNotYet &&
      wire::ParseNotYet(body, &not_yet) == ParseResult::kOk) {
    return not_yet.reason == wire::NotYet::Reason::kHeld ? " held" : " not called";
  }
  if (header.type == MessageType::kSets &&
      wire::ParseSets(body, ranks_, &sets) == ParseResult::kOk) {
    for (std::uint32_t run = 0; run < sets.run_count; ++run) {
      const wire::CellRange range = sets.range(run);
      text += (run == 0 ? ": " : ", ") + Cells(range.first, range.first + range.count - 1) +
              " without";
      for (Rank rank = 0; rank < ranks_; ++rank) {
        const auto byte = std::to_integer<unsigned>(sets.set(run)[rank / 8]);
        if ((byte >> rank % 8 & 1) == 0) text += " " + std::to_string(rank);
      }
    }
  }
  return text;
}

void Timeline::End() {
  EndBurst();
  if (left_out_ > 0) {
    write_("... and " + std::to_string(left_out_) + " more lines (--timeline prints all)");
  }
}

}  // namespace optireduce::sim
