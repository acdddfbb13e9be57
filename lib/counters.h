// What the engine counts: one table of (counter, name, unit, help), and the numbers.
//
// Threads: one thread adds; any thread may read. A reader sees each counter's recent value, not a
// moment's view of all of them.
// Counters do not tell what happened to one op (that is its Report), and never stop anything.
#ifndef OPTIREDUCE_LIB_COUNTERS_H_
#define OPTIREDUCE_LIB_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace optireduce {

enum class Counter : std::size_t {
  // Traffic.
  kPacketsSent,
  kPacketsReceived,
  kBytesSent,
  kBytesReceived,
  kDataSent,
  kDataRepeated,
  kResultSent,
  kResultRepeated,
  kReportsSent,
  kNacksSent,
  kNacksReceived,
  kNotYetSent,
  kOpensSent,
  kSetsSent,
  kProbesSent,
  // Verdicts: every received packet adds one to exactly one of these.
  kAccepted,
  kWaited,
  kDuplicate,
  kLate,
  kEarlyNoRoom,
  kMalformed,
  kBadTag,
  kForeignGroup,
  kStaleEpoch,
  kUnknownSender,
  kLateProbe,
  kUnexpected,
  // Ops.
  kOpsCalled,
  kOpsAgreed,
  kOpsDivergent,
  kOpsFailed,
  kCellsClosedComplete,
  kCellsClosedIncomplete,
  kEntriesLost,
  // Room and pace.
  kArenaFull,
  kCreditOverflowEvents,
  kKernelReceiveDrops,
  kControlQueueFull,
  kSilenceReleases,
  kTurns,
  kLongTurns,
  kPathsSuspected,
  kPathsNarrowed,
  kChangeovers,
};

struct CounterRow {
  Counter counter;
  std::string_view name;
  std::string_view unit;
  std::string_view help;
};

inline constexpr std::array kCounterRows = {
    CounterRow{Counter::kPacketsSent, "packets_sent", "packets",
               "Packets handed to the port, repeats and control messages included."},
    CounterRow{Counter::kPacketsReceived, "packets_received", "packets",
               "Packets taken from the port; the sum of all verdicts below."},
    CounterRow{Counter::kBytesSent, "bytes_sent", "bytes",
               "Datagram payload bytes of packets_sent: our headers counted, IP and UDP not."},
    CounterRow{Counter::kBytesReceived, "bytes_received", "bytes",
               "Datagram payload bytes of packets_received."},
    CounterRow{Counter::kDataSent, "data_sent", "packets", "DATA packets sent for the first time."},
    CounterRow{Counter::kDataRepeated, "data_repeated", "packets",
               "DATA packets sent again because their receiver asked."},
    CounterRow{Counter::kResultSent, "result_sent", "packets",
               "RESULT packets sent for the first time."},
    CounterRow{Counter::kResultRepeated, "result_repeated", "packets",
               "RESULT packets sent again because their receiver asked."},
    CounterRow{Counter::kReportsSent, "reports_sent", "messages",
               "REPORT messages sent, alone or behind other packets."},
    CounterRow{Counter::kNacksSent, "nacks_sent", "messages",
               "NACK messages sent: this rank asked for cells that it lacks."},
    CounterRow{Counter::kNacksReceived, "nacks_received", "messages",
               "NACK messages accepted: a peer asked this rank for cells."},
    CounterRow{Counter::kNotYetSent, "not_yet_sent", "messages",
               "NOT_YET messages sent: a peer asked for what this rank has not called or holds."},
    CounterRow{Counter::kOpensSent, "opens_sent", "messages",
               "OPEN messages sent, repeats included."},
    CounterRow{Counter::kSetsSent, "sets_sent", "messages",
               "SETS messages sent: who is in the incomplete cells of this rank's shard."},
    CounterRow{Counter::kProbesSent, "probes_sent", "messages",
               "PROBE messages sent, answers included: before the first op, and later where a path "
               "seems to lose large packets."},
    CounterRow{Counter::kAccepted, "accepted", "packets",
               "Verdict: taken: added to a sum, placed in the output, obeyed, or answered."},
    CounterRow{Counter::kWaited, "waited", "packets",
               "Verdict: taken into the arena, because another contribution is added first or the "
               "op is not called or not opened yet."},
    CounterRow{Counter::kDuplicate, "duplicate", "packets",
               "Verdict: this rank had its content already."},
    CounterRow{Counter::kLate, "late", "packets",
               "Verdict: its cell was closed, or its op over, before it came."},
    CounterRow{Counter::kEarlyNoRoom, "early_no_room", "packets",
               "Verdict: came before its turn and found no room; counts as not received and is "
               "repaired."},
    CounterRow{Counter::kMalformed, "malformed", "packets",
               "Verdict: not a message of ours: length, version, type or a range is wrong."},
    CounterRow{Counter::kBadTag, "bad_tag", "packets",
               "Verdict: the tag or cookie, or the payload check inside it, is wrong."},
    CounterRow{Counter::kForeignGroup, "foreign_group", "packets",
               "Verdict: of a group that this process does not serve."},
    CounterRow{Counter::kStaleEpoch, "stale_epoch", "packets",
               "Verdict: of another epoch of the group."},
    CounterRow{Counter::kUnknownSender, "unknown_sender", "packets",
               "Verdict: its sender is no rank of the group, or this rank itself."},
    CounterRow{Counter::kLateProbe, "late_probe", "packets",
               "Verdict: asks about a path after all paths were known."},
    CounterRow{Counter::kUnexpected, "unexpected", "packets",
               "Verdict: well formed, but nothing that this sender may send now (a foreign shard, "
               "an op far ahead)."},
    CounterRow{Counter::kOpsCalled, "ops_called", "ops", "Ops that this rank called."},
    CounterRow{Counter::kOpsAgreed, "ops_agreed", "ops",
               "Ops that ended with every cell held: the same bits on all ranks that agreed."},
    CounterRow{Counter::kOpsDivergent, "ops_divergent", "ops",
               "Bounded ops that ended with cells missing on this rank."},
    CounterRow{Counter::kOpsFailed, "ops_failed", "ops", "Ops that ended with an error."},
    CounterRow{Counter::kCellsClosedComplete, "cells_closed_complete", "cells",
               "Cells of this rank's shards closed with all contributions in."},
    CounterRow{Counter::kCellsClosedIncomplete, "cells_closed_incomplete", "cells",
               "Cells of this rank's shards closed at the deadline with contributions left out."},
    CounterRow{Counter::kEntriesLost, "entries_lost", "entries",
               "Entries (one element of one rank) left out of an op for good."},
    CounterRow{Counter::kArenaFull, "arena_full", "events",
               "Times that an op or packet found no room in the arena (arena.bytes_max)."},
    CounterRow{Counter::kCreditOverflowEvents, "credit_overflow_events", "events",
               "Times that this rank halved the credit of its senders: its queue had overflowed."},
    CounterRow{Counter::kKernelReceiveDrops, "kernel_receive_drops", "packets",
               "Packets that this rank's own receive queue dropped; not network loss, and not in "
               "packets_received."},
    CounterRow{
        Counter::kControlQueueFull, "control_queue_full", "events",
        "Control messages that were not queued because too many waited; timers repeat them."},
    CounterRow{Counter::kSilenceReleases, "silence_releases", "events",
               "Times that credit was freed because a peer had been silent."},
    CounterRow{Counter::kTurns, "turns", "events", "Turns of the engine."},
    CounterRow{Counter::kLongTurns, "long_turns", "events",
               "Turns that began far later than asked (a busy or paused machine); input is read "
               "before timers act."},
    CounterRow{Counter::kPathsSuspected, "paths_suspected", "events",
               "Times that this rank asked a path whether it still carries full packets."},
    CounterRow{Counter::kPathsNarrowed, "paths_narrowed", "events",
               "Times that a path from this rank turned out to carry less than before: its MTU "
               "has shrunk."},
    CounterRow{Counter::kChangeovers, "changeovers", "events",
               "Times that all ranks agreed to use smaller packets from one op on."},
};

