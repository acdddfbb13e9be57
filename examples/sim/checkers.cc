#include "examples/sim/checkers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace optireduce::sim {
namespace {

using Outcome = Report::Outcome;

std::string At(std::size_t call, Rank rank) {
  return "call " + std::to_string(call) + " at rank " + std::to_string(rank) + ": ";
}

// Adds a finding when two counts that must be equal are not.
void Equal(Findings* findings, const std::string& where, const std::string& what_a,
           std::uint64_t a, const std::string& what_b, std::uint64_t b) {
  if (a == b) return;
  findings->push_back(where + what_a + " " + std::to_string(a) + " are not " + what_b + " " +
                      std::to_string(b));
}

void Append(Findings* findings, Findings more) {
  findings->insert(findings->end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

bool Missing(const Report& report, std::uint64_t element) {
  return std::any_of(report.missing_ranges.begin(), report.missing_ranges.end(),
                     [element](const auto& range) {
                       return element >= range.first && element < range.first + range.second;
                     });
}

bool Ended(const CallEvidence& call, Outcome outcome) {
  return call.ended && call.report.outcome == outcome;
}

// The elements that a rank lacks are 0, and as many as it says.
void CheckMissing(const CallsEvidence& calls, std::size_t index, Rank rank, Findings* findings) {
  const CallEvidence& call = calls.by_rank[rank];
  const std::size_t bytes = calls.values->element_bytes();
  const std::uint64_t count = calls.plan.spec.count;
  std::uint64_t missing = 0;
  for (const auto& [first, length] : call.report.missing_ranges) {
    if (first > count || length > count - first) {
      findings->push_back(At(index, rank) + "a missing range is outside of the tensor");
      return;
    }
    missing += length;
    const auto begin = call.result.begin() + static_cast<std::ptrdiff_t>(first * bytes);
    if (!std::all_of(begin, begin + static_cast<std::ptrdiff_t>(length * bytes),
                     [](std::byte b) { return b == std::byte{0}; })) {
      findings->push_back(At(index, rank) + "a missing range is not 0");
    }
  }
  Equal(findings, At(index, rank), "elements in missing ranges", missing, "missing elements",
        call.report.missing_elements);
}

// Finds, element by element, which contributions are in the result; of kCounts, how many.
class SetReader {
 public:
  SetReader(const CallsEvidence& calls, std::size_t index, Findings* findings)
      : calls_(calls), index_(index), findings_(*findings), own_left_out_(calls.by_rank.size()) {}

  // False: some element is no sum of contributions, or ranks hold different ones.
  bool Read() {
    // In most calls most elements have everybody's contribution at every rank: skip those fast.
    std::uint64_t at = 0;
    const std::uint64_t count = calls_.plan.spec.count;
    while (true) {
      std::uint64_t next = count;
      for (const CallEvidence& call : calls_.by_rank) {
        if (call.never) continue;
        next = std::min(next, calls_.values->NextUnlikeAll(call.result, at));
      }
      if (next == count) return true;
      at = std::min(next + kReadAtOnce, count);
      for (; next < at; ++next) {
        if (!ReadElement(next)) return false;
      }
    }
  }

  std::uint64_t left_out() const { return left_out_; }
  std::uint64_t own_left_out(Rank rank) const { return own_left_out_[rank]; }

 private:
  static constexpr std::uint64_t kReadAtOnce = 1024;  // elements, before it looks further ahead

  bool ReadElement(std::uint64_t element) {
    const bool sets = calls_.plan.values == ValueKind::kSets;
    const std::size_t bytes = calls_.values->element_bytes();
    std::optional<RankSet> set;
    const std::byte* read = nullptr;  // where: equal bits need not be read again
    for (Rank rank = 0; rank < calls_.by_rank.size(); ++rank) {
      const CallEvidence& call = calls_.by_rank[rank];
      if (call.never || Missing(call.report, element)) continue;
      const std::byte* const here = call.result.data() + element * bytes;
      if (read != nullptr && std::memcmp(here, read, bytes) == 0) continue;
      if (read != nullptr) {
        findings_.push_back(Where(rank, element) + " has other bits than at another rank");
        return false;
      }
      read = here;
      set = sets ? calls_.values->SetOf(call.result, element)
                 : calls_.values->CountOf(call.result, element);
      if (!set) {
        findings_.push_back(Where(rank, element) + " is the sum of no set of contributions (" +
                            std::to_string(calls_.values->ValueOf(call.result, element)) + ")");
        return false;
      }
    }
    if (!set && !calls_.missed_by.empty()) return true;  // its owner may hold it and not call
    if (!set) {
      findings_.push_back("call " + std::to_string(index_) + ": nobody holds element " +
                          std::to_string(element) + ", not even its owner");
      return false;
    }
    if (!sets) {
      left_out_ += calls_.by_rank.size() - *set;
      return true;
    }
    const RankSet out = calls_.values->everybody() & ~*set;
    left_out_ += static_cast<std::uint64_t>(std::popcount(out));
    for (Rank rank = 0; rank < own_left_out_.size(); ++rank) own_left_out_[rank] += out >> rank & 1;
    return true;
  }

  std::string Where(Rank rank, std::uint64_t element) const {
    return At(index_, rank) + "element " + std::to_string(element);
  }

  const CallsEvidence& calls_;
  const std::size_t index_;
  Findings& findings_;
  std::uint64_t left_out_ = 0;
  std::vector<std::uint64_t> own_left_out_;
};

// Where counts do not tell whose entries are missing: all that ranks say of their own, together.
void CheckOwnSum(const CallsEvidence& calls, std::size_t index, std::uint64_t left_out,
                 Findings* findings) {
  std::uint64_t own = 0;
  for (const CallEvidence& call : calls.by_rank) {
    if (call.never || call.report.outcome != Outcome::kAgreed) return;
    own += call.report.own_left_out_entries;
  }
  Equal(findings, "call " + std::to_string(index) + ": ", "own entries left out at all ranks", own,
        "entries missing in the result", left_out);
}

void CheckEntriesOf(const CallsEvidence& calls, std::size_t index, Findings* findings) {
  const auto ended_well = [](const CallEvidence& call) {
    return call.never || (call.ended && call.report.outcome != Outcome::kFailed);
  };
  // What a rank that did not end would hold is not known.
  if (!std::all_of(calls.by_rank.begin(), calls.by_rank.end(), ended_well)) return;
  const std::uint64_t entries = calls.plan.spec.count * calls.by_rank.size();
  for (Rank rank = 0; rank < calls.by_rank.size(); ++rank) {
    if (calls.by_rank[rank].never) continue;
    const Report& report = calls.by_rank[rank].report;
    Equal(findings, At(index, rank), "reported entries", report.entries, "elements * ranks",
          entries);
    Equal(findings, At(index, rank), "late entries", report.late_entries, "", 0);
    CheckMissing(calls, index, rank, findings);
    if (report.outcome == Outcome::kAgreed) {
      Equal(findings, At(index, rank), "missing elements of an agreed end",
            report.missing_elements, "", 0);
    }
  }
  const bool sets = calls.plan.values == ValueKind::kSets;
  if ((!sets && calls.plan.values != ValueKind::kCounts) || !findings->empty()) return;
  SetReader reader(calls, index, findings);
  if (!reader.Read()) return;
  for (Rank rank = 0; rank < calls.by_rank.size(); ++rank) {
    if (calls.by_rank[rank].never) continue;
    const Report& report = calls.by_rank[rank].report;
    if (report.outcome == Outcome::kAgreed) {
      Equal(findings, At(index, rank), "reported lost entries", report.lost_entries,
            "entries missing in the result", reader.left_out());
      if (!sets) continue;
      Equal(findings, At(index, rank), "reported own entries left out",
            report.own_left_out_entries, "own entries missing in the result",
            reader.own_left_out(rank));
    } else if (!calls.missed_by.empty()) {
      continue;  // it may know of cells that nobody who called holds
    } else if (report.lost_entries > reader.left_out() ||
               (sets && report.own_left_out_entries > reader.own_left_out(rank))) {
      findings->push_back(At(index, rank) + "a divergent rank reports more lost entries than " +
                          std::to_string(reader.left_out()));
    }
  }
  if (!sets) CheckOwnSum(calls, index, reader.left_out(), findings);
}

// The first element that rounding cannot explain.
void CheckRandom(const CallsEvidence& calls, std::size_t index, Rank rank, Findings* findings) {
  const CallEvidence& call = calls.by_rank[rank];
  double epsilon = 0x1p-52;
  if (calls.plan.spec.type == DataType::kFloat32) epsilon = 0x1p-23;
  if (calls.plan.spec.type == DataType::kFloat16) epsilon = 0x1p-10;
  if (calls.plan.spec.type == DataType::kBFloat16) epsilon = 0x1p-7;
  const double tolerance = epsilon * static_cast<double>(calls.by_rank.size());
  for (std::uint64_t i = 0; i < calls.plan.spec.count; ++i) {
    const double got = calls.values->ValueOf(call.result, i);
    if (std::fabs(got - calls.values->Exact(i)) <= tolerance) continue;
    findings->push_back(At(index, rank) + "element " + std::to_string(i) + " is " +
                        std::to_string(got) + ", exactly " +
                        std::to_string(calls.values->Exact(i)));
    return;
  }
}

// `opened_at`: by rank, the last OPEN of this call or one before it.
void CheckTimeOf(const Evidence& evidence, const CallsEvidence& calls, std::size_t index,
                 const std::vector<Instant>& opened_at, Findings* findings) {
  for (Rank rank = 0; rank < calls.by_rank.size(); ++rank) {
    const CallEvidence& call = calls.by_rank[rank];
    if (!call.ended || call.report.outcome == Outcome::kFailed) continue;
    const Duration over = call.report.after_deadline - evidence.grace - evidence.turn_cost -
                          evidence.port_lag - evidence.clock_error;
    if (over <= Duration{0}) continue;
    // Past the grace that counts from the deadline. The other instants that it may count from:
    const Instant deadline_at_most = call.ended_at - call.report.after_deadline;
    Instant from = std::max(call.called_at, call.resumed_at);
    if (call.admitted_at != kNever) from = std::max(from, call.admitted_at);
    from = std::max(from, std::max(call.held_at, opened_at[rank]) + evidence.turn_cost);
    const Instant latest =
        from + evidence.grace + evidence.turn_cost + evidence.port_lag + evidence.clock_error;
    if (call.ended_at <= latest || calls.ops > 1) continue;
    findings->push_back(At(index, rank) + "ended " + std::to_string(over.count()) +
                        " ns after deadline + grace (deadline " +
                        std::to_string(Nanos(deadline_at_most)) + " ns, own start " +
                        std::to_string(Nanos(from)) + " ns, end " +
                        std::to_string(Nanos(call.ended_at)) + " ns)");
  }
}

// Then nothing settles: who never makes a call is never done with it.
bool SomeCallIsMissed(const Evidence& evidence) {
  return !evidence.calls.empty() && !evidence.calls.back().missed_by.empty();
}

// Failed, since its group did, because some rank has not made some call; and it says who.
bool Excused(const Evidence& evidence, const CallEvidence& call) {
  if (!call.ended || call.report.outcome != Outcome::kFailed) return false;
  const std::string text = call.report.status.text();
  const std::vector<Rank>& missed_by = evidence.calls.back().missed_by;
  return std::any_of(missed_by.begin(), missed_by.end(), [&text](Rank rank) {
    const std::string name = "rank " + std::to_string(rank) + ":";
    return text.find(name + " has not called it") != std::string::npos ||
           text.find(name + " has called up to") != std::string::npos ||
           text.find(name + " sent ") != std::string::npos;
  });
}

}  // namespace

Findings CheckPackets(const Evidence& evidence) {
  Findings findings;
  if (!evidence.conservation_fault.empty()) findings.push_back(evidence.conservation_fault);
  Equal(&findings, "the network at the end: ", "packets on the way", evidence.in_flight, "", 0);
  for (Rank rank = 0; rank < evidence.by_rank.size(); ++rank) {
    const RankEvidence& e = evidence.by_rank[rank];
    const std::string where = "rank " + std::to_string(rank) + ": ";
    const std::uint64_t sent = e.count(Counter::kPacketsSent);
    const std::uint64_t received = e.count(Counter::kPacketsReceived);
    Equal(&findings, where, "packets sent", sent, "packets that entered the network",
          e.network_sent);
    Equal(&findings, where, "packets sent", sent, "those counted per peer", e.links_sent);
    Equal(&findings, where, "packets sent", sent, "the port's", e.port.packets_sent);
    Equal(&findings, where, "packets received", received, "packets delivered by the network",
          e.network_delivered);
    Equal(&findings, where, "packets received", received, "the port's", e.port.packets_received);
    Equal(&findings, where, "packets received", received, "verdicts", e.verdicts());
    Equal(&findings, where, "bytes left in the receive queue", e.queue_bytes_left, "", 0);
    Equal(&findings, where, "packets dropped by the receive queue",
          e.port.receive_queue_drops, "the network's count", e.network_receive_drops);
    const std::uint64_t refused = e.count(Counter::kMalformed) + e.count(Counter::kBadTag) +
                                  e.count(Counter::kForeignGroup) +
                                  e.count(Counter::kStaleEpoch) + e.count(Counter::kUnknownSender);
    Equal(&findings, where, "packets refused as not genuine", refused,
          "corrupted ones and ones of an earlier run delivered",
          e.corrupted_delivered + e.old_delivered);
  }
  return findings;
}

Findings CheckEntries(const Evidence& evidence) {
  Findings findings;
  std::vector<std::uint64_t> lost(evidence.ranks);
  bool failed = false;
  for (std::size_t i = 0; i < evidence.calls.size(); ++i) {
    Findings of_call;
    CheckEntriesOf(evidence.calls[i], i, &of_call);
    Append(&findings, std::move(of_call));
    for (Rank rank = 0; rank < evidence.calls[i].by_rank.size(); ++rank) {
      const CallEvidence& call = evidence.calls[i].by_rank[rank];
      failed |= (!call.ended && !call.never) || call.report.outcome == Outcome::kFailed;
      lost[rank] += call.report.lost_entries;
    }
  }
  // A rank that does not make a call has it in no report.
  for (Rank rank = 0; rank < evidence.by_rank.size() && !failed; ++rank) {
    Equal(&findings, "rank " + std::to_string(rank) + ": ", "entries lost by its counter",
          evidence.by_rank[rank].count(Counter::kEntriesLost), "the sum of its reports",
          lost[rank]);
  }
  return findings;
}

Findings CheckExact(const Evidence& evidence) {
  Findings findings;
  for (std::size_t i = 0; i < evidence.calls.size(); ++i) {
    const CallsEvidence& calls = evidence.calls[i];
    for (Rank rank = 0; rank < calls.by_rank.size(); ++rank) {
      const CallEvidence& call = calls.by_rank[rank];
      const bool exact = calls.plan.spec.mode == Mode::kExact;
      if (exact && call.ended && call.report.outcome != Outcome::kFailed) {
        if (call.report.outcome != Outcome::kAgreed || call.report.lost_entries != 0 ||
            call.report.own_left_out_entries != 0) {
          findings.push_back(At(i, rank) + "an exact call lost something");
        }
      }
      if (!Ended(call, Outcome::kAgreed) || call.report.lost_entries != 0) continue;
      if (calls.plan.values == ValueKind::kRandom) {
        CheckRandom(calls, i, rank, &findings);
        continue;
      }
      const std::uint64_t wrong = calls.values->NextUnlikeAll(call.result, 0);
      if (wrong == calls.plan.spec.count) continue;
      findings.push_back(At(i, rank) + "element " + std::to_string(wrong) + " of " +
                         std::to_string(calls.plan.spec.count) + " is " +
                         std::to_string(calls.values->ValueOf(call.result, wrong)) + ", not " +
                         std::to_string(calls.values->Exact(wrong)));
    }
  }
  return findings;
}

Findings CheckSameBits(const Evidence& evidence) {
  Findings findings;
  for (std::size_t i = 0; i < evidence.calls.size(); ++i) {
    const CallEvidence* first = nullptr;
    for (Rank rank = 0; rank < evidence.calls[i].by_rank.size(); ++rank) {
      const CallEvidence& call = evidence.calls[i].by_rank[rank];
      if (!Ended(call, Outcome::kAgreed)) continue;
      if (first == nullptr) {
        first = &call;
        continue;
      }
      if (call.result != first->result) {
        findings.push_back(At(i, rank) + "other bits than another rank that agreed");
      }
      Equal(&findings, At(i, rank), "lost entries", call.report.lost_entries,
            "those of another rank that agreed", first->report.lost_entries);
    }
  }
  return findings;
}

Findings CheckMemory(const Evidence& evidence) {
  Findings findings;
  for (std::size_t i = 0; i < evidence.calls.size(); ++i) {
    for (Rank rank = 0; rank < evidence.calls[i].by_rank.size(); ++rank) {
      const CallEvidence& call = evidence.calls[i].by_rank[rank];
      if (!call.untouched_after_end) {
        findings.push_back(At(i, rank) + "its memory was written to after the call had ended");
      }
      if (!call.guards_intact) {
        findings.push_back(At(i, rank) + "memory beside the tensor was written to");
      }
    }
  }
  return findings;
}

Findings CheckTime(const Evidence& evidence) {
  Findings findings;
  std::vector<Instant> opened_at(evidence.ranks);  // an op's clock waits for those before it
  for (std::size_t i = 0; i < evidence.calls.size(); ++i) {
    const CallsEvidence& calls = evidence.calls[i];
    for (Rank rank = 0; rank < calls.by_rank.size(); ++rank) {
      opened_at[rank] = std::max(opened_at[rank], calls.by_rank[rank].opened_at);
    }
    if (calls.plan.spec.mode == Mode::kBounded) {
      CheckTimeOf(evidence, calls, i, opened_at, &findings);
    }
  }
  return findings;
}

Findings CheckProgress(const Evidence& evidence) {
  Findings findings;
  for (std::size_t i = 0; i < evidence.calls.size(); ++i) {
    for (Rank rank = 0; rank < evidence.calls[i].by_rank.size(); ++rank) {
      const CallEvidence& call = evidence.calls[i].by_rank[rank];
      if (call.never) continue;
      if (Excused(evidence, call)) continue;
      if (!call.ended) {
        findings.push_back(At(i, rank) +
                           (call.called_at == kNever ? "was never called" : "has not ended"));
      } else if (call.report.outcome == Outcome::kFailed) {
        findings.push_back(At(i, rank) + "failed: " + call.report.status.text());
      }
    }
  }
  const Instant latest = evidence.quiet_from + evidence.ends_within;
  if (evidence.ended_at != kNever && evidence.ended_at > latest) {
    findings.push_back("the last call ended later than " +
                       std::to_string(evidence.ends_within.count()) + " ns after the faults");
  }
  for (Rank rank = 0; rank < evidence.by_rank.size() && !SomeCallIsMissed(evidence); ++rank) {
    if (!evidence.by_rank[rank].settled) {
      findings.push_back("rank " + std::to_string(rank) + " is not settled");
    }
  }
  if (findings.size() > 8) findings.resize(8);
  return findings;
}

Findings CheckLeaks(const Evidence& evidence) {
  Findings findings;
  const bool missed = SomeCallIsMissed(evidence);
  for (Rank rank = 0; rank < evidence.by_rank.size(); ++rank) {
    const RankEvidence& e = evidence.by_rank[rank];
    if (!e.settled || missed) continue;  // CheckProgress says so, or it may not be
    const std::string where = "rank " + std::to_string(rank) + ": ";
    Equal(&findings, where, "cells of the arena in use", e.cells_staged, "", 0);
    Equal(&findings, where, "shards of the arena in use", e.shards_held, "", 0);
  }
  return findings;
}

Findings CheckAll(const Evidence& evidence) {
  Findings findings;
  for (const auto check : {CheckPackets, CheckEntries, CheckExact, CheckSameBits, CheckMemory,
                           CheckTime, CheckProgress, CheckLeaks}) {
    Append(&findings, check(evidence));
  }
  return findings;
}

Findings CheckEqualRuns(const Evidence& first, const Evidence& second) {
  Findings findings;
  if (first.trace_hash != second.trace_hash) {
    findings.push_back("two runs of one scenario have different traces");
  }
  if (first.ended_at != second.ended_at) {
    findings.push_back("two runs of one scenario end at different instants");
  }
  return findings;
}

Findings CheckEqualResults(const Evidence& first, const Evidence& second) {
  Findings findings;
  if (first.calls.size() != second.calls.size()) return {"the runs have different calls"};
  for (std::size_t i = 0; i < first.calls.size(); ++i) {
    if (first.calls[i].plan.spec.mode != Mode::kExact) continue;
    for (Rank rank = 0; rank < first.calls[i].by_rank.size(); ++rank) {
      if (first.calls[i].by_rank[rank].result != second.calls[i].by_rank[rank].result) {
        findings.push_back(At(i, rank) + "other bits over another network");
      }
    }
  }
  return findings;
}

}  // namespace optireduce::sim
