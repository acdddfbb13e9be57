// The last events of an engine, in a fixed ring of fixed-size records: what the data path writes
// in place of a log, to be read when something went wrong.
//
// Threads: one thread writes. Dump from that thread, or when it has stopped; a crash hook may dump
// at any time and then finds at worst one half-written record.
// It allocates at creation only, knows no clock, and does not decide what is worth a record.
#ifndef OPTIREDUCE_LIB_FLIGHT_RECORDER_H_
#define OPTIREDUCE_LIB_FLIGHT_RECORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ids.h"
#include "optireduce/time.h"

namespace optireduce {

enum class Event : std::uint16_t {
  kOpCalled,
  kOpOpened,
  kOpServed,
  kOpAgreed,
  kOpDivergent,
  kOpFailed,
  kOpReleased,
  kScatterDeadline,
  kDeadline,
  kRepeated,
  kNackSent,
  kNackReceived,
  kNotYetReceived,
  kSilenceReleased,
  kReceiveOverflow,
  kPacketRefused,
  kArenaFull,
  kLongTurn,
  kPeerLost,
  kGroupFailed,
  kPathSuspected,
  kPathNarrowed,
};

// An event's name in the dump, and the names of its two integers ("" when it has none).
struct EventRow {
  Event event;
  std::string_view name;
  std::string_view a;
  std::string_view b;
};

inline constexpr std::array kEventRows = {
    EventRow{Event::kOpCalled, "op_called", "elements", ""},
    EventRow{Event::kOpOpened, "op_opened", "age_ns", ""},
    EventRow{Event::kOpServed, "op_served", "elements", ""},  // for peers, before our call
    EventRow{Event::kOpAgreed, "op_agreed", "elapsed_ns", "lost_entries"},
    EventRow{Event::kOpDivergent, "op_divergent", "elapsed_ns", "missing_cells"},
    EventRow{Event::kOpFailed, "op_failed", "elapsed_ns", "code"},
    EventRow{Event::kOpReleased, "op_released", "", ""},
    EventRow{Event::kScatterDeadline, "scatter_deadline", "cells_open", "past_ns"},
    EventRow{Event::kDeadline, "deadline", "cells_missing", "past_ns"},
    EventRow{Event::kRepeated, "repeated", "first_cell", "packets"},
    EventRow{Event::kNackSent, "nack_sent", "first_cell", "cells"},
    EventRow{Event::kNackReceived, "nack_received", "first_cell", "cells"},
    EventRow{Event::kNotYetReceived, "not_yet_received", "shard", "why"},
    EventRow{Event::kSilenceReleased, "silence_released", "packets", ""},
    EventRow{Event::kReceiveOverflow, "receive_overflow", "drops", ""},
    EventRow{Event::kPacketRefused, "packet_refused", "verdict", "bytes"},
    EventRow{Event::kArenaFull, "arena_full", "", ""},
    EventRow{Event::kLongTurn, "long_turn", "late_ns", ""},
    EventRow{Event::kPeerLost, "peer_lost", "", ""},
    EventRow{Event::kGroupFailed, "group_failed", "code", ""},
    EventRow{Event::kPathSuspected, "path_suspected", "bytes", ""},
    EventRow{Event::kPathNarrowed, "path_narrowed", "from_bytes", "to_bytes"},
};

namespace flight_recorder_internal {

constexpr bool RowsMatch() {
  for (std::size_t i = 0; i < kEventRows.size(); ++i) {
    if (kEventRows[i].event != static_cast<Event>(i) || kEventRows[i].name.empty()) return false;
  }
  return kEventRows.back().event == Event::kPathNarrowed;
}
static_assert(RowsMatch(), "kEventRows lists each Event once, in the order of the enum");

}  // namespace flight_recorder_internal

struct FlightRecord {
  Instant at{};
  OpNumber op = 0;  // 0: of no op
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  Rank peer = kNoRank;
  Event event{};
};
static_assert(sizeof(FlightRecord) == 40);

class FlightRecorder {
 public:
  // Keeps the last `records_min` records or a few more (the next power of two). 0: records nothing.
  explicit FlightRecorder(std::size_t records_min);

  void Record(Instant at, Event event, OpNumber op = 0, Rank peer = kNoRank, std::uint64_t a = 0,
              std::uint64_t b = 0) {
    if (ring_.empty()) return;
    ring_[static_cast<std::size_t>(written_) & (ring_.size() - 1)] = {at, op, a, b, peer, event};
    ++written_;
  }

  // Records written so far, and how many of them are still there.
  std::uint64_t written() const { return written_; }
  std::size_t held() const {
    return written_ < ring_.size() ? static_cast<std::size_t>(written_) : ring_.size();
  }
  // The i-th oldest of those held.
  const FlightRecord& At(std::size_t i) const;

  // One line per record, oldest first; times count from the oldest. `who` heads the dump.
  std::string Dump(std::string_view who) const;
  // The same without allocating, for crash hooks.
  void Dump(std::string_view who, std::FILE* out) const;

 private:
  std::vector<FlightRecord> ring_;
  std::uint64_t written_ = 0;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_FLIGHT_RECORDER_H_