inline constexpr std::size_t kCounters = kCounterRows.size();

namespace counters_internal {

constexpr bool RowsMatch() {
  for (std::size_t i = 0; i < kCounters; ++i) {
    if (kCounterRows[i].counter != static_cast<Counter>(i)) return false;
    if (kCounterRows[i].name.empty() || kCounterRows[i].help.empty()) return false;
  }
  return kCounterRows.back().counter == Counter::kChangeovers;
}
static_assert(RowsMatch(), "kCounterRows lists each Counter once, in the order of the enum");

}  // namespace counters_internal

constexpr std::string_view Name(Counter counter) {
  return kCounterRows[static_cast<std::size_t>(counter)].name;
}

// The first and the last counter of the verdicts, which stand together in the enum.
inline constexpr Counter kFirstVerdict = Counter::kAccepted;
inline constexpr Counter kLastVerdict = Counter::kUnexpected;

class Counters {
 public:
  Counters() = default;
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  // The one writing thread only: a load and a store, no read-modify-write on the data path.
  void Add(Counter counter, std::uint64_t n = 1) {
    std::atomic<std::uint64_t>& value = values_[static_cast<std::size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  // The one writing thread only: for totals that somebody else keeps (the kernel's drops).
  void Set(Counter counter, std::uint64_t total) {
    values_[static_cast<std::size_t>(counter)].store(total, std::memory_order_relaxed);
  }

  // Any thread.
  std::uint64_t Get(Counter counter) const {
    return values_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }

  // Any thread. Packets that got a verdict; equals packets_received when the engine is at rest.
  std::uint64_t Verdicts() const {
    std::uint64_t sum = 0;
    for (auto i = static_cast<std::size_t>(kFirstVerdict);
         i <= static_cast<std::size_t>(kLastVerdict); ++i) {
      sum += values_[i].load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kCounters> values_{};
};

// The text of docs/counters.md, made from the table.
std::string CountersMarkdown();

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_COUNTERS_H_
