#include "transport/wire/parse.h"

#include <algorithm>

#include "lib/check.h"
#include "optireduce/types.h"
#include "transport/wire/byte_order.h"

namespace optireduce::wire {
namespace {

std::uint8_t U8(const std::byte* p) { return std::to_integer<std::uint8_t>(*p); }
std::uint16_t U16(const std::byte* p) { return LoadBig<std::uint16_t>(p); }
std::uint32_t U32(const std::byte* p) { return LoadBig<std::uint32_t>(p); }
std::uint64_t U64(const std::byte* p) { return LoadBig<std::uint64_t>(p); }

bool AllZero(const std::byte* p, std::size_t bytes) {
  return std::all_of(p, p + bytes, [](std::byte b) { return b == std::byte{0}; });
}

// True where bits at and above `bits` in the last byte of a bit set of `bits` bits are zero.
bool TailZero(std::span<const std::byte> set, std::uint32_t bits) {
  const std::uint32_t used = bits % 8;
  return used == 0 || (std::to_integer<unsigned>(set.back()) >> used) == 0;
}

CellRange LoadRange(const std::byte* p) { return {U32(p), U32(p + 4)}; }

std::uint8_t KnownFlags(MessageType type) {
  if (type == MessageType::kResult) {
    return kFlagComplete | kFlagRepeat | kFlagPiece | kPieceMask;
  }
  if (type == MessageType::kData) return kFlagRepeat | kFlagPiece | kPieceMask;
  if (type == MessageType::kNack) return kFlagInVain;
  if (type == MessageType::kReport || type == MessageType::kProbe) return kFlagAnswer;
  return 0;
}

bool HasShard(MessageType type) {
  return type != MessageType::kOpen && type != MessageType::kReport && type != MessageType::kProbe;
}

void LoadReport(const std::byte* p, ReportBlock* report) {
  report->credit = U32(p);
  report->received_low = U32(p + 4);
  report->highest_low = U32(p + 8);
  report->hold_ns = U32(p + 12);
  report->opened = U64(p + 16);
  report->called = U64(p + 24);
  report->done = U64(p + 32);
  report->divergent = U64(p + 40);
  report->age_ns = U64(p + 48);
  report->pressure = U16(p + 56);
}

ParseResult ExactLength(std::span<const std::byte> body, std::size_t bytes) {
  if (body.size() < bytes) return ParseResult::kShort;
  return body.size() == bytes ? ParseResult::kOk : ParseResult::kLength;
}

}  // namespace

CellRange SetsView::range(std::size_t run) const {
  OR_CHECK(run < run_count);
  return LoadRange(runs.data() + run * (kRangeBytes + set_bytes));
}

std::span<const std::byte> SetsView::set(std::size_t run) const {
  OR_CHECK(run < run_count);
  return runs.subspan(run * (kRangeBytes + set_bytes) + kRangeBytes, set_bytes);
}

ParseResult ParseHeader(std::span<const std::byte> packet, Header* header) {
  if (packet.size() < kHeaderBytes) return ParseResult::kShort;
  const std::byte* const p = packet.data();
  const std::uint8_t first = U8(p);
  if (first >> 4 != kVersion) return ParseResult::kOtherVersion;
  const std::uint8_t type = first & 0x0f;
  if (type < 1 || type > kMessageTypes) return ParseResult::kType;
  header->type = static_cast<MessageType>(type);
  header->flags = U8(p + 1);
  if ((header->flags & ~KnownFlags(header->type)) != 0) return ParseResult::kFlags;
  if ((header->flags & (kFlagPiece | kPieceMask)) > 0 && (header->flags & kFlagPiece) == 0) {
    return ParseResult::kFlags;
  }
  header->sender = U16(p + 2);
  header->group = U32(p + 4);
  header->epoch = U16(p + 8);
  header->shard = U16(p + 10);
  header->op_low = U32(p + 12);
  header->cell = U32(p + 16);
  header->number_low = U32(p + 20);
  header->tag = U64(p + kTagOffset);
  if (header->sender >= kRanksMax || header->shard >= kRanksMax) return ParseResult::kRange;
  if (!HasShard(header->type) && header->shard != 0) return ParseResult::kReserved;
  if (IsPayloadType(header->type)) {
    if (packet.size() == kHeaderBytes) return ParseResult::kLength;  // a cell has an element
  } else if (header->cell != 0) {
    return ParseResult::kReserved;
  }
  return ParseResult::kOk;
}

ParseResult ParseReport(std::span<const std::byte> body, ReportBlock* report) {
  if (const auto length = ExactLength(body, kReportBlockBytes); length != ParseResult::kOk) {
    return length;
  }
  if (!AllZero(body.data() + 58, kReportBlockBytes - 58)) return ParseResult::kReserved;
  LoadReport(body.data(), report);
  return ParseResult::kOk;
}

ParseResult ParseOpen(std::span<const std::byte> body, Open* open) {
  if (const auto length = ExactLength(body, kOpenBytes); length != ParseResult::kOk) return length;
  const auto block = body.first(kReportBlockBytes);
  if (const auto result = ParseReport(block, &open->report); result != ParseResult::kOk) {
    return result;
  }
  const std::byte* const p = body.data() + kReportBlockBytes;
  open->count = U64(p);
  open->data_type = U8(p + 8);
  open->reduce_op = U8(p + 9);
  open->mode = U8(p + 10);
  open->transform = U8(p + 11);
  open->fingerprint = U64(p + 16);
  if (!AllZero(p + 12, 4)) return ParseResult::kReserved;
  if (open->data_type >= kDataTypes || open->reduce_op >= kReduceOps ||
      open->mode > static_cast<std::uint8_t>(Mode::kBounded) || open->transform != 0) {
    return ParseResult::kRange;
  }
  return ParseResult::kOk;
}

ParseResult ParseNack(std::span<const std::byte> body, Nack* nack) {
  if (body.size() < kNackFixedBytes) return ParseResult::kShort;
  const std::byte* p = body.data();
  const std::uint8_t stage = U8(p);
  const std::uint8_t flags = U8(p + 1);
  nack->range_count = U16(p + 2);
  nack->highest_low = U32(p + 4);
  nack->hold_ns = U32(p + 8);
  if (stage > static_cast<std::uint8_t>(Stage::kBroadcast)) return ParseResult::kRange;
  if ((flags & ~1u) != 0) return ParseResult::kReserved;
  if (nack->range_count < 1 || nack->range_count > kNackRangesMax) return ParseResult::kRange;
  if (body.size() != NackBytes(nack->range_count)) return ParseResult::kLength;
  nack->stage = static_cast<Stage>(stage);
  nack->sets_only = flags == 1;
  p += kNackFixedBytes;
  for (CellRange& range : std::span(nack->ranges).first(nack->range_count)) {
    range = LoadRange(p);
    if (!Valid(range)) return ParseResult::kRange;
    p += kRangeBytes;
  }
  return ParseResult::kOk;
}

ParseResult ParseNotYet(std::span<const std::byte> body, NotYet* not_yet) {
  if (const auto length = ExactLength(body, kNotYetBytes); length != ParseResult::kOk) {
    return length;
  }
  const std::uint8_t stage = U8(body.data());
  const std::uint8_t reason = U8(body.data() + 1);
  if (!AllZero(body.data() + 2, 2)) return ParseResult::kReserved;
  if (stage > static_cast<std::uint8_t>(Stage::kBroadcast) ||
      reason > static_cast<std::uint8_t>(NotYet::Reason::kHeld)) {
    return ParseResult::kRange;
  }
  not_yet->stage = static_cast<Stage>(stage);
  not_yet->reason = static_cast<NotYet::Reason>(reason);
  return ParseResult::kOk;
}

ParseResult ParseSets(std::span<const std::byte> body, std::uint32_t ranks, SetsView* sets) {
  OR_CHECK(ranks >= 1 && ranks <= kRanksMax);
  if (body.size() < kSetsFixedBytes) return ParseResult::kShort;
  sets->run_count = U16(body.data());
  sets->set_bytes = U16(body.data() + 2);
  if (sets->run_count < 1 || sets->set_bytes != SetBytes(ranks)) return ParseResult::kRange;
  sets->runs = body.subspan(kSetsFixedBytes);
  // At most 65535 * 136 bytes: no overflow.
  if (sets->runs.size() != sets->run_count * (kRangeBytes + sets->set_bytes)) {
    return ParseResult::kLength;
  }
  for (std::uint32_t run = 0; run < sets->run_count; ++run) {
    if (!Valid(sets->range(run))) return ParseResult::kRange;
    if (!TailZero(sets->set(run), ranks)) return ParseResult::kReserved;
  }
  return ParseResult::kOk;
}

ParseResult ParseProbe(std::span<const std::byte> body, bool answer, Probe* probe) {
  if (body.size() < kProbeFixedBytes) return ParseResult::kShort;
  probe->round = U32(body.data());
  probe->packet_bytes = U32(body.data() + 4);
  if (answer ? body.size() != kProbeFixedBytes
             : probe->packet_bytes != kHeaderBytes + body.size()) {
    return ParseResult::kLength;
  }
  const std::span<const std::byte> filling = body.subspan(kProbeFixedBytes);
  return AllZero(filling.data(), filling.size()) ? ParseResult::kOk : ParseResult::kReserved;
}

ParseResult ParseStatement(std::span<const std::byte> body, StatementView* statement) {
  if (body.size() < kStatementFixedBytes) return ParseResult::kShort;
  const std::byte* const p = body.data();
  const std::uint8_t kind = U8(p);
  const std::uint8_t flags = U8(p + 1);
  if (kind > static_cast<std::uint8_t>(StatementView::Kind::kBitmap)) return ParseResult::kRange;
  if ((flags & ~1u) != 0 || !AllZero(p + 2, 2)) return ParseResult::kReserved;
  statement->kind = static_cast<StatementView::Kind>(kind);
  statement->answer_wanted = flags == 1;
  statement->range = LoadRange(p + 4);
  statement->bitmap = body.subspan(kStatementFixedBytes);
  if (statement->kind != StatementView::Kind::kBitmap) {
    if (statement->range != CellRange{}) return ParseResult::kReserved;
    return statement->bitmap.empty() ? ParseResult::kOk : ParseResult::kLength;
  }
  if (!Valid(statement->range)) return ParseResult::kRange;
  if (statement->bitmap.size() != BitmapBytes(statement->range.count)) return ParseResult::kLength;
  return TailZero(statement->bitmap, statement->range.count) ? ParseResult::kOk
                                                             : ParseResult::kReserved;
}

}  // namespace optireduce::wire
