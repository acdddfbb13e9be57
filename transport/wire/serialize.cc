#include "transport/wire/serialize.h"

#include <cstring>

#include "lib/check.h"
#include "transport/wire/byte_order.h"

namespace optireduce::wire {
namespace {

std::byte Byte(std::uint8_t value) { return static_cast<std::byte>(value); }

}  // namespace

void WriteHeader(const Header& header, std::span<std::byte, kHeaderBytes> out) {
  std::byte* const p = out.data();
  p[0] = Byte(static_cast<std::uint8_t>((kVersion << 4) | static_cast<std::uint8_t>(header.type)));
  p[1] = Byte(header.flags);
  StoreBig(header.sender, p + 2);
  StoreBig(header.group, p + 4);
  StoreBig(header.epoch, p + 8);
  StoreBig(header.shard, p + 10);
  StoreBig(header.op_low, p + 12);
  StoreBig(header.cell, p + 16);
  StoreBig(header.number_low, p + 20);
  StoreBig(header.tag, p + kTagOffset);
}

std::size_t WriteReport(const ReportBlock& report, std::span<std::byte> out) {
  OR_CHECK(out.size() >= kReportBlockBytes);
  std::byte* const p = out.data();
  StoreBig(report.credit, p);
  StoreBig(report.received_low, p + 4);
  StoreBig(report.highest_low, p + 8);
  StoreBig(report.hold_ns, p + 12);
  StoreBig(report.opened, p + 16);
  StoreBig(report.called, p + 24);
  StoreBig(report.done, p + 32);
  StoreBig(report.divergent, p + 40);
  StoreBig(report.age_ns, p + 48);
  StoreBig(report.pressure, p + 56);
  std::memset(p + 58, 0, kReportBlockBytes - 58);
  return kReportBlockBytes;
}

std::size_t WriteOpen(const Open& open, std::span<std::byte> out) {
  OR_CHECK(out.size() >= kOpenBytes);
  WriteReport(open.report, out);
  std::byte* const p = out.data() + kReportBlockBytes;
  StoreBig(open.count, p);
  p[8] = Byte(open.data_type);
  p[9] = Byte(open.reduce_op);
  p[10] = Byte(open.mode);
  p[11] = Byte(open.transform);
  std::memset(p + 12, 0, 4);
  StoreBig(open.fingerprint, p + 16);
  return kOpenBytes;
}

std::size_t WriteNack(const Nack& nack, std::span<std::byte> out) {
  OR_CHECK(nack.range_count >= 1 && nack.range_count <= kNackRangesMax);
  const std::size_t bytes = NackBytes(nack.range_count);
  OR_CHECK(out.size() >= bytes);
  std::byte* p = out.data();
  p[0] = Byte(static_cast<std::uint8_t>(nack.stage));
  p[1] = Byte(nack.sets_only ? 1 : 0);
  StoreBig(static_cast<std::uint16_t>(nack.range_count), p + 2);
  StoreBig(nack.highest_low, p + 4);
  StoreBig(nack.hold_ns, p + 8);
  p += kNackFixedBytes;
  for (const CellRange& range : std::span(nack.ranges).first(nack.range_count)) {
    OR_CHECK(Valid(range));
    StoreBig(range.first, p);
    StoreBig(range.count, p + 4);
    p += kRangeBytes;
  }
  return bytes;
}

std::size_t WriteNotYet(const NotYet& not_yet, std::span<std::byte> out) {
  OR_CHECK(out.size() >= kNotYetBytes);
  std::byte* const p = out.data();
  p[0] = Byte(static_cast<std::uint8_t>(not_yet.stage));
  p[1] = Byte(static_cast<std::uint8_t>(not_yet.reason));
  std::memset(p + 2, 0, 2);
  return kNotYetBytes;
}

std::size_t WriteProbe(const Probe& probe, std::span<std::byte> out) {
  OR_CHECK(out.size() >= kProbeFixedBytes);
  StoreBig(probe.round, out.data());
  StoreBig(probe.packet_bytes, out.data() + 4);
  return kProbeFixedBytes;
}

std::size_t WriteStatement(const StatementView& statement, std::span<std::byte> out) {
  const bool has_bitmap = statement.kind == StatementView::Kind::kBitmap;
  if (has_bitmap) {
    OR_CHECK(Valid(statement.range));
    OR_CHECK(statement.bitmap.size() == BitmapBytes(statement.range.count));
  } else {
    OR_CHECK(statement.range == CellRange{} && statement.bitmap.empty());
  }
  const std::size_t bytes = kStatementFixedBytes + statement.bitmap.size();
  OR_CHECK(out.size() >= bytes);
  std::byte* const p = out.data();
  p[0] = Byte(static_cast<std::uint8_t>(statement.kind));
  p[1] = Byte(statement.answer_wanted ? 1 : 0);
  std::memset(p + 2, 0, 2);
  StoreBig(statement.range.first, p + 4);
  StoreBig(statement.range.count, p + 8);
  if (has_bitmap) {
    std::memcpy(p + kStatementFixedBytes, statement.bitmap.data(), statement.bitmap.size());
    // Bits past the last cell are zero on the wire, whatever the caller's last byte holds there.
    if (const std::uint32_t used = statement.range.count % 8; used != 0) {
      p[bytes - 1] &= static_cast<std::byte>((1u << used) - 1);
    }
  }
  return bytes;
}

SetsWriter::SetsWriter(std::span<std::byte> out, std::uint32_t set_bytes)
    : out_(out), set_bytes_(set_bytes) {
  OR_CHECK(set_bytes >= 1 && set_bytes <= SetBytes(kRanksMax));
  OR_CHECK(out.size() >= kSetsFixedBytes + kRangeBytes + set_bytes);
  StoreBig(std::uint16_t{0}, out_.data());
  StoreBig(static_cast<std::uint16_t>(set_bytes), out_.data() + 2);
}

std::size_t SetsWriter::bytes_written() const {
  return kSetsFixedBytes + run_count_ * (kRangeBytes + set_bytes_);
}

std::byte* SetsWriter::run(std::uint32_t index) const {
  return out_.data() + kSetsFixedBytes + index * (kRangeBytes + set_bytes_);
}

bool SetsWriter::Append(CellRange range, std::span<const std::byte> set) {
  OR_CHECK(Valid(range));
  OR_CHECK(set.size() == set_bytes_);
  if (run_count_ > 0) {
    std::byte* const last = run(run_count_ - 1);
    const CellRange before{LoadBig<std::uint32_t>(last), LoadBig<std::uint32_t>(last + 4)};
    const CellRange joined{before.first, before.count + range.count};
    if (before.first + before.count == range.first && joined.count > before.count &&
        Valid(joined) && std::memcmp(last + kRangeBytes, set.data(), set_bytes_) == 0) {
      StoreBig(joined.count, last + 4);
      return true;
    }
  }
  if (run_count_ == 0xffff || bytes_written() + kRangeBytes + set_bytes_ > out_.size()) {
    return false;
  }
  std::byte* const p = run(run_count_);
  StoreBig(range.first, p);
  StoreBig(range.count, p + 4);
  std::memcpy(p + kRangeBytes, set.data(), set_bytes_);
  ++run_count_;
  StoreBig(static_cast<std::uint16_t>(run_count_), out_.data());
  return true;
}

}  // namespace optireduce::wire
