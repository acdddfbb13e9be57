// What our messages mean, byte by byte: the header that every packet starts with, and the bodies.
//
// Everything is in network byte order. A packet is one message: header, body, or for DATA and
// RESULT the payload of one cell. The length of a message is its datagram's. Parsing
// (wire/parse.h) checks everything that can be checked without protocol state; wire/seal.h tags
// and verifies.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_MESSAGE_H_
#define OPTIREDUCE_TRANSPORT_WIRE_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/ids.h"

namespace optireduce::wire {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kTagOffset = 24;

enum class MessageType : std::uint8_t {
  kOpen = 1,
  kData = 2,
  kResult = 3,
  kSets = 4,
  kNack = 5,
  kReport = 6,
  kStatement = 7,
  kNotYet = 8,
  kProbe = 9,
};
inline constexpr std::uint8_t kMessageTypes = 9;

// True for the two messages that carry elements: the only ones that take credit, and whose bytes
// behind the header the tag leaves out by default (wire/seal.h).
constexpr bool IsPayloadType(MessageType type) {
  return type == MessageType::kData || type == MessageType::kResult;
}

// Header flags.
inline constexpr std::uint8_t kFlagComplete = 1;  // RESULT: every rank's contribution is in
inline constexpr std::uint8_t kFlagRepeat = 2;    // DATA, RESULT: not the first transmission
inline constexpr std::uint8_t kFlagAnswer = 4;    // REPORT: one back is wanted; PROBE: is one
inline constexpr std::uint8_t kFlagInVain = 8;    // NACK: asked often, and no full cell has come
// DATA, RESULT: a piece of a cell, for a path that does not carry the whole; bits 4 to 6: which.
inline constexpr std::uint8_t kFlagPiece = 0x80;
inline constexpr unsigned kPieceShift = 4;
inline constexpr std::uint8_t kPieceMask = 7 << kPieceShift;
inline constexpr std::uint32_t kPiecesMax = 8;
// Of a cell of `cell_bytes`; the last piece may be shorter.
constexpr std::size_t PieceBytes(std::size_t cell_bytes) {
  return ((cell_bytes + kPiecesMax - 1) / kPiecesMax + 7) / 8 * 8;
}

// Offset: field.  0: version (high nibble), type (low nibble)  1: flags  2: sender  4: group
// 8: epoch  10: shard  12: op, low 32 bits  16: cell  20: packet number, low 32 bits  24: tag.
// `cell` is 0 in all but DATA and RESULT, `shard` is 0 in OPEN, REPORT and PROBE; `sender` and
// `shard` are below kRanksMax. DATA and RESULT have a payload of at least one byte.
struct Header {
  MessageType type{};
  std::uint8_t flags = 0;
  std::uint16_t sender = 0;
  std::uint32_t group = 0;
  std::uint16_t epoch = 0;
  std::uint16_t shard = 0;
  std::uint32_t op_low = 0;
  std::uint32_t cell = 0;
  std::uint32_t number_low = 0;
  std::uint64_t tag = 0;
};

// What a rank tells about itself in every OPEN and REPORT.
struct ReportBlock {
  std::uint32_t credit = 0;           // packets of DATA and RESULT the receiver may have in flight
  std::uint32_t received_low = 0;     // packets of any type received from it, low 32 bits
  std::uint32_t highest_low = 0;      // highest packet number seen from it, low 32 bits
  std::uint32_t hold_ns = 0;          // time since that packet came in (saturates)
  OpNumber opened = 0;                // every OPEN of the addressee is in, up to this op
  OpNumber called = 0;                // the sender's caller has called up to this op
  OpNumber done = 0;                  // up to this op the sender needs nothing more from anybody
  OpNumber divergent = 0;             // its last divergent op, 0: none
  std::uint64_t age_ns = 0;           // since the call of op `called` (OPEN: of the opened op)
  std::uint16_t pressure = 0;         // receive pressure, 1/65535 of its queue
};
inline constexpr std::size_t kReportBlockBytes = 4 * 4 + 5 * 8 + 2 + 6;  // 6 reserved, zero: 64

// OPEN: header.op_low is the op; shard and cell are 0.
struct Open {
  ReportBlock report;
  std::uint64_t count = 0;        // elements
  std::uint8_t data_type = 0;     // DataType
  std::uint8_t reduce_op = 0;     // ReduceOp
  std::uint8_t mode = 0;          // Mode
  std::uint8_t transform = 0;     // 0: none
  std::uint64_t fingerprint = 0;  // of the key or name, 0: none
};
inline constexpr std::size_t kOpenBytes = kReportBlockBytes + 8 + 4 + 4 + 8;  // 4 reserved: 88

struct CellRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;  // at least 1
  friend bool operator==(const CellRange&, const CellRange&) = default;
};
inline constexpr std::size_t kRangeBytes = 8;

