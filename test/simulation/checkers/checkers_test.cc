// Every checker is content with a good run, and objects when its evidence is bent.
#include "examples/sim/checkers.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "examples/sim/run.h"
#include "lib/config.h"

namespace optireduce::sim {
namespace {

using std::chrono::milliseconds;

CallPlan Plan(Mode mode, std::uint64_t count) {
  CallPlan plan;
  plan.spec.mode = mode;
  plan.spec.count = count;
  plan.values = ValueKind::kSets;
  return plan;
}

// An exact and a bounded call over a network that loses much: the bounded one loses entries.
Scenario Lossy() {
  Scenario scenario;
  scenario.job.ranks = 3;
  scenario.job.settings = Config::Defaults().settings();
  scenario.job.settings.bounded_bound = milliseconds(5);
  scenario.job.network.conditions.loss = 0.2;
  scenario.job.network.conditions.corrupt = 0.02;
  scenario.calls = {Plan(Mode::kExact, 10'000), Plan(Mode::kBounded, 30'000)};
  scenario.late_calls = {{2, 1, milliseconds(30)}};
  return scenario;
}

const Evidence& Good() {
  static const Evidence evidence = RunScenario(Lossy());
  return evidence;
}

CallEvidence& Call(Evidence& evidence, std::size_t call, Rank rank) {
  return evidence.calls[call].by_rank[rank];
}

using Checker = Findings (*)(const Evidence&);
using Bend = std::function<void(Evidence&)>;

void ExpectObjection(Checker checker, const Bend& bend, const std::string& why) {
  Evidence evidence = Good();
  ASSERT_EQ(checker(evidence), Findings{}) << why;
  bend(evidence);
  EXPECT_NE(checker(evidence), Findings{}) << why;
}

TEST(Checkers, AreContentWithAGoodRun) {
  EXPECT_EQ(CheckAll(Good()), Findings{});
  // What the other tests bend is there.
  const CallsEvidence& bounded = Good().calls[1];
  EXPECT_GT(bounded.by_rank[0].report.lost_entries, 0u);
  EXPECT_GT(Good().by_rank[0].corrupted_delivered, 0u);
}

TEST(Checkers, PacketsMustBeConserved) {
  const auto bend_rank = [](std::uint64_t RankEvidence::*field) {
    return [field](Evidence& e) { ++(e.by_rank[1].*field); };
  };
  const auto bend_counter = [](Counter counter) {
    return [counter](Evidence& e) { ++e.by_rank[1].counters[static_cast<std::size_t>(counter)]; };
  };
  ExpectObjection(CheckPackets, [](Evidence& e) { e.conservation_fault = "x"; }, "network");
  ExpectObjection(CheckPackets, [](Evidence& e) { e.in_flight = 1; }, "still on the way");
  ExpectObjection(CheckPackets, bend_counter(Counter::kPacketsSent), "sent");
  ExpectObjection(CheckPackets, bend_counter(Counter::kPacketsReceived), "received");
  ExpectObjection(CheckPackets, bend_counter(Counter::kLate), "two verdicts for a packet");
  ExpectObjection(CheckPackets, bend_rank(&RankEvidence::links_sent), "count per peer");
  ExpectObjection(CheckPackets, bend_rank(&RankEvidence::network_delivered), "not read");
  ExpectObjection(CheckPackets, bend_rank(&RankEvidence::queue_bytes_left), "left in the queue");
  ExpectObjection(CheckPackets, bend_rank(&RankEvidence::network_receive_drops), "drops");
  ExpectObjection(CheckPackets, bend_rank(&RankEvidence::corrupted_delivered), "taken for good");
}

TEST(Checkers, EntriesMustBeThoseOfTheResult) {
  ExpectObjection(
      CheckEntries, [](Evidence& e) { ++Call(e, 1, 0).report.lost_entries; }, "one too many");
  ExpectObjection(
      CheckEntries, [](Evidence& e) { --Call(e, 1, 0).report.lost_entries; }, "one too few");
  ExpectObjection(
      CheckEntries, [](Evidence& e) { ++Call(e, 1, 2).report.own_left_out_entries; }, "own");
  ExpectObjection(
      CheckEntries, [](Evidence& e) { Call(e, 1, 0).report.late_entries = 1; }, "late");
  ExpectObjection(CheckEntries, [](Evidence& e) { ++Call(e, 0, 0).report.entries; }, "entries");
  ExpectObjection(
      CheckEntries,
      [](Evidence& e) { ++e.by_rank[0].counters[static_cast<std::size_t>(Counter::kEntriesLost)]; },
      "counter");
  ExpectObjection(
      CheckEntries, [](Evidence& e) { Call(e, 0, 0).report.missing_elements = 1; },
      "an agreed end lacks nothing");
  // One contribution twice, on every rank alike: the same bits, but of no set.
  ExpectObjection(
      CheckEntries,
      [](Evidence& e) {
        for (Rank rank = 0; rank < 3; ++rank) Call(e, 1, rank).result[4] ^= std::byte{1};
      },
      "the sum of no set");
}

TEST(Checkers, ADivergentRankMustSayWhatItLacks) {
  const auto diverge = [](Evidence& e, bool zero) {
    CallEvidence& call = Call(e, 1, 0);
    call.report.outcome = Report::Outcome::kDivergent;
    call.report.missing_elements = 10;
    call.report.missing_ranges = {{5, 10}};
    if (!zero) return;
    for (std::size_t i = 5 * 4; i < 15 * 4; ++i) call.result[i] = std::byte{0};
  };
  Evidence honest = Good();
  diverge(honest, true);
  EXPECT_EQ(CheckEntries(honest), Findings{});
  ExpectObjection(CheckEntries, [&](Evidence& e) { diverge(e, false); }, "not zero");
  ExpectObjection(
      CheckEntries,
      [&](Evidence& e) {
        diverge(e, true);
        Call(e, 1, 0).result[20 * 4] ^= std::byte{1};
      },
      "other bits where it lacks nothing");
  ExpectObjection(
      CheckEntries,
      [&](Evidence& e) {
        diverge(e, true);
        Call(e, 1, 0).report.missing_ranges = {{29'995, 10}};
      },
      "outside of the tensor");
}

TEST(Checkers, ExactCallsMustBeExact) {
  ExpectObjection(
      CheckExact, [](Evidence& e) { Call(e, 0, 1).result[777] ^= std::byte{1}; }, "one bit");
  ExpectObjection(
      CheckExact, [](Evidence& e) { Call(e, 0, 1).report.lost_entries = 1; }, "a loss");
  // Who reports no loss must hold everything.
  ExpectObjection(
      CheckExact, [](Evidence& e) { Call(e, 1, 0).report.lost_entries = 0; }, "a hidden loss");
}

TEST(Checkers, AgreedRanksMustHoldTheSameBits) {
  ExpectObjection(
      CheckSameBits, [](Evidence& e) { Call(e, 1, 2).result[9] ^= std::byte{4}; }, "bits");
  ExpectObjection(
      CheckSameBits, [](Evidence& e) { ++Call(e, 1, 2).report.lost_entries; }, "losses");
}

TEST(Checkers, MemoryIsTheCallersAfterTheEnd) {
  ExpectObjection(
      CheckMemory, [](Evidence& e) { Call(e, 0, 1).untouched_after_end = false; }, "after");
  ExpectObjection(CheckMemory, [](Evidence& e) { Call(e, 0, 1).guards_intact = false; }, "beside");
}

TEST(Checkers, BoundedCallsMustEndInTime) {
  const auto late_by = [](Duration over, bool held) {
    return [over, held](Evidence& e) {
      CallEvidence& call = Call(e, 1, 0);
      call.report.after_deadline = e.grace + e.turn_cost + over;
      call.ended_at = Instant{} + std::chrono::seconds(1);
      if (held) call.held_at = call.ended_at - e.grace;
    };
  };
  ExpectObjection(CheckTime, late_by(Duration{1} + Good().port_lag, false), "too late");
  Evidence in_time = Good();
  late_by(Duration{0}, false)(in_time);
  EXPECT_EQ(CheckTime(in_time), Findings{});
  Evidence held = Good();
  late_by(milliseconds(100), true)(held);
  EXPECT_EQ(CheckTime(held), Findings{});
}

TEST(Checkers, EverythingMustEndWell) {
  ExpectObjection(CheckProgress, [](Evidence& e) { Call(e, 0, 1).ended = false; }, "no end");
  ExpectObjection(
      CheckProgress,
      [](Evidence& e) {
        Call(e, 0, 1).report.outcome = Report::Outcome::kFailed;
        Call(e, 0, 1).report.status = Status(Code::kTimeout, "x");
      },
      "failed");
  ExpectObjection(
      CheckProgress,
      [](Evidence& e) { e.ended_at = e.quiet_from + e.ends_within + Duration{1}; }, "too late");
  ExpectObjection(CheckProgress, [](Evidence& e) { e.by_rank[0].settled = false; }, "unsettled");
}

TEST(Checkers, TheArenaMustBeFreeAtTheEnd) {
  ExpectObjection(CheckLeaks, [](Evidence& e) { e.by_rank[2].cells_staged = 1; }, "a cell");
  ExpectObjection(CheckLeaks, [](Evidence& e) { e.by_rank[2].shards_held = 1; }, "a shard");
}

TEST(Checkers, EqualRunsHaveEqualTraces) {
  EXPECT_EQ(CheckEqualRuns(Good(), RunScenario(Lossy())), Findings{});
  Scenario other = Lossy();
  other.job.seed = 2;
  EXPECT_NE(CheckEqualRuns(Good(), RunScenario(other)), Findings{});
}

TEST(Checkers, ResultsOfOtherNetworksAreCompared) {
  Scenario other = Lossy();
  other.job.seed = 2;
  Evidence evidence = RunScenario(other);
  EXPECT_EQ(CheckEqualResults(Good(), evidence), Findings{});
  Call(evidence, 0, 1).result[3] ^= std::byte{1};
  EXPECT_NE(CheckEqualResults(Good(), evidence), Findings{});
}

// The runner's own eyes: what it puts into the evidence follows what callers and network did.
TEST(Runner, SeesWritesAfterTheEnd) {
  Watch watch;
  watch.on_start = [](Job& job) {
    const auto inner = job.on_end;
    job.on_end = [inner, &job](Rank rank, JobCall& call) {
      inner(rank, call);
      if (rank == 1) {
        job.world().Schedule(job.world().now() + milliseconds(1),
                             [&call] { call.out.bytes()[0] = std::byte{1}; });
      }
    };
  };
  EXPECT_NE(CheckMemory(RunScenario(Lossy(), watch)), Findings{});
}

TEST(Runner, SeesWritesBesideTheTensor) {
  Watch watch;
  watch.on_start = [](Job& job) {
    const auto inner = job.on_end;
    job.on_end = [inner](Rank rank, JobCall& call) {
      call.out.bytes().data()[call.out.bytes().size()] = std::byte{1};
      inner(rank, call);
    };
  };
  EXPECT_NE(CheckMemory(RunScenario(Lossy(), watch)), Findings{});
}

}  // namespace
}  // namespace optireduce::sim
