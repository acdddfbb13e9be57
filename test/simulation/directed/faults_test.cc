// Each fault of a scenario by itself: it happened, and all checkers are content.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/simulation/directed/scenes.h"

namespace optireduce::sim {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kWrap = std::uint64_t{1} << 32;

PairConditions& ConditionsOf(Scenario& scenario) { return scenario.job.network.conditions; }

std::uint64_t OldDelivered(const Evidence& evidence) {
  std::uint64_t sum = 0;
  for (const RankEvidence& rank : evidence.by_rank) sum += rank.old_delivered;
  return sum;
}

TEST(Fault, BurstsOfLossAreRepaired) {
  for (const double share : {1.0, 0.6}) {
    Scenario scenario = Scene(4, Mode::kExact, 200'000, 3);
    ConditionsOf(scenario).burst_begin = 0.005;
    ConditionsOf(scenario).burst_end = 0.04;
    ConditionsOf(scenario).burst_loss = share;
    EXPECT_GT(DropsOf(RunAndCheck(scenario), DropReason::kBurstLoss), 100u);
  }
}

TEST(Fault, DamageIsRefusedWhateverTheTagCovers) {
  for (const TagMode tag : {TagMode::kHeader, TagMode::kFull, TagMode::kOff}) {
    Scenario scenario = Scene(4, Mode::kExact, 100'000, 2);
    scenario.job.settings.security_tag = tag;
    ConditionsOf(scenario).corrupt = 0.03;
    const Evidence evidence = RunAndCheck(scenario);
    EXPECT_GT(Total(evidence, Counter::kBadTag), 20u);
    EXPECT_GT(evidence.network.corrupted, 20u);
  }
}

TEST(Fault, DamageThatTheKernelCatchesIsALoss) {
  Scenario scenario = Scene(4, Mode::kExact, 100'000, 2);
  ConditionsOf(scenario).corrupt_caught = 0.03;
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(DropsOf(evidence, DropReason::kChecksum), 20u);
  EXPECT_EQ(Total(evidence, Counter::kBadTag), 0u);
}

// A clog is no loss: what it holds comes in the end, and is not sent over and over meanwhile.
TEST(Fault, AClogDelaysAndCausesNoStorm) {
  Scenario scenario = Scene(4, Mode::kExact, 200'000, 2);
  const std::vector<NodeId> all = {0, 1, 2, 3};
  const std::vector<NodeId> one = {2};
  scenario.clogs = {{Network::PairsBetween(all, one), Instant{} + microseconds(100),
                     Instant{} + milliseconds(60)}};
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(evidence.network.clogged, 10u);
  EXPECT_EQ(evidence.network.dropped_total(), 0u);
  EXPECT_GT(evidence.ended_at, Instant{} + milliseconds(60));
  EXPECT_LT(evidence.ended_at, Instant{} + milliseconds(100));
  EXPECT_LT(evidence.network.sent, 2 * 2 * 4 * 3 * (200'000 * 4 / 4 / 1440 + 1) + 1500u);
}

TEST(Fault, ABoundedOpDoesNotWaitForAClog) {
  Scenario scenario = Scene(4, Mode::kBounded, 100'000);
  scenario.job.settings.bounded_bound = milliseconds(10);
  const std::vector<NodeId> all = {0, 1, 2, 3};
  const std::vector<NodeId> one = {2};
  scenario.clogs = {{Network::PairsBetween(one, all), Instant{} + microseconds(50),
                     Instant{} + milliseconds(200)}};
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(evidence.network.clogged, 10u);
  for (const CallEvidence& call : evidence.calls[0].by_rank) {
    EXPECT_LT(call.ended_at, Instant{} + milliseconds(25));
  }
}

TEST(Fault, APartitionHeals) {
  for (const Mode mode : {Mode::kExact, Mode::kBounded}) {
    Scenario scenario = Scene(5, mode, 50'000, 4);
    const std::vector<NodeId> left = {0, 1};
    const std::vector<NodeId> right = {2, 3, 4};
    scenario.partitions = {{Network::PairsBetween(left, right), Instant{} + microseconds(20),
                            Instant{} + milliseconds(90)},
                           {Network::PairsBetween(right, left), Instant{} + microseconds(20),
                            Instant{} + milliseconds(90)}};
    EXPECT_GT(DropsOf(RunAndCheck(scenario), DropReason::kPartition), 10u);
  }
}

// One way loses most packets while the way back is clean.
TEST(Fault, OneWayMayBeWorseThanTheWayBack) {
  Scenario scenario = Scene(3, Mode::kExact, 50'000, 2);
  PairConditions bad;
  bad.loss = 0.6;
  bad.extra_delay = milliseconds(1);
  scenario.ways = {{{1, 0}, bad}};
  std::uint64_t lost_elsewhere = 0;
  Watch watch;
  watch.on_packet = [&](const TraceRecord& record) {
    if (record.kind == TraceKind::kDrop && (record.from != 1 || record.to != 0)) ++lost_elsewhere;
  };
  EXPECT_GT(DropsOf(RunAndCheck(scenario, watch), DropReason::kLoss), 50u);
  EXPECT_EQ(lost_elsewhere, 0u);
}

// 1 MB over an uplink of 100 Mbit/s: two thirds of it takes 57 ms, and scatter and broadcast wait.
TEST(Fault, ALinkMayBeSlowInOneDirection) {
  Scenario scenario = Scene(3, Mode::kExact, 270'000);
  LinkPlan plan{1, {}, {}};
  plan.uplink.rate_bits_per_s = 100'000'000;
  scenario.links = {plan};
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GT(evidence.ended_at, Instant{} + milliseconds(57));
  EXPECT_LT(evidence.ended_at, Instant{} + milliseconds(180));
}

// No decision compares clocks: days apart, and drifting as no real clock does.
TEST(Fault, ClocksMayBeApartAndDrift) {
  for (const Mode mode : {Mode::kExact, Mode::kBounded}) {
    Scenario scenario = Scene(4, mode, 50'000, 20);
    scenario.job.clocks = {{hours(0), 1000}, {hours(2400), -1000}, {hours(1), 0},
                           {milliseconds(7), 500}};
    scenario.late_calls = {{1, 3, milliseconds(30)}};
    scenario.job.settings.bounded_bound = milliseconds(5);
    const Evidence evidence = RunAndCheck(scenario);
    EXPECT_GT(evidence.ended_at, Instant{} + milliseconds(30));
    EXPECT_EQ(Total(evidence, Counter::kOpsCalled), 80u);
    if (mode == Mode::kExact) continue;
    EXPECT_GT(evidence.calls[3].by_rank[0].report.lost_entries, 0u) << "rank 1 was too late";
    EXPECT_EQ(evidence.calls[19].by_rank[0].report.lost_entries, 0u);
  }
}

TEST(Fault, AClockConvertsBothWays) {
  for (const std::int64_t ppm : {-1000, -7, 0, 3, 1000}) {
    const RankClock clock{hours(5), ppm};
    for (std::int64_t ns = 0; ns < 100'000'000'000; ns = ns * 3 + 1) {
      const Instant local = clock.Local(InstantFromNanos(ns));
      const Instant world = clock.World(local);
      EXPECT_GE(clock.Local(world), local);
      EXPECT_LE(std::abs(Nanos(world) - ns), 1) << ppm << " at " << ns;
    }
  }
}

// Packets of the killed run reach the new one, and not one of them counts there: neither under
// another key nor, with the same key, under another epoch.
TEST(Fault, NothingOfAnEarlierRunEntersTheNext) {
  for (const bool same_key : {false, true}) {
    for (const TagMode tag : {TagMode::kHeader, TagMode::kFull, TagMode::kOff}) {
      Scenario scenario = Scene(4, Mode::kExact, 100'000, 3);
      scenario.job.settings.security_tag = tag;
      // Long ways, so that much is in flight when the new ranks start.
      scenario.job.network.node.downlink.propagation = milliseconds(5);
      scenario.job.epoch = 1;
      ConditionsOf(scenario).duplicate = 0.1;
      ConditionsOf(scenario).reorder = 0.3;
      ConditionsOf(scenario).reorder_delay_max = milliseconds(20);
      RestartPlan plan;
      plan.rank = 2;
      plan.killed_at = Instant{} + microseconds(5'300);
      plan.dead_after = {microseconds(100), microseconds(700), Duration{0}, milliseconds(9)};
      plan.started_after.assign(4, microseconds(50));
      plan.same_key = same_key;
      scenario.restart = plan;
      const Evidence evidence = RunAndCheck(scenario);
      EXPECT_GT(OldDelivered(evidence), 100u);
      EXPECT_EQ(Total(evidence, same_key ? Counter::kStaleEpoch : Counter::kBadTag),
                OldDelivered(evidence));
    }
  }
}

// Any rank at 50 moments.
TEST(Fault, ARankMayBeKilledAtAnyMoment) {
  std::uint64_t old = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Scenario scenario = Scene(3, seed % 2 == 0 ? Mode::kExact : Mode::kBounded, 20'000, 4);
    scenario.job.seed = seed;
    scenario.job.network.node.downlink.propagation = microseconds(400);
    RestartPlan plan;
    plan.rank = static_cast<Rank>(seed % 3);
    plan.killed_at = Instant{} + microseconds(1 + 37 * seed);
    plan.dead_after.assign(3, microseconds(10 * seed));
    plan.started_after.assign(3, microseconds(20));
    plan.started_after[seed % 3] = milliseconds(2);
    scenario.restart = plan;
    old += OldDelivered(RunAndCheck(scenario));
  }
  EXPECT_GT(old, 100u);
}

TEST(Fault, AnExactCallThatARankNeverMakesFailsAndNamesIt) {
  Scenario scenario = Scene(4, Mode::kExact, 20'000, 5);
  for (CallPlan& plan : scenario.calls) plan.spec.timeout = milliseconds(300);
  scenario.never_calls = {{2, 3}};
  const Evidence evidence = RunAndCheck(scenario);
  for (const Rank rank : {0u, 1u, 3u}) {
    const CallEvidence& call = evidence.calls[3].by_rank[rank];
    ASSERT_EQ(call.report.outcome, Report::Outcome::kFailed);
    EXPECT_NE(call.report.status.text().find("rank 2: has not called it"), std::string::npos)
        << call.report.status.text();
    EXPECT_LT(call.ended_at, Instant{} + milliseconds(310));
    EXPECT_EQ(evidence.calls[2].by_rank[rank].report.outcome, Report::Outcome::kAgreed);
  }
}

// The caller's next call cannot begin; the error says on whom its own earlier one waits.
TEST(Fault, ACallThatCannotBeginNamesWhoIsBehind) {
  Scenario scenario = Scene(3, Mode::kExact, 20'000, 4);
  scenario.job.settings.ops_in_flight_max = 1;
  scenario.calls_in_flight = 4;
  scenario.calls[1].spec.timeout = std::chrono::seconds(30);
  for (std::size_t i = 2; i < 4; ++i) scenario.calls[i].spec.timeout = milliseconds(200);
  scenario.never_calls = {{2, 1}};
  const Evidence evidence = RunAndCheck(scenario);
  const std::string text = evidence.calls[2].by_rank[0].report.status.text();
  EXPECT_NE(text.find("could not begin within 200 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 2: has not called it"), std::string::npos) << text;
}

TEST(Fault, BoundedCallsGoOnWithoutARankThatNeverCalls) {
  Scenario scenario = Scene(4, Mode::kBounded, 20'000, 6);
  scenario.job.settings.bounded_bound = milliseconds(5);
  scenario.never_calls = {{2, 2}};
  const Evidence evidence = RunAndCheck(scenario);
  for (std::size_t i = 2; i < 6; ++i) {
    const CallEvidence& call = evidence.calls[i].by_rank[0];
    EXPECT_EQ(call.report.outcome, Report::Outcome::kAgreed);
    EXPECT_EQ(call.report.lost_entries, 20'000u);
  }
}

TEST(Fault, OpAndPacketNumbersWrap) {
  for (const Mode mode : {Mode::kExact, Mode::kBounded}) {
    Scenario scenario = Scene(4, mode, 30'000, 10);
    scenario.job.ops_before = 3 * kWrap - 5;
    scenario.job.first_number = 3 * kWrap - 40;
    ConditionsOf(scenario).loss = 0.02;
    std::uint64_t after = 0;
    const Evidence evidence = RunAndCheck(scenario, LookEvery(microseconds(100), [&](Job& job) {
      after = job.engine(0).group().done();
    }));
    EXPECT_GT(after, 3 * kWrap);
    EXPECT_GT(evidence.by_rank[0].links_sent, 3 * 40u);
  }
}

TEST(Fault, AFullQueueAnywhereIsALoss) {
  for (const DropReason reason :
       {DropReason::kUplinkQueue, DropReason::kPortQueue, DropReason::kReceiveQueue}) {
    Scenario scenario = Scene(6, Mode::kExact, 100'000, 3);
    NodeConfig& node = scenario.job.network.node;
    node.uplink_full = UplinkFull::kDrop;
    if (reason == DropReason::kUplinkQueue) node.uplink.queue_bytes_max = 16 << 10;
    if (reason == DropReason::kPortQueue) {
      node.downlink.queue_bytes_max = 16 << 10;
      node.downlink.rate_bits_per_s = 1'000'000'000;
    }
    Watch watch;
    if (reason == DropReason::kReceiveQueue) {
      // Smaller than a rank believes, so that credit does not save it; and the rank is slow.
      scenario.job.turn_cost = microseconds(50);
      watch.on_start = [](Job& job) { job.network().SetReceiveQueue(0, 9 << 10); };
    }
    EXPECT_GT(DropsOf(RunAndCheck(scenario, watch), reason), 0u) << Name(reason);
  }
}

TEST(Fault, SendsThatFailAreLossesAndBusyOnesAreNot) {
  Scenario scenario = Scene(4, Mode::kExact, 100'000, 2);
  ConditionsOf(scenario).send_refused = 0.05;
  const Evidence refused = RunAndCheck(scenario);
  std::uint64_t counted = 0;
  for (const RankEvidence& rank : refused.by_rank) counted += rank.port.send_refused;
  EXPECT_GT(counted, 20u);
  EXPECT_EQ(counted, DropsOf(refused, DropReason::kSendRefused));
  ConditionsOf(scenario).send_refused = 0;
  ConditionsOf(scenario).send_busy = 0.5;
  const Evidence busy = RunAndCheck(scenario);
  EXPECT_GT(busy.network.busy, 20u);
  EXPECT_EQ(busy.network.dropped_total(), 0u);
}

TEST(Fault, APausedRankComesBackInEveryMode) {
  for (const Mode mode : {Mode::kExact, Mode::kBounded}) {
    Scenario scenario = Scene(4, mode, 50'000, 6);
    scenario.job.settings.bounded_bound = milliseconds(5);
    scenario.pauses = {{1, Instant{} + microseconds(60), Instant{} + milliseconds(150)}};
    std::vector<TraceKind> seen;
    Watch watch;
    watch.on_packet = [&](const TraceRecord& record) {
      if (record.packet == 0) seen.push_back(record.kind);
    };
    EXPECT_GT(RunAndCheck(scenario, watch).ended_at, Instant{} + milliseconds(150));
    EXPECT_EQ(seen, (std::vector{TraceKind::kPause, TraceKind::kResume}));
  }
}

}  // namespace
}  // namespace optireduce::sim