// At least one cell, and the end (first + count) still fits 32 bits.
constexpr bool Valid(CellRange range) {
  return range.count >= 1 && range.count <= ~range.first;
}

// NACK: header.op_low and shard name the flow; header.cell is 0.
inline constexpr std::size_t kNackRangesMax = 32;
struct Nack {
  Stage stage = Stage::kScatter;
  bool sets_only = false;          // the cells are here, the sets of contributors are not
  std::uint32_t highest_low = 0;   // highest packet number seen from the addressee, low 32 bits
  std::uint32_t hold_ns = 0;       // since that packet came in
  std::uint32_t range_count = 0;   // 1 … kNackRangesMax
  std::array<CellRange, kNackRangesMax> ranges;
};
// Body: stage 1, flags 1 (bit 0: sets_only), range count 2, highest 4, hold 4, then ranges of 8.
inline constexpr std::size_t kNackFixedBytes = 12;
constexpr std::size_t NackBytes(std::size_t ranges) {
  return kNackFixedBytes + ranges * kRangeBytes;
}

// NOT_YET: header.op_low and shard name the flow, stage says which.
struct NotYet {
  enum class Reason : std::uint8_t { kNotCalled = 0, kHeld = 1 };
  Stage stage = Stage::kScatter;
  Reason reason = Reason::kNotCalled;
};
// Body: stage 1, reason 1, 2 zero bytes.
inline constexpr std::size_t kNotYetBytes = 4;

// SETS: header.op_low, shard. Body: run count 2, bytes per set 2 (= ceil(ranks / 8)), then per run
// first cell 4, cell count 4, set. Bit r % 8 of byte r / 8 is rank r;
// bits of ranks that do not exist are 0. At least one run.
inline constexpr std::size_t kSetsFixedBytes = 4;
constexpr std::uint32_t SetBytes(std::uint32_t ranks) { return (ranks + 7) / 8; }
struct SetsView {
  std::uint32_t run_count = 0;
  std::uint32_t set_bytes = 0;
  std::span<const std::byte> runs;  // run_count * (8 + set_bytes) bytes
  CellRange range(std::size_t run) const;
  std::span<const std::byte> set(std::size_t run) const;
};

// STATEMENT: header.op_low, shard. Body: kind 1, flags 1 (bit 0: answer wanted), 2 zero bytes,
// first cell 4, cell count 4, then for kind kBitmap ceil(count / 8) bytes of cells held: bit i % 8
// of byte i / 8 is cell first + i, bits past the last cell are 0.
inline constexpr std::size_t kStatementFixedBytes = 12;
constexpr std::size_t BitmapBytes(std::size_t cells) { return (cells + 7) / 8; }
struct StatementView {
  enum class Kind : std::uint8_t { kComplete = 0, kReceiving = 1, kBitmap = 2 };
  Kind kind = Kind::kComplete;
  bool answer_wanted = false;
  CellRange range;  // of the bitmap; {0, 0} for the other kinds
  std::span<const std::byte> bitmap;
};

// PROBE: does a packet of this size pass? Before the first op under an epoch and hence keys of its
// own, later on a path that may have narrowed under the group's.
// Body: round 4, packet bytes 4, then zeros up to that size; in an answer nothing more.
inline constexpr std::uint16_t kProbeEpoch = 0xffff;
struct Probe {
  std::uint32_t round = 0;
  std::uint32_t packet_bytes = 0;  // of the packet asked about, header included
};
inline constexpr std::size_t kProbeFixedBytes = 8;

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_MESSAGE_H_
