// What goes over the network: no storms, no overflow, and each mechanism that adapts does.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "test/simulation/directed/scenes.h"

namespace optireduce::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::uint64_t Repeated(const Evidence& evidence) {
  return Total(evidence, Counter::kDataRepeated) + Total(evidence, Counter::kResultRepeated);
}

TEST(Traffic, RepeatsAreAsManyAsLosses) {
  Scenario scenario = Scene(8, Mode::kExact, 25 << 18);  // 25 MiB
  scenario.job.network.conditions.loss = 0.01;
  const Evidence evidence = RunAndCheck(scenario);
  const auto packets = static_cast<double>(evidence.network.sent);
  EXPECT_LE(static_cast<double>(Repeated(evidence)), 0.011 * packets);
  EXPECT_LT(static_cast<double>(Total(evidence, Counter::kDuplicate)), 0.001 * packets);
}

TEST(Traffic, ACleanRunRepeatsNothing) {
  const Evidence evidence = RunAndCheck(Scene(8, Mode::kExact, 1 << 20, 3));
  EXPECT_EQ(Repeated(evidence), 0u);
  EXPECT_EQ(Total(evidence, Counter::kDuplicate), 0u);
}

TEST(Traffic, ASmallReceiveQueueIsNotOverflowed) {
  Scenario scenario = Scene(8, Mode::kExact, 1 << 20, 2);
  scenario.job.network.node.receive_queue_bytes_max = 208 << 10;
  scenario.calls_in_flight = 2;
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_EQ(DropsOf(evidence, DropReason::kReceiveQueue), 0u);
  EXPECT_EQ(Total(evidence, Counter::kKernelReceiveDrops), 0u);
}

