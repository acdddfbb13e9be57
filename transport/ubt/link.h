// One peer, seen from this rank: the packet numbers of both directions, how much is in flight and
// may be, the round trip, and what that peer last told about itself.
//
// A pure state machine of one thread; time comes in as an argument. It knows numbers and times, no
// ops' contents and no payloads.
#ifndef OPTIREDUCE_TRANSPORT_UBT_LINK_H_
#define OPTIREDUCE_TRANSPORT_UBT_LINK_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/ids.h"
#include "optireduce/time.h"

namespace optireduce::ubt {

struct LinkSettings {
  PacketNumber first_number = 1;         // of both directions
  std::uint32_t credit_start_packets = 45;  // before the first report
  std::uint32_t credit_max_packets = 90;    // what this rank grants its peer at most
};

// Smoothed round trip and the repair time T derived from it: a packet that is older than T and
// not reported is taken for lost. T is measured, never fixed: a T below queueing plus scheduling
// repeats what only waits in a queue.
class RoundTrip {
 public:
  void Sample(Duration rtt);
  Duration smoothed() const { return smoothed_; }
  Duration repair_time() const;

 private:
  bool measured_ = false;
  Duration smoothed_{0};
  Duration variation_{0};
};

// A duration that grows with each try in vain, to a bound: under heavy loss it is the tries that
// are lost, and what they ask for is filtered by their addressee anyway.
Duration BackedOff(Duration base, std::uint32_t tries);

// What this rank sends to the peer: numbers, and the window of credit.
class TxWindow {
 public:
  explicit TxWindow(const LinkSettings& settings);

  // Takes the next packet number; `credited` packets (DATA and RESULT) count against the credit.
  PacketNumber TakeNumber(bool credited, Instant now);

  // After a second without DATA or RESULT the network may be another one: back to the start.
  void NoteIdle(Instant now);
  // Packets of DATA and RESULT that may be sent now.
  std::uint32_t Room() const;
  std::uint32_t credit() const { return credit_; }
  std::uint32_t in_flight() const {
    return static_cast<std::uint32_t>(credited_total_ - settled_total_);
  }

  // The peer has seen `highest` and grants `credit`: everything up to there has arrived or is lost
  // and is not in flight any more. Returns the time since that packet was sent less `hold`, or a
  // negative duration when it is not known.
  Duration OnReport(PacketNumber highest, std::uint32_t credit, Duration hold, Instant now);

  // After a silence of T nothing is in flight any more: what was sent counts as lost.
  void ReleaseAll() { settled_total_ = credited_total_; }

  // True when packet `number` went out before `instant` or so long ago that it is forgotten.
  bool SentBefore(PacketNumber number, Instant instant) const;
  // When the peer must have asked at the earliest, which had seen `highest` for `hold` then: not
  // when its question is read, which may have waited long for this process. At most `now`.
  Instant AskedAt(PacketNumber highest, Duration hold, Instant now) const;

  PacketNumber last_number() const { return next_number_ - 1; }
  Instant last_credited_at() const { return last_credited_at_; }

 private:
  struct Record {
    PacketNumber number = ~PacketNumber{0};  // of no packet: none was sent yet
    std::uint64_t credited_total = 0;  // including this one
    Instant sent_at{};
  };
  Record& Slot(PacketNumber number) { return records_[number % records_.size()]; }
  const Record& Slot(PacketNumber number) const { return records_[number % records_.size()]; }

  // Far more than any credit: what is older than so many packets is settled. Fewer where the ranks
  // are many and each has little credit, as there is one window for each of them.
  std::vector<Record> records_;
  PacketNumber next_number_;
  PacketNumber reported_highest_;
  std::uint32_t credit_;
  const std::uint32_t credit_start_;
  std::uint64_t credited_total_ = 0;
  std::uint64_t settled_total_ = 0;
  Instant last_credited_at_{};
};

// What this rank receives from the peer: which numbers are in, which are missing, and when it is
// time to say so.
class RxWindow {
 public:
  explicit RxWindow(const LinkSettings& settings);

  // False: this number was in already, or is too old to tell: a duplicate or a replay.
  bool Accept(PacketNumber number, bool credited, Instant now);

  PacketNumber highest() const { return highest_; }
  std::uint64_t received() const { return received_; }
  // Numbers up to the highest that never came: lost, or still on the way.
  std::uint64_t missing() const { return highest_ - before_first_ - received_; }
  std::uint64_t credited_received() const { return credited_received_; }
  Instant highest_at() const { return highest_at_; }
  // For how long the highest has been in, as it goes on the wire: saturates after 4 s.
  std::uint32_t HoldNanos(Instant now) const;
  // When the last packet of any kind, and the last one of DATA or RESULT, came in.
  Instant heard_at() const { return heard_at_; }
  Instant credited_at() const { return credited_at_; }

