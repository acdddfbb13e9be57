// Bounded mode: the clock of an op, cells closed at the scatter deadline, sets, grace, late
// callers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "test/unit/ubt/solo.h"

namespace optireduce::ubt {
namespace {

using std::chrono::seconds;

// Bound 20 ms, of which the scatter deadline is 15 ms; grace 10 ms.
constexpr Duration kScatter = milliseconds(15);
constexpr Duration kBound = milliseconds(20);
constexpr Duration kGrace = milliseconds(10);
constexpr Duration kTick{1};

struct BoundedOf3 : ::testing::Test {
  BoundedOf3() : solo(3), spec(Bounded(Count(3, 2))), start(solo.net.now) {}
  // Calls at `start`; ranks 1 and 2 at the same instant.
  void Begin() {
    solo.net.Call(0, spec);
    solo.OpenAll(1, spec);
    solo.Turn();
  }
  std::vector<Packet> TurnAt(Instant at) {
    solo.net.now = at;
    return solo.Turn();
  }
  bool AnyClosed(OpNumber op = 1) {
    return solo.actions().Closed(op, 0) || solo.actions().Closed(op, 1);
  }
  Solo solo;
  OpSpec spec;
  Instant start;
};

// ---- Closing -----------------------------------------------------------------------------------

TEST_F(BoundedOf3, IncompleteCellsCloseExactlyAtTheScatterDeadline) {
  Begin();
  solo.peer(1).DataAll(1);
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kAccepted);
  EXPECT_TRUE(solo.actions().Closed(1, 0));  // complete: at once
  TurnAt(start + kScatter - kTick);
  EXPECT_FALSE(solo.actions().Closed(1, 1));
  EXPECT_LE(solo.group().NextWake(), start + kScatter);
  TurnAt(start + kScatter);
  EXPECT_TRUE(solo.actions().Closed(1, 1));
  EXPECT_EQ(solo.actions().AddedTo(1, 1), (std::vector<Rank>{0, 1}));
}

TEST_F(BoundedOf3, AnExactOpNeverClosesEarly) {
  spec = Exact(Count(3, 2));
  Begin();
  solo.peer(1).DataAll(1);
  for (int i = 1; i < 50; ++i) TurnAt(start + milliseconds(100) * i);
  EXPECT_FALSE(AnyClosed());
}

TEST_F(BoundedOf3, TheSetGoesOutWithTheResult) {
  Begin();
  solo.peer(1).DataAll(1);
  solo.peer(2).Data(1, 0);
  const std::vector<Packet> sent = TurnAt(start + kScatter);
  for (const Rank peer : {1U, 2U}) {
    const std::vector<Packet> sets = To(peer, Of(MessageType::kSets, sent));
    ASSERT_EQ(sets.size(), 1U);
    EXPECT_EQ(sets[0].header.shard, 0U);
    wire::SetsView view;
    ASSERT_EQ(wire::ParseSets(sets[0].body, 3, &view), wire::ParseResult::kOk);
    ASSERT_EQ(view.run_count, 1U);
    EXPECT_EQ(view.range(0), (wire::CellRange{1, 1}));
    EXPECT_EQ(view.set(0)[0], std::byte{0b011});
  }
  int flagged = 0;
  for (const Packet& result : Of(MessageType::kResult, sent)) {
    const bool complete = (result.header.flags & wire::kFlagComplete) != 0;
    EXPECT_EQ(complete, result.header.cell == 0);
    ++flagged;
  }
  EXPECT_EQ(flagged, 2 * 2);
}

TEST_F(BoundedOf3, TheSetIsKnownBeforeAnIncompleteResultIsPlaced) {
  Begin();
  EXPECT_EQ(solo.peer(1).Result(1, 0, 0b010), Counter::kWaited);
  EXPECT_EQ(solo.peer(1).Result(1, 0, 0b010), Counter::kDuplicate);
  EXPECT_TRUE(solo.actions().placed.empty());
  EXPECT_EQ(solo.peer(1).Sets(1, {{{0, 1}, 0b010}}), Counter::kAccepted);
  EXPECT_EQ(solo.actions().placed[1].count({1, 0}), 1U);
  // The other way round: placed at once.
  EXPECT_EQ(solo.peer(2).Sets(1, {{{0, 2}, 0b100}}), Counter::kAccepted);
  EXPECT_EQ(solo.peer(2).Result(1, 1, 0b100), Counter::kAccepted);
  EXPECT_EQ(solo.actions().placed[1].count({2, 1}), 1U);
}

TEST_F(BoundedOf3, TheLedgerCountsEveryEntryOnce) {
  Begin();
  solo.peer(1).DataAll(1);
  TurnAt(start + kScatter);  // own shard: rank 2 is left out of both cells
  solo.peer(1).Sets(1, {{{0, 1}, 0b010}});  // ranks 0 and 2 are left out
  solo.peer(1).Sets(1, {{{0, 1}, 0b010}});
  solo.peer(1).Result(1, 0, 0b010);
  solo.peer(1).Result(1, 1);
  solo.peer(2).Result(1, 0);
  solo.peer(2).Result(1, 1);
  ASSERT_TRUE(solo.node().ended.contains(1));
  const OpEnd& end = solo.node().ended[1].end;
  EXPECT_EQ(end.outcome, OpEnd::Outcome::kAgreed);
  EXPECT_EQ(end.ledger.lost_entries, (2 + 2) * std::uint64_t{kCellElements});
  EXPECT_EQ(end.ledger.own_left_out_entries, kCellElements);
  EXPECT_EQ(end.ledger.late_entries, 0U);
  EXPECT_EQ(end.deadline, start + kBound);
  EXPECT_EQ(end.ended_at, start + kScatter);
}

// ---- Late fetch and divergence -----------------------------------------------------------------

TEST_F(BoundedOf3, FetchesWithinTheGraceAndDivergesExactlyAtItsEnd) {
  Begin();
  solo.DataAll(1);
  solo.peer(1).Result(1, 0);
  solo.peer(1).Result(1, 1);
  solo.peer(2).Result(1, 0);
  std::size_t asked = 0;
  for (Instant at = start + milliseconds(1); at < start + kBound + kGrace; at += milliseconds(1)) {
    asked += To(2, Of(MessageType::kNack, TurnAt(at))).size();
  }
  EXPECT_GE(asked, 1U);
  TurnAt(start + kBound + kGrace - kTick);
  EXPECT_TRUE(solo.node().ended.empty());
  EXPECT_LE(solo.group().NextWake(), start + kBound + kGrace);
  std::vector<Packet> sent = TurnAt(start + kBound + kGrace);
  ASSERT_TRUE(solo.node().ended.contains(1));
  EXPECT_EQ(solo.node().ended[1].end.outcome, OpEnd::Outcome::kDivergent);
  EXPECT_EQ(solo.actions().zeroed, (std::vector<std::pair<Rank, CellIndex>>{{2, 1}}));
  EXPECT_EQ(solo.node().ended[1].end.ended_at - solo.node().ended[1].end.deadline, kGrace);
  // Reports tell the others.
  for (const Packet& packet : solo.TurnAfter(milliseconds(2))) sent.push_back(packet);
  const std::vector<Packet> reports = To(1, Of(MessageType::kReport, sent));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(ReportIn(reports[0]).divergent, 1U);
  // What comes now is late and changes nothing.
  EXPECT_EQ(solo.peer(2).Result(1, 1), Counter::kLate);
}

TEST_F(BoundedOf3, AResultWithinTheGraceIsInTime) {
  Begin();
  solo.DataAll(1);
  solo.ResultAll(1);  // all; so begin a second op that lacks one
  solo.net.Call(0, spec);
  solo.OpenAll(2, spec);
  solo.DataAll(2);
  for (CellIndex cell = 0; cell < 2; ++cell) solo.peer(1).Result(2, cell);
  solo.peer(2).Result(2, 0);
  TurnAt(start + kBound + kGrace - kTick);
  EXPECT_EQ(solo.peer(2).Result(2, 1), Counter::kAccepted);
  ASSERT_TRUE(solo.node().ended.contains(2));
  const OpEnd& end = solo.node().ended[2].end;
  EXPECT_EQ(end.outcome, OpEnd::Outcome::kAgreed);
  EXPECT_EQ(end.ended_at - end.deadline, kGrace - kTick);
}

TEST_F(BoundedOf3, HeldByItsOwnerExtendsTheGrace) {
  Begin();
  solo.DataAll(1);
  for (CellIndex cell = 0; cell < 2; ++cell) solo.peer(1).Result(1, cell);
  TurnAt(start + milliseconds(12));
  TurnAt(start + kBound + milliseconds(5));
  solo.peer(2).NotYet(1, Stage::kBroadcast, wire::NotYet::Reason::kHeld);
  TurnAt(start + kBound + kGrace);
  EXPECT_TRUE(solo.node().ended.empty());
  TurnAt(start + kBound + milliseconds(5) + kGrace - kTick);
  EXPECT_TRUE(solo.node().ended.empty());
  TurnAt(start + kBound + milliseconds(5) + kGrace);
  EXPECT_TRUE(solo.node().ended.contains(1));
}

TEST_F(BoundedOf3, NotCalledDoesNotExtendTheGrace) {
  Begin();
  solo.DataAll(1);
  TurnAt(start + milliseconds(12));
  TurnAt(start + kBound + milliseconds(5));
  solo.peer(2).NotYet(1, Stage::kBroadcast, wire::NotYet::Reason::kNotCalled);
  TurnAt(start + kBound + kGrace);
  EXPECT_TRUE(solo.node().ended.contains(1));
}

// ---- The clock ---------------------------------------------------------------------------------

TEST(Anchor, IsTheMedianOfTheStartsKnown) {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 5U, 6U}) {
    Solo solo(ranks);
    const OpSpec spec = Bounded(Count(ranks, 1));
    const Instant base = solo.net.now;
    // Rank r started r ms after rank 0; the last one's OPEN comes first.
    solo.net.Call(0, spec);
    solo.net.now = base + milliseconds(ranks);
    for (Rank r = ranks - 1; r >= 1; --r) {
      EXPECT_EQ(solo.peer(r).Open(1, spec, milliseconds(ranks - r)), Counter::kAccepted);
    }
    const Instant anchor = base + milliseconds((ranks + 1) / 2 - 1);
    solo.net.now = anchor + kScatter - kTick;
    solo.Turn();
    EXPECT_FALSE(solo.actions().Closed(1, 0)) << ranks;
    solo.net.now = anchor + kScatter;
    solo.Turn();
    EXPECT_TRUE(solo.actions().Closed(1, 0)) << ranks;
  }
}

