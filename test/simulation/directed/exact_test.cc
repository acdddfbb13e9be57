// Exact mode: every contribution, whatever the network does.
#include <gtest/gtest.h>

#include <vector>

#include "test/simulation/directed/scenes.h"

namespace optireduce::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Exact, HoldsUnderHeavyFaults) {
  for (const std::uint32_t ranks : {2u, 4u, 8u}) {
    Scenario scenario = Scene(ranks, Mode::kExact, 40'000, 3);
    scenario.calls[1].spec.type = DataType::kInt64;
    scenario.calls[1].values = ValueKind::kSmall;
    scenario.calls[2].spec.type = DataType::kBFloat16;
    scenario.calls_in_flight = 3;
    AddHeavyFaults(&scenario);
    const Evidence evidence = RunAndCheck(scenario);
    EXPECT_GT(DropsOf(evidence, DropReason::kLoss), 0u);
    EXPECT_GT(evidence.network.corrupted, 0u);
    EXPECT_GT(evidence.network.duplicated, 0u);
    EXPECT_GT(evidence.network.delayed, 0u);
    EXPECT_GT(Total(evidence, Counter::kDataRepeated), 0u);
    EXPECT_EQ(Total(evidence, Counter::kEntriesLost), 0u);
  }
}

TEST(Exact, EveryTypeAndOperatorUnderLoss) {
  Scenario scenario = Scene(3, Mode::kExact, 1, 0);
  scenario.job.network.conditions.loss = 0.1;
  scenario.calls_in_flight = 8;
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    for (std::size_t reduce = 0; reduce < kReduceOps; ++reduce) {
      CallPlan plan;
      plan.spec.type = static_cast<DataType>(type);
      plan.spec.reduce = static_cast<ReduceOp>(reduce);
      if (!Supported(plan.spec.type, plan.spec.reduce)) continue;
      plan.spec.count = 3001;
      plan.in_place = reduce % 2 == 0;
      scenario.calls.push_back(plan);
    }
  }
  ASSERT_GT(scenario.calls.size(), 50u);
  RunAndCheck(scenario);
}

TEST(Exact, OddCounts) {
  for (const std::uint32_t ranks : {2u, 5u, 8u}) {
    Scenario scenario = Scene(ranks, Mode::kExact, 0, 9);
    const std::uint64_t counts[] = {0, 1, ranks - 1, ranks, ranks + 1, 17, 127, 7919, 360};
    for (std::size_t i = 0; i < 9; ++i) scenario.calls[i].spec.count = counts[i];
    scenario.job.network.conditions.loss = 0.05;
    scenario.calls_in_flight = 4;
    RunAndCheck(scenario);
  }
}

// Random numbers, whose sum depends on the order of adding: yet one result.
TEST(Exact, SameBitsWhateverTheOrderOfArrival) {
  Scenario scenario = Scene(6, Mode::kExact, 50'000, 2);
  for (CallPlan& plan : scenario.calls) plan.values = ValueKind::kRandom;
  const Evidence first = RunAndCheck(scenario);
  for (const std::uint64_t seed : {2u, 3u, 4u}) {
    scenario.job.seed = seed;
    NodeConfig& node = scenario.job.network.node;
    node.uplink.jitter = node.downlink.jitter = microseconds(seed * 40);
    scenario.job.network.conditions.reorder = 0.2;
    scenario.job.network.conditions.loss = seed == 4 ? 0.1 : 0;
    scenario.start_after.assign(6, Duration{});
    scenario.start_after[seed] = milliseconds(1);
    const Evidence other = RunAndCheck(scenario);
    EXPECT_NE(other.trace_hash, first.trace_hash);
    EXPECT_EQ(CheckEqualResults(first, other), Findings{});
  }
}

// The runner overwrites every tensor the instant its call ends, while peers still ask for repeats.
TEST(Exact, MemoryMayBeOverwrittenAtTheEnd) {
  Scenario scenario = Scene(8, Mode::kExact, 60'000, 6);
  scenario.job.network.conditions.loss = 0.1;
  scenario.calls_in_flight = 2;
  const Evidence evidence = RunAndCheck(scenario);
  bool some_ended_early = false;
  for (const CallsEvidence& calls : evidence.calls) {
    Instant first = kNever;
    Instant last{};
    for (const CallEvidence& call : calls.by_rank) {
      first = std::min(first, call.ended_at);
      last = std::max(last, call.ended_at);
    }
    some_ended_early |= last - first > microseconds(500);
  }
  EXPECT_TRUE(some_ended_early);
  EXPECT_GT(Total(evidence, Counter::kResultRepeated), 0u);
}

TEST(Exact, APausedRankIsWaitedFor) {
  Scenario scenario = Scene(4, Mode::kExact, 100'000);
  scenario.pauses = {{2, Instant{} + microseconds(100), Instant{} + milliseconds(300)}};
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(evidence.ended_at, Instant{} + milliseconds(300));
  EXPECT_LT(evidence.ended_at, Instant{} + milliseconds(340));
}

// A rank that calls a minute after the others, as after a checkpoint: with what is configured when
// nobody configures anything, no op fails.
TEST(Exact, ARankThatIsAwayForAMinuteIsWaitedFor) {
  Scenario scenario = Scene(4, Mode::kExact, 10'000, 2);
  for (CallPlan& plan : scenario.calls) plan.spec.timeout = scenario.job.settings.op_timeout;
  scenario.start_after = {std::chrono::seconds(60), Duration{}, Duration{}, Duration{}};
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(evidence.ended_at, Instant{} + std::chrono::seconds(60));
  EXPECT_LT(evidence.ended_at, Instant{} + std::chrono::seconds(61));
}

TEST(Exact, APartitionIsWaitedOut) {
  Scenario scenario = Scene(4, Mode::kExact, 100'000);
  const std::vector<NodeId> left = {0, 1};
  const std::vector<NodeId> right = {2, 3};
  scenario.partitions = {
      {Network::PairsBetween(left, right), Instant{} + microseconds(50),
       Instant{} + milliseconds(200)}};
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(evidence.ended_at, Instant{} + milliseconds(200));
  EXPECT_LT(evidence.ended_at, Instant{} + milliseconds(350));
}

// Two ranks call different things: every rank gets an error that says so, and nothing hangs.
TEST(Exact, RanksThatDifferFailTogether) {
  Scenario scenario = Scene(3, Mode::kExact, 1000);
  World world;
  NetworkConfig config = scenario.job.network;
  config.nodes = 3;
  Network network(&world, config);
  Job job(scenario.job, &world, &network);
  for (Rank rank = 0; rank < 3; ++rank) job.Start(rank);
  std::vector<JobCall*> calls;
  for (Rank rank = 0; rank < 3; ++rank) {
    CallSpec spec = scenario.calls[0].spec;
    spec.count = rank == 1 ? 2000 : 1000;
    calls.push_back(&job.CallAt(Instant{} + Duration{1}, rank, spec,
                                std::vector<std::byte>(spec.count * 4), false));
  }
  ASSERT_TRUE(job.RunUntilEnded(Instant{} + std::chrono::seconds(1)));
  for (const JobCall* call : calls) {
    EXPECT_EQ(call->call->report.outcome, Report::Outcome::kFailed);
    EXPECT_EQ(call->call->report.status.code(), Code::kMismatch);
  }
}

}  // namespace
}  // namespace optireduce::sim
