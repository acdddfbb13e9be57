// Bounded mode: an end in time, with what was left out accounted for.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "test/simulation/directed/scenes.h"

namespace optireduce::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Scenario BoundedScene(std::uint32_t ranks, std::uint64_t count, std::uint64_t calls) {
  Scenario scenario = Scene(ranks, Mode::kBounded, count, calls);
  scenario.job.settings.bounded_bound = milliseconds(20);
  return scenario;
}

TEST(Bounded, LosesNothingOnACleanNetwork) {
  const Evidence evidence = RunAndCheck(BoundedScene(8, 200'000, 3));
  EXPECT_EQ(Total(evidence, Counter::kEntriesLost), 0u);
  EXPECT_EQ(Total(evidence, Counter::kOpsDivergent), 0u);
  EXPECT_LT(evidence.ended_at, Instant{} + milliseconds(20));
}

TEST(Bounded, RepairsALittleLossInTime) {
  Scenario scenario = BoundedScene(8, 200'000, 3);
  scenario.job.network.conditions.loss = 0.01;
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(DropsOf(evidence, DropReason::kLoss), 0u);
  EXPECT_EQ(Total(evidence, Counter::kEntriesLost), 0u);
  EXPECT_EQ(Total(evidence, Counter::kOpsDivergent), 0u);
}

// Nobody is paused or late: every call ends within bound + grace of its start, to the turn.
TEST(Bounded, EndsInTimeUnderHeavyFaults) {
  for (const std::uint32_t ranks : {2u, 4u, 8u}) {
    for (const std::uint64_t grace_pct : {0u, 20u, 100u}) {
      Scenario scenario = BoundedScene(ranks, 150'000, 4);
      scenario.job.settings.bounded_bound = milliseconds(3);
      scenario.job.settings.bounded_fetch_grace_pct = grace_pct;
      AddHeavyFaults(&scenario);
      // A busy uplink would hold up the end of a call, and its check could not be exact.
      scenario.job.network.node.uplink_full = UplinkFull::kDrop;
      const Evidence evidence = RunAndCheck(scenario);
      EXPECT_EQ(evidence.port_lag, Duration{0});
      EXPECT_GT(Total(evidence, Counter::kEntriesLost), 0u);
      for (const CallsEvidence& calls : evidence.calls) {
        for (const CallEvidence& call : calls.by_rank) {
          EXPECT_LE(call.report.after_deadline, evidence.grace + evidence.turn_cost)
              << ranks << " ranks, grace " << grace_pct << " %";
        }
      }
    }
  }
}

// Rank 2 calls 200 ms late: the others end in time without it, and it gets the bits they have.
TEST(Bounded, ALateRankHoldsNobodyUpAndGetsTheSameBits) {
  Scenario scenario = BoundedScene(4, 100'000, 1);
  scenario.late_calls = {{2, 0, milliseconds(200)}};
  const Evidence evidence = RunAndCheck(scenario);
  const CallsEvidence& calls = evidence.calls[0];
  for (Rank rank = 0; rank < 4; ++rank) {
    const CallEvidence& call = calls.by_rank[rank];
    EXPECT_EQ(call.report.outcome, Report::Outcome::kAgreed) << rank;
    EXPECT_EQ(call.report.lost_entries, 100'000u) << rank;
    EXPECT_EQ(call.report.own_left_out_entries, rank == 2 ? 100'000u : 0u) << rank;
    if (rank == 2) {
      EXPECT_EQ(call.called_at, Instant{} + Duration{1} + milliseconds(200));
      EXPECT_LE(call.report.elapsed, milliseconds(2));
    } else {
      EXPECT_LE(call.report.elapsed, milliseconds(20)) << rank;
    }
    EXPECT_EQ(call.result, calls.by_rank[0].result);
  }
}

// The late rule: the first op that a rank misses costs the others the scatter deadline, those after
// it cost nothing; and once it calls in time again, it is in again.
TEST(Bounded, AMissingRankCostsOneDeadline) {
  Scenario scenario = BoundedScene(4, 20'000, 12);
  scenario.late_calls = {{3, 1, milliseconds(60)}};
  const Evidence evidence = RunAndCheck(scenario);
  const auto elapsed = [&](std::size_t call) {
    Duration most{};
    for (Rank rank = 0; rank < 3; ++rank) {
      most = std::max(most, evidence.calls[call].by_rank[rank].report.elapsed);
    }
    return most;
  };
  EXPECT_LT(elapsed(0), milliseconds(2));
  EXPECT_GE(elapsed(1), milliseconds(15));  // three quarters of the bound
  EXPECT_LE(elapsed(1), milliseconds(20));
  for (const std::size_t call : {2u, 3u, 4u, 5u}) EXPECT_LT(elapsed(call), milliseconds(2));
  EXPECT_EQ(evidence.calls[5].by_rank[0].report.lost_entries, 20'000u);
  // Back-pressure keeps the others near enough that it can catch up.
  EXPECT_EQ(evidence.calls[11].by_rank[0].report.lost_entries, 0u);
}

TEST(Bounded, APausedRankHoldsNobodyUp) {
  Scenario scenario = BoundedScene(5, 50'000, 2);
  scenario.pauses = {{1, Instant{} + microseconds(20), Instant{} + milliseconds(300)}};
  const Evidence evidence = RunAndCheck(scenario);
  for (const CallsEvidence& calls : evidence.calls) {
    for (Rank rank = 0; rank < 5; ++rank) {
      if (rank == 1) continue;
      const Report& report = calls.by_rank[rank].report;
      EXPECT_LE(report.after_deadline, evidence.grace + evidence.turn_cost) << rank;
      // The anchor is another rank's start, dated by the OPEN's arrival less its age.
      EXPECT_LE(report.elapsed, milliseconds(40) + microseconds(20)) << rank;
    }
  }
}

// The own shard of a stopped owner cannot be had: divergent, with the ranges, which are 0.
TEST(Bounded, AStoppedOwnerLeavesItsShardMissing) {
  Scenario scenario = BoundedScene(4, 40'000, 1);
  scenario.pauses = {{1, Instant{}, Instant{} + milliseconds(300)}};
  scenario.late_calls = {{1, 0, milliseconds(300)}};
  const Evidence evidence = RunAndCheck(scenario);
  for (const Rank rank : {0u, 2u, 3u}) {
    const Report& report = evidence.calls[0].by_rank[rank].report;
    EXPECT_EQ(report.outcome, Report::Outcome::kDivergent);
    EXPECT_EQ(report.missing_elements, 10'000u);
    ASSERT_EQ(report.missing_ranges.size(), 1u);
    EXPECT_EQ(report.missing_ranges[0].first, 10'000u);
    EXPECT_LE(report.after_deadline, evidence.grace + evidence.turn_cost);
  }
}

// An exact op before it, whose data lack, takes the bound's time and no more from a bounded one.
TEST(Bounded, AnExactOpBeforeItHoldsUpTheClockForOneBound) {
  Scenario scenario = BoundedScene(2, 30'000, 2);
  scenario.job.settings.bounded_bound = milliseconds(2);
  scenario.job.settings.bounded_fetch_grace_pct = 0;
  scenario.calls[0].spec.mode = Mode::kExact;
  scenario.calls_in_flight = 2;
  const std::vector<NodeId> left = {0};
  const std::vector<NodeId> right = {1};
  const Instant begin = Instant{} + microseconds(30);
  const Instant end = Instant{} + milliseconds(200);
  scenario.partitions = {{Network::PairsBetween(left, right), begin, end},
                         {Network::PairsBetween(right, left), begin, end}};
  const Evidence evidence = RunAndCheck(scenario);
  for (const CallEvidence& call : evidence.calls[1].by_rank) {
    EXPECT_LE(call.report.after_deadline, evidence.turn_cost);
    // One bound for the op before and one of its own.
    EXPECT_LE(call.report.elapsed, milliseconds(4) + microseconds(20));
  }
}

// The end of a call is not kept back by what this rank goes on sending for other calls.
TEST(Bounded, EndsAreToldWhileThePortIsBusy) {
  Scenario scenario = BoundedScene(4, 300'000, 4);
  scenario.job.settings.bounded_bound = milliseconds(5);
  scenario.job.settings.bounded_fetch_grace_pct = 20;
  NodeConfig& node = scenario.job.network.node;
  node.uplink.rate_bits_per_s = node.downlink.rate_bits_per_s = 1'000'000'000;
  node.uplink.queue_bytes_max = 64 << 10;
  scenario.calls_in_flight = 4;
  const Evidence evidence = RunAndCheck(scenario);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const CallEvidence& call : evidence.calls[i].by_rank) {
      // Each op's clock runs from the end of the one before it.
      EXPECT_LE(call.report.elapsed, (i + 1) * milliseconds(6) + evidence.port_lag) << i;
    }
  }
}

}  // namespace
}  // namespace optireduce::sim