TEST(Anchor, BeforeHalfHaveStartedOnlyTheOpTimeoutRuns) {
  Solo solo(4);
  solo.net.Call(0, Bounded(Count(4, 1)), seconds(3));
  for (int i = 0; i < 29; ++i) solo.TurnAfter(milliseconds(100));
  EXPECT_FALSE(solo.actions().Closed(1, 0));
  EXPECT_TRUE(solo.group().failure().ok());
  solo.TurnAfter(milliseconds(100));
  EXPECT_EQ(solo.group().failure().code(), Code::kTimeout);
}

TEST(Anchor, AnAgeBeforeTheEpochIsCutOff) {
  Solo solo(3);
  EXPECT_EQ(solo.peer(1).Open(1, Bounded(Count(3, 1)), Duration::max()), Counter::kAccepted);
  EXPECT_EQ(solo.peer(2).Open(1, Bounded(Count(3, 1)), seconds(1'000'000)), Counter::kAccepted);
  solo.Turn();
  EXPECT_TRUE(solo.actions().Closed(1, 0));  // long over
}

TEST_F(BoundedOf3, TheBoundRunsFromTheEndOfTheOpBefore) {
  Begin();
  solo.net.Call(0, spec);
  solo.OpenAll(2, spec);
  // Op 1 closes at 10 ms, so op 2 has until 10 + 15 ms.
  TurnAt(start + milliseconds(10));
  solo.DataAll(1);
  ASSERT_TRUE(AnyClosed(1));
  TurnAt(start + milliseconds(25) - kTick);
  EXPECT_FALSE(AnyClosed(2));
  TurnAt(start + milliseconds(25));
  EXPECT_TRUE(AnyClosed(2));
}