  // Numbers are missing above what was asked for already, longer than reordering explains.
  bool GapOpen(Instant now) const { return now >= GapDue(); }
  // The instant at which GapOpen becomes true; kNever without a gap.
  Instant GapDue() const;
  // Something was received but could not be kept: to be asked for at `due` as if it had been lost.
  void Refused(Instant due) { refused_due_ = due < refused_due_ ? due : refused_due_; }
  // Everything missing up to highest() has been asked for.
  void Asked(Instant now);

 private:
  static constexpr std::size_t kWindow = 4096;
  bool Seen(PacketNumber number) const;
  void Mark(PacketNumber number, bool seen);

  std::vector<std::uint64_t> seen_;
  const PacketNumber before_first_;
  PacketNumber highest_;
  PacketNumber asked_to_;
  std::uint64_t received_ = 0;
  std::uint64_t credited_received_ = 0;
  std::uint64_t holes_ = 0;  // missing numbers above asked_to_
  Instant gap_since_{};
  Instant refused_due_ = kNever;
  Instant asked_at_{};
  Duration reorder_guard_{0};
  Instant highest_at_{};
  Instant heard_at_{};
  Instant credited_at_{};
};

// The credit this rank grants a peer: doubled per report while clean, halved on overflow.
class CreditGrant {
 public:
  explicit CreditGrant(const LinkSettings& settings)
      : start_(settings.credit_start_packets),
        max_(settings.credit_max_packets),
        granted_(settings.credit_start_packets),
        told_(settings.credit_start_packets) {}
  std::uint32_t packets() const { return granted_; }
  // What the peer has in any case, should the last report have been lost.
  std::uint32_t told_packets() const { return told_ < granted_ ? told_ : granted_; }
  void OnCleanReport() {
    told_ = granted_;
    granted_ = granted_ * 2 < max_ ? granted_ * 2 : max_;
  }
  void OnOverflow() { granted_ = granted_ / 2 > kMin ? granted_ / 2 : (max_ < kMin ? max_ : kMin); }
  void OnIdle() { granted_ = told_ = std::min(granted_, start_); }

 private:
  static constexpr std::uint32_t kMin = 4;
  std::uint32_t start_;
  std::uint32_t max_;
  std::uint32_t granted_;
  std::uint32_t told_;
};

// Everything about one peer.
struct Link {
  explicit Link(const LinkSettings& settings) : tx(settings), rx(settings), grant(settings) {}

  TxWindow tx;
  RxWindow rx;
  CreditGrant grant;
  RoundTrip rtt;

  // What the peer said of itself, and the number of the packet that said it (older ones are stale).
  OpNumber opened = 0;  // every OPEN of ours is in there, up to this op
  OpNumber called = 0;
  OpNumber done = 0;
  OpNumber divergent = 0;
  PacketNumber report_number = 0;
  bool reported = false;
  Instant report_at{};

  // What we have of the peer's OPENs: all up to this op.
  OpNumber opens_in = 0;

  bool left = false;  // said goodbye on the control channel
  Instant left_at{};

  // Reports owed to the peer.
  std::uint64_t credited_at_report = 0;  // rx.highest() when we last reported
  std::uint64_t payloads_at_report = 0;  // rx.credited_received() then
  Instant report_due = kNever;
  Instant reported_at{};
  std::uint32_t reports_left = 0;  // repeats of a completion report, each later than the last
  Duration report_gap{0};
  bool answer_wanted = false;  // the peer asked for a report

  // Timers of repair.
  Instant open_due = kNever;  // next repeat of OPENs that the peer does not cover yet
  std::uint32_t open_backoff = 0;
  Instant want_since = kNever;  // since when something of this peer's is wanted without a break
  Instant asked_at{};
  std::uint32_t ask_backoff = 0;      // asked in vain since something came
  std::uint32_t gaps_in_vain = 0;     // the same, of questions that a gap led to
  std::uint32_t full_in_vain = 0;     // asked since a full cell came
  std::uint32_t refused_backoff = 0;  // refused for room since something was accepted
  std::uint32_t release_backoff = 0;  // credit taken back by silence since a report came

  // The path to the peer: packets larger than this are lost, and when that was last looked into.
  std::uint32_t carries_bytes = ~std::uint32_t{0};
  Instant suspected_at{};

  // Counters of this pair.
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_repeated = 0;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_LINK_H_
