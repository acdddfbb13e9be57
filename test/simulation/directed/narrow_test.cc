// Paths that carry less from some instant on: found, gone on with, and made up for by a changeover.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/simulation/directed/scenes.h"

namespace optireduce::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Calls of 100,000 elements, and a path that swallows packets over 1,372 bytes from the middle of
// the first one on.
Scenario Narrowed(Mode mode, std::uint64_t calls) {
  Scenario scenario = Scene(4, mode, 100'000, calls);
  scenario.narrows = {{{1, 2}, Instant{} + microseconds(60), 1'372}};
  return scenario;
}

TEST(Narrow, AnExactOpThatIsOpenEndsWell) {
  const Evidence evidence = RunAndCheck(Narrowed(Mode::kExact, 1));
  EXPECT_GT(DropsOf(evidence, DropReason::kTooLarge), 0u);
  EXPECT_EQ(evidence.by_rank[1].count(Counter::kPathsNarrowed), 1u);
  EXPECT_EQ(Total(evidence, Counter::kPathsNarrowed), 1u);
  EXPECT_EQ(Total(evidence, Counter::kOpsAgreed), 4u);
}

// The same without the watch: this is what it is for.
TEST(Narrow, WithoutTheWatchAnExactOpNeverEnds) {
  Scenario scenario = Narrowed(Mode::kExact, 1);
  scenario.job.watch_paths = false;
  scenario.calls[0].spec.timeout = seconds(5);
  const Evidence evidence = RunScenario(scenario);
  EXPECT_EQ(Total(evidence, Counter::kOpsAgreed), 0u);
  const CallEvidence& call = evidence.calls[0].by_rank[2];
  ASSERT_EQ(call.report.outcome, Report::Outcome::kFailed);
  EXPECT_NE(call.report.status.text().find("rank 1: sent"), std::string::npos)
      << call.report.status.text();
}

TEST(Narrow, OpsAfterTheChangeoverFitThePath) {
  Scenario scenario = Narrowed(Mode::kExact, 12);
  std::uint64_t lost_before = 0;
  const Watch watch = LookEvery(milliseconds(1), [&](Job& job) {
    if (job.engine(0).counters().Get(Counter::kChangeovers) == 0 && lost_before == 0) return;
    if (lost_before == 0) lost_before = job.network().totals().dropped_for(DropReason::kTooLarge);
  });
  const Evidence evidence = RunAndCheck(scenario, watch);
  EXPECT_EQ(Total(evidence, Counter::kChangeovers), 4u);
  EXPECT_GT(lost_before, 0u);
  EXPECT_EQ(DropsOf(evidence, DropReason::kTooLarge), lost_before);
  EXPECT_EQ(Total(evidence, Counter::kOpsAgreed), 48u);
}

TEST(Narrow, BoundedOpsLoseLittleAndThenNothing) {
  const std::uint64_t calls = 40;
  const Evidence evidence = RunAndCheck(Narrowed(Mode::kBounded, calls));
  EXPECT_EQ(Total(evidence, Counter::kChangeovers), 4u);
  for (std::uint64_t call = calls / 2; call < calls; ++call) {
    for (const CallEvidence& one : evidence.calls[call].by_rank) {
      EXPECT_EQ(one.report.lost_entries, 0u) << call;
      EXPECT_EQ(one.report.outcome, Report::Outcome::kAgreed) << call;
    }
  }
}

// As where a tunnel comes into the way of a whole host, and then into another one's.
TEST(Narrow, EveryPathOfARankAndThenMore) {
  Scenario scenario = Scene(5, Mode::kExact, 150'000, 30);
  for (Rank peer = 0; peer < 5; ++peer) {
    if (peer != 3) scenario.narrows.push_back({{3, peer}, Instant{} + microseconds(50), 1'372});
    if (peer != 0) scenario.narrows.push_back({{peer, 0}, Instant{} + milliseconds(40), 1'000});
  }
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_GE(Total(evidence, Counter::kPathsNarrowed), 5u);
  EXPECT_GE(evidence.by_rank[0].count(Counter::kChangeovers), 1u);
}

TEST(Narrow, LossNarrowsNothing) {
  for (const Mode mode : {Mode::kExact, Mode::kBounded}) {
    Scenario scenario = Scene(4, mode, 60'000, 10);
    AddHeavyFaults(&scenario);
    const Evidence evidence = RunAndCheck(scenario);
    EXPECT_EQ(Total(evidence, Counter::kPathsNarrowed), 0u);
    EXPECT_EQ(Total(evidence, Counter::kChangeovers), 0u);
  }
}

// A rank that is stopped gives no answer: calls go on with cells of the old size, in pieces, and
// the changeover comes when it is back.
TEST(Narrow, ARankThatIsStoppedHoldsUpAChangeoverOnce) {
  Scenario scenario = Narrowed(Mode::kExact, 3);
  scenario.pauses = {{3, Instant{} + milliseconds(5), Instant{} + milliseconds(1'900)}};
  for (Rank rank = 0; rank < 4; ++rank) scenario.late_calls.push_back({rank, 2, seconds(5)});
  std::uint64_t at_two_seconds = 0;
  const Watch watch = LookEvery(milliseconds(10), [&](Job& job) {
    if (job.world().now() > Instant{} + milliseconds(2'500)) return;
    at_two_seconds = job.engine(0).counters().Get(Counter::kOpsAgreed);
    EXPECT_EQ(job.engine(0).counters().Get(Counter::kChangeovers), 0u);
  });
  const Evidence evidence = RunAndCheck(scenario, watch);
  EXPECT_EQ(at_two_seconds, 2u);
  EXPECT_EQ(Total(evidence, Counter::kChangeovers), 4u);
  EXPECT_EQ(Total(evidence, Counter::kOpsAgreed), 12u);
}

// Jumbo frames that become usual ones.
TEST(Narrow, JumboPacketsComeInPieces) {
  Scenario scenario = Scene(3, Mode::kExact, 400'000, 8);
  scenario.job.network.packet_bytes_max = 8'972;
  scenario.narrows = {{{0, 1}, Instant{} + microseconds(100), 1'472}};
  const Evidence evidence = RunAndCheck(scenario);
  EXPECT_EQ(Total(evidence, Counter::kPathsNarrowed), 1u);
  EXPECT_EQ(Total(evidence, Counter::kOpsAgreed), 24u);
}

// Too little for pieces: the group fails on every rank, and says why.
TEST(Narrow, APathThatIsTooNarrowIsNamed) {
  Scenario scenario = Scene(3, Mode::kExact, 400'000);
  scenario.job.network.packet_bytes_max = 8'972;
  scenario.narrows = {{{0, 1}, Instant{} + microseconds(100), 500}};
  const Evidence evidence = RunScenario(scenario);
  for (const CallEvidence& call : evidence.calls[0].by_rank) {
    ASSERT_EQ(call.report.outcome, Report::Outcome::kFailed);
    EXPECT_NE(call.report.status.text().find("the path MTU to rank 1 has shrunk"),
              std::string::npos)
        << call.report.status.text();
  }
}

}  // namespace
}  // namespace optireduce::sim