TEST_F(BoundedOf3, TheBoundRunsFromThereAlsoWhenTheOpBeforeIsRetired) {
  Begin();
  solo.net.Call(0, spec);
  solo.OpenAll(2, spec);
  TurnAt(start + milliseconds(10));
  solo.DataAll(1);
  solo.ResultAll(1);
  for (Rank r = 1; r < 3; ++r) {
    solo.peer(r).report.done = 1;
    solo.peer(r).Report();
  }
  ASSERT_FALSE(solo.actions().shards.contains(1));
  TurnAt(start + milliseconds(25) - kTick);
  EXPECT_FALSE(AnyClosed(2));
  TurnAt(start + milliseconds(25));
  EXPECT_TRUE(AnyClosed(2));
}

TEST_F(BoundedOf3, AnExpiredOpBeforeGivesTheNextAWholeBound) {
  Begin();
  solo.net.Call(0, spec);
  solo.OpenAll(2, spec);
  TurnAt(start + kScatter);
  ASSERT_TRUE(AnyClosed(1));
  TurnAt(start + 2 * kScatter - kTick);
  EXPECT_FALSE(AnyClosed(2));
  TurnAt(start + 2 * kScatter);
  EXPECT_TRUE(AnyClosed(2));
}

TEST_F(BoundedOf3, ALongPauseReadsInputBeforeItJudges) {
  Begin();
  solo.net.now = start + milliseconds(300);  // the process was stopped
  solo.net.Turn(0, /*idle=*/false);
  EXPECT_FALSE(AnyClosed());
  EXPECT_EQ(solo.group().NextWake(), solo.net.now);  // soon again
  solo.DataAll(1);
  solo.ResultAll(1);
  solo.Turn();
  ASSERT_TRUE(solo.node().ended.contains(1));
  EXPECT_EQ(solo.node().ended[1].end.ledger.lost_entries, 0U);
}