// With one packet of credit, a report must not count as something to report.
TEST(Traffic, ReportsAreNotAnsweredByReports) {
  Scenario scenario = Scene(5, Mode::kExact, 30'000, 3);
  scenario.job.network.packet_bytes_max = 8972;
  scenario.job.network.node.receive_queue_bytes_max = 64 << 10;
  scenario.job.settings.credit_bytes_start = 2 << 10;
  const Evidence evidence = RunAndCheck(scenario);
  const std::uint64_t cells = 3 * 2 * 5 * 4 * 3;  // calls, stages, pairs, cells of a shard
  EXPECT_LT(Total(evidence, Counter::kReportsSent), 5 * cells);
}

// Both arenas are full of an op that both are done with, and all reports that would say so are
// lost: a rank that waits for room asks.
TEST(Traffic, LostReportsDoNotKeepTheArenaFull) {
  Scenario scenario = Scene(2, Mode::kExact, 30'000, 3);
  scenario.job.settings.arena_bytes_max = 100'000;  // room for one shard
  scenario.calls_in_flight = 2;
  scenario.ends_within = std::chrono::seconds(4);
  Job* job = nullptr;
  int ended = 0;
  Watch watch;
  watch.on_start = [&](Job& started) { job = &started; };
  watch.on_call = [&](Instant now, Rank, const JobCall& call) {
    if (call.index != 0 || !call.ended() || ++ended < 2) return;
    const std::vector<NodePair> pairs = {{0, 1}, {1, 0}};
    job->network().Partition(pairs, now, now + std::chrono::seconds(1));
  };
  const Evidence evidence = RunAndCheck(scenario, watch);
  EXPECT_GT(evidence.ended_at, Instant{} + std::chrono::seconds(1));
  EXPECT_GT(DropsOf(evidence, DropReason::kPartition), 0u);
}

// Random losses do not either.
TEST(Traffic, ATinyArenaUnderHeavyLossGoesOn) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Scenario scenario = Scene(3, Mode::kExact, 30'000, 12);
    scenario.job.seed = seed;
    scenario.job.settings.arena_bytes_max = 100'000;
    scenario.job.network.conditions.loss = 0.4;
    scenario.calls_in_flight = 3;
    scenario.ends_within = std::chrono::seconds(4);
    RunAndCheck(scenario);
  }
}

// The receiver doubles what it grants while nothing overflows, up to its share of the total.
TEST(Adaptive, CreditGrowsOnACleanNetwork) {
  Scenario scenario = Scene(3, Mode::kExact, 1 << 20);
  scenario.job.settings.credit_bytes_start = 16 << 10;
  std::uint32_t least = ~0u;
  std::uint32_t most = 0;
  std::uint32_t share = 0;
  RunAndCheck(scenario, LookEvery(microseconds(10), [&](Job& job) {
                const std::uint32_t credit = job.engine(0).group().link(1).tx.credit();
                least = std::min(least, credit);
                most = std::max(most, credit);
                share = job.engine(0).group().settings().credit_max_packets;
              }));
  EXPECT_LE(least, (16u << 10) / 1440);
  EXPECT_EQ(most, share);
  EXPECT_GT(share, 8 * least);
}

// A queue that holds less than it said overflows: credit is halved until it does not.
TEST(Adaptive, CreditShrinksWhenTheQueueOverflows) {
  const auto run = [](std::uint64_t queue_bytes, std::uint32_t* credit) {
    Scenario scenario = Scene(6, Mode::kExact, 1 << 20);
    // The process is slow, so that what is allowed in flight does wait in the queue.
    scenario.job.turn_cost = microseconds(100);
    Watch watch = LookEvery(microseconds(500), [credit](Job& job) {
      *credit = std::min(*credit, job.engine(1).group().link(0).tx.credit());
    });
    watch.on_start = [queue_bytes, start = watch.on_start](Job& job) {
      job.network().SetReceiveQueue(0, queue_bytes);
      start(job);
    };
    return RunAndCheck(scenario, watch);
  };
  std::uint32_t roomy = ~0u;
  std::uint32_t shallow = ~0u;
  const Evidence without = run(8 << 20, &roomy);
  const Evidence with = run(96 << 10, &shallow);
  EXPECT_EQ(Total(without, Counter::kCreditOverflowEvents), 0u);
  EXPECT_GT(Total(with, Counter::kCreditOverflowEvents), 0u);
  EXPECT_LT(shallow, roomy);
}

// Packets that are only late are asked for in vain at first; then the guard has learnt how late.
TEST(Adaptive, TheReorderGuardLearns) {
  Scenario scenario = Scene(2, Mode::kExact, 2'000'000, 6);
  scenario.job.network.conditions.reorder = 0.05;
  scenario.job.network.conditions.reorder_delay_max = microseconds(400);
  std::vector<std::uint64_t> after;  // repeats, after each call of rank 0
  Job* job = nullptr;
  Watch watch;
  watch.on_start = [&](Job& started) { job = &started; };
  watch.on_call = [&](Instant, Rank rank, const JobCall& call) {
    if (rank != 0 || !call.ended()) return;
    const Counters& counters = job->engine(0).counters();
    after.push_back(counters.Get(Counter::kDataRepeated) +
                    counters.Get(Counter::kResultRepeated));
  };
  const Evidence evidence = RunAndCheck(scenario, watch);
  EXPECT_EQ(evidence.network.dropped_total(), 0u);
  ASSERT_EQ(after.size(), 6u);
  EXPECT_GT(after[0], 0u);
  EXPECT_LT(after[5] - after[3], after[0]);
}

// Repair is as quick as the network: the time T follows the round trip that is measured.
TEST(Adaptive, TheRepairTimeFollowsTheRoundTrip) {
  const auto repair_time = [](Duration propagation) {
    Scenario scenario = Scene(2, Mode::kExact, 200'000, 3);
    NodeConfig& node = scenario.job.network.node;
    node.uplink.propagation = node.downlink.propagation = propagation;
    Duration last{};
    Job* job = nullptr;
    Watch watch;
    watch.on_start = [&](Job& started) { job = &started; };
    watch.on_call = [&](Instant, Rank rank, const JobCall& call) {
      if (rank == 0 && call.ended()) last = job->engine(0).group().link(1).rtt.repair_time();
    };
    RunAndCheck(scenario, watch);
    return last;
  };
  const Duration near = repair_time(microseconds(2));
  const Duration far = repair_time(milliseconds(2));
  EXPECT_LT(near, milliseconds(3));
  EXPECT_GT(far, milliseconds(8));  // four links
  EXPECT_LT(far, milliseconds(100));
}

// Admission: a rank does not run more than ops_behind_max ops ahead of the slowest caller.
TEST(Adaptive, BackPressureFollowsTheSlowestCaller) {
  for (const std::uint64_t behind : {1u, 4u}) {
    Scenario scenario = Scene(3, Mode::kBounded, 1000, 12);
    scenario.job.settings.bounded_bound = milliseconds(2);
    scenario.job.settings.ops_behind_max = behind;
    scenario.late_calls = {{1, 2, milliseconds(100)}};
    OpNumber most_ahead = 0;
    RunAndCheck(scenario, LookEvery(microseconds(200), [&](Job& job) {
                  const OpNumber slow = job.engine(1).group().called();
                  const OpNumber fast = job.engine(0).group().called();
                  if (fast > slow) most_ahead = std::max(most_ahead, fast - slow);
                }));
    EXPECT_EQ(most_ahead, behind);
  }
}

}  // namespace
}  // namespace optireduce::sim