TEST_F(BoundedOf3, AfterAPauseTheGraceRunsFromTheWake) {
  Begin();
  solo.DataAll(1);
  const Instant wake = start + milliseconds(300);
  TurnAt(wake);
  EXPECT_TRUE(solo.node().ended.empty());
  for (Instant at = wake; at < wake + kGrace; at += milliseconds(1)) TurnAt(at);
  EXPECT_TRUE(solo.node().ended.empty());
  TurnAt(wake + kGrace);
  EXPECT_TRUE(solo.node().ended.contains(1));
}

// ---- Late callers ------------------------------------------------------------------------------

TEST_F(BoundedOf3, ALateCallerGetsTheResultsAndIsLeftOut) {
  // Ranks 1 and 2 call; this engine serves its shard without its own contribution.
  solo.OpenAll(1, spec);
  solo.DataAll(1);
  solo.Turn();
  EXPECT_FALSE(AnyClosed());
  const std::vector<Packet> sent = TurnAt(start + kScatter);
  EXPECT_TRUE(AnyClosed());
  EXPECT_EQ(Of(MessageType::kResult, sent).size(), 4U);
  EXPECT_TRUE(Of(MessageType::kData, sent).empty());
  for (const Rank r : {1U, 2U}) {
    for (CellIndex cell = 0; cell < 2; ++cell) {
      EXPECT_EQ(solo.peer(r).Result(1, cell, 0b110), Counter::kWaited);
    }
    solo.peer(r).Sets(1, {{{0, 2}, 0b110}});
  }
  EXPECT_TRUE(solo.actions().placed.empty());
  // 200 ms later its caller comes, and has it at once.
  solo.net.now = start + milliseconds(200);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  const std::vector<Packet> after = solo.Turn();
  EXPECT_TRUE(Of(MessageType::kData, after).empty());
  ASSERT_TRUE(solo.node().ended.contains(1));
  const Ended& ended = solo.node().ended[1];
  EXPECT_EQ(ended.end.outcome, OpEnd::Outcome::kAgreed);
  EXPECT_EQ(ended.tensor, Sum(0b110, 1, spec.count));
  EXPECT_EQ(ended.end.ledger.own_left_out_entries, spec.count);
  EXPECT_EQ(ended.end.ledger.lost_entries, spec.count);
  EXPECT_TRUE(solo.actions().staged.empty());
}

TEST_F(BoundedOf3, ALateCallerWithoutRoomFetchesWithinItsOwnGrace) {
  solo.actions().staged_max = 4;  // of rank 1 and 2 each: one contribution of a cell waits
  solo.OpenAll(1, spec);
  solo.DataAll(1);
  TurnAt(start + kScatter);
  solo.actions().staged_max = 0;
  EXPECT_EQ(solo.peer(1).Result(1, 0, 0b110), Counter::kEarlyNoRoom);
  const Instant call = start + milliseconds(200);
  solo.net.now = call;
  solo.net.Call(0, spec);
  std::vector<Packet> nacks;
  for (Instant at = call; at < call + kGrace; at += milliseconds(1)) {
    const std::vector<Packet> more = Of(MessageType::kNack, TurnAt(at));
    nacks.insert(nacks.end(), more.begin(), more.end());
  }
  EXPECT_FALSE(To(1, nacks).empty());
  EXPECT_TRUE(solo.node().ended.empty());
  TurnAt(call + kGrace);
  EXPECT_TRUE(solo.node().ended.contains(1));
}

// ---- The late rule -----------------------------------------------------------------------------

struct LateRule : BoundedOf3 {
  // Op 1 closes at its deadline without rank 2, which has not called it.
  LateRule() {
    solo.net.Call(0, spec);
    solo.peer(1).Open(1, spec);
    solo.peer(1).DataAll(1);
    TurnAt(start + kScatter);
    EXPECT_TRUE(AnyClosed(1));
  }
  void CallNext(OpNumber op) {
    solo.net.Call(0, spec);
    solo.peer(1).Open(op, spec);
    solo.Turn();
  }
};

TEST_F(LateRule, CellsCloseWithoutTheLateRank) {
  CallNext(2);
  EXPECT_FALSE(AnyClosed(2));
  solo.peer(1).DataAll(2);
  EXPECT_TRUE(solo.actions().Closed(2, 0));
  EXPECT_TRUE(solo.actions().Closed(2, 1));
  EXPECT_EQ(solo.actions().AddedTo(2, 0), (std::vector<Rank>{0, 1}));
}

TEST_F(LateRule, ADelayedContributionOfTheLateRankIsStillTaken) {
  CallNext(2);
  solo.peer(1).Data(2, 0);
  solo.peer(2).Open(2, spec);  // cell 0 is closed: the rule still holds for the rest
  EXPECT_EQ(solo.peer(2).Data(2, 1), Counter::kAccepted);
  EXPECT_EQ(solo.peer(1).Data(2, 1), Counter::kAccepted);
  EXPECT_EQ(solo.actions().AddedTo(2, 1), (std::vector<Rank>{0, 2, 1}));
}

TEST_F(LateRule, EndsWhenTheRankCallsAnOpOfWhichNothingIsClosed) {
  CallNext(2);
  solo.peer(2).Open(2, spec);
  solo.peer(1).DataAll(2);
  EXPECT_FALSE(AnyClosed(2));  // waited for again
  solo.peer(2).DataAll(2);
  EXPECT_TRUE(AnyClosed(2));
  CallNext(3);
  solo.peer(1).DataAll(3);
  EXPECT_FALSE(AnyClosed(3));
}

TEST_F(LateRule, EndsForAllOpsThatAreOpenAlready) {
  CallNext(2);
  CallNext(3);
  solo.peer(2).Open(2, spec);
  solo.peer(2).Open(3, spec);  // in time for both
  solo.peer(1).DataAll(2);
  EXPECT_FALSE(AnyClosed(2));
  solo.peer(1).DataAll(3);
  EXPECT_FALSE(AnyClosed(3));
}

TEST_F(LateRule, HoldsForExactOpsNever) {
  spec = Exact(Count(3, 2));
  CallNext(2);
  solo.peer(1).DataAll(2);
  EXPECT_FALSE(AnyClosed(2));
  solo.peer(2).Open(2, spec);
  solo.peer(2).DataAll(2);
  EXPECT_TRUE(AnyClosed(2));
}

TEST_F(LateRule, LossAloneIsNotLateness) {
  // Rank 2 has called op 2 in time, and only its contributions are lost.
  CallNext(2);
  solo.peer(2).Open(2, spec);
  solo.peer(1).DataAll(2);
  TurnAt(solo.net.now + seconds(1));
  ASSERT_TRUE(AnyClosed(2));
  CallNext(3);
  solo.peer(1).DataAll(3);
  EXPECT_FALSE(AnyClosed(3));
}

}  // namespace
}  // namespace optireduce::ubt
