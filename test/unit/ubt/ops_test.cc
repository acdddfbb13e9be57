// Ops from their admission to their retirement; ranks that leave; numbers near a wrap.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/random.h"
#include "test/unit/ubt/solo.h"

namespace optireduce::ubt {
namespace {

using std::chrono::seconds;

// ---- Admission ---------------------------------------------------------------------------------

TEST(Admission, OpsInFlightMaxHoldsBackTheNext) {
  GroupSettings settings = Settings(2);
  settings.ops_in_flight_max = 3;
  Solo solo(settings);
  const OpSpec spec = Exact(Count(2, 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);
  EXPECT_EQ(solo.group().called(), 3U);
  // The first ends: there is room for one.
  solo.OpenAll(1, spec);
  solo.DataAll(1);
  solo.ResultAll(1);
  EXPECT_EQ(solo.group().done(), 1U);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);
}

TEST(Admission, NobodyGetsFartherAheadThanOpsBehindMax) {
  GroupSettings settings = Settings(3);
  settings.ops_behind_max = 2;
  settings.ops_in_flight_max = 100;
  Solo solo(settings);
  const OpSpec spec = Exact(Count(3, 1));
  // An op ends here only with all; so let `done` follow and rank 2 claim to have called nothing.
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);
  solo.peer(1).report.called = 8;
  solo.peer(1).Report();
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);
  solo.OpenAll(1, spec);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);  // the own `done` is 0 still
  solo.DataAll(1);
  solo.ResultAll(1);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.group().called(), 3U);
}

TEST(Admission, ABoundedOpThatEndedWithoutARankDoesNotLetItFallBehind) {
  GroupSettings settings = Settings(3);
  settings.ops_behind_max = 2;
  Solo solo(settings);
  const OpSpec spec = Bounded(Count(3, 1));
  for (OpNumber op = 1; op <= 2; ++op) {
    EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
    solo.peer(1).Open(op, spec);
    solo.peer(1).Data(op, 0);
    solo.TurnAfter(milliseconds(15));
    for (const Rank r : {1U, 2U}) {
      solo.peer(r).Result(op, 0, 0b011);
      solo.peer(r).Sets(op, {{{0, 1}, 0b011}});
    }
    EXPECT_EQ(solo.group().done(), op);
  }
  // Rank 2 serves but has called nothing: 3 > 0 + 2.
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);
  solo.peer(2).Open(1, spec);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
}

TEST(Admission, OpsAreOpenedInOrder) {
  Solo solo(3);
  const OpSpec spec = Exact(Count(3, 1));
  EXPECT_EQ(solo.peer(1).Open(2, spec), Counter::kEarlyNoRoom);
  EXPECT_EQ(solo.peer(1).Open(1, spec), Counter::kAccepted);
  EXPECT_EQ(solo.peer(1).Open(2, spec), Counter::kAccepted);
  EXPECT_EQ(solo.peer(2).Open(2, spec), Counter::kAccepted);  // is open, from rank 1
  EXPECT_EQ(solo.actions().log, (std::vector<std::string>{"open 1", "open 2"}));
}

TEST(Admission, WithoutRoomForTheShardNowAndLater) {
  Solo solo(2);
  const OpSpec spec = Exact(Count(2, 1));
  solo.actions().shards_max = 1;
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);
  EXPECT_EQ(solo.group().called(), 1U);
  solo.OpenAll(1, spec);
  EXPECT_EQ(solo.peer(1).Open(2, spec), Counter::kEarlyNoRoom);
  EXPECT_EQ(solo.peer(1).Data(2, 0), Counter::kEarlyNoRoom);
  solo.DataAll(1);
  solo.ResultAll(1);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);  // rank 1 may need repairs still
  solo.DoneAll(1);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_GE(solo.node().count(Counter::kArenaFull), 2U);
  EXPECT_EQ(solo.peer(1).Open(2, spec), Counter::kAccepted);
  EXPECT_EQ(solo.peer(1).Data(2, 0), Counter::kAccepted);
}

TEST(Admission, APeerThatClaimsOpsFarAheadIsNotBelieved) {
  Solo solo(2);
  solo.peer(1).report.called = solo.peer(1).report.done = solo.peer(1).report.opened = 1'000'000;
  EXPECT_EQ(solo.peer(1).Report(), Counter::kAccepted);
  EXPECT_EQ(solo.group().link(1).done, 0U);
  EXPECT_EQ(solo.group().link(1).opened, 0U);
  EXPECT_LE(solo.group().link(1).called, 9U);
}

TEST(Admission, AnOlderReportNeverLowersWhatIsKnown) {
  Solo solo(2);
  solo.RunOp(Exact(Count(2, 1)));
  Forger& peer = solo.peer(1);
  peer.report.done = peer.report.called = peer.report.opened = 1;
  peer.report.credit = 70;
  peer.next_number += 10;
  peer.Report();
  EXPECT_EQ(solo.group().link(1).done, 1U);
  peer.next_number -= 5;  // overtaken on its way
  peer.report.done = peer.report.called = peer.report.opened = 0;
  peer.report.credit = 3;
  EXPECT_EQ(peer.Report(), Counter::kAccepted);
  EXPECT_EQ(solo.group().link(1).done, 1U);
  EXPECT_EQ(solo.group().link(1).called, 1U);
  EXPECT_EQ(solo.group().link(1).opened, 1U);
  EXPECT_EQ(solo.group().link(1).tx.credit(), 70U);
}

// ---- Retirement --------------------------------------------------------------------------------

TEST(Retirement, OnlyWhenAllAreDone) {
  Solo solo(3);
  const OpSpec spec = Exact(Count(3, 1));
  for (int i = 0; i < 3; ++i) solo.RunOp(spec);
  EXPECT_EQ(solo.actions().shards.size(), 3U);
  solo.peer(1).report.done = 3;
  solo.peer(1).Report();
  EXPECT_EQ(solo.actions().shards.size(), 3U);
  solo.peer(2).report.done = 2;
  solo.peer(2).Report();
  EXPECT_EQ(solo.actions().shards.size(), 1U);
  EXPECT_FALSE(solo.group().Settled());
  solo.peer(2).report.done = 3;
  solo.peer(2).Report();
  EXPECT_TRUE(solo.actions().shards.empty());
  EXPECT_TRUE(solo.group().Settled());
}

TEST(Retirement, ARetiredOpIsServedToNobody) {
  Solo solo(2);
  solo.RunOp(Exact(Count(2, 1)));
  solo.DoneAll(1);
  ASSERT_TRUE(solo.actions().shards.empty());
  solo.TurnAfter(milliseconds(50));
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kLate);
  EXPECT_EQ(solo.peer(1).Result(1, 0), Counter::kDuplicate);
  EXPECT_EQ(solo.peer(1).Open(1, Exact(Count(2, 1))), Counter::kDuplicate);
  EXPECT_EQ(solo.peer(1).Nack(1, Stage::kBroadcast, {{0, 1}}), Counter::kDuplicate);
  const std::vector<Packet> sent = solo.Turn();
  EXPECT_EQ(Of(MessageType::kReport, sent).size(), sent.size());
}

TEST(Retirement, UntilThenResultsAreServed) {
  Solo solo(2);
  solo.RunOp(Exact(Count(2, 1)));
  solo.net.now += milliseconds(50);
  EXPECT_EQ(solo.peer(1).Nack(1, Stage::kBroadcast, {{0, 1}}), Counter::kAccepted);
  const std::vector<Packet> results = Of(MessageType::kResult, solo.Turn());
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].repeat());
  EXPECT_EQ(ToElements(results[0].body), Sum(0b11, 1, kCellElements));
}

TEST(Settling, AsksThoseThatOweAReport) {
  Solo solo(3);
  solo.RunOp(Exact(Count(3, 1)));
  solo.peer(1).report.done = 1;
  solo.peer(1).Report();
  solo.TurnAfter(seconds(1));
  solo.group().AskToSettle(solo.net.now);
  const std::vector<Packet> sent = Of(MessageType::kReport, solo.Turn());
  ASSERT_EQ(To(2, sent).size(), 1U);
  EXPECT_EQ(To(2, sent)[0].header.flags, wire::kFlagAnswer);
  EXPECT_TRUE(To(1, sent).empty());
}

TEST(Settling, WhoIsAskedAnswers) {
  Solo solo(2);
  solo.RunOp(Exact(Count(2, 1)));
  for (int i = 0; i < 20; ++i) solo.TurnAfter(seconds(1));
  EXPECT_TRUE(solo.TurnAfter(seconds(1)).empty());
  solo.peer(1).Report(wire::kFlagAnswer);
  const std::vector<Packet> sent = Of(MessageType::kReport, solo.Turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(ReportIn(sent[0]).done, 1U);
  EXPECT_TRUE(solo.Turn().empty());
}

// ---- Ops of little -----------------------------------------------------------------------------

TEST(EmptyOp, EndsWhenAllHaveCalledIt) {
  Solo solo(3);
  EXPECT_EQ(solo.net.Call(0, Exact(0)), Admission::kAdmitted);
  solo.peer(1).Open(1, Exact(0));
  solo.Turn();
  EXPECT_TRUE(solo.node().ended.empty());
  solo.peer(2).Open(1, Exact(0));
  EXPECT_TRUE(solo.node().ended.contains(1));
}

TEST(EmptyOp, IsABarrierOfThree) {
  Net net(Settings(3));
  for (Rank r = 0; r < 3; ++r) {
    net.At(net.now + milliseconds(10) * r, [&net, r] { net.Call(r, Exact(0)); });
  }
  const Instant last_call = net.now + milliseconds(20);
  net.RunUntil(last_call + milliseconds(5));
  for (Rank r = 0; r < 3; ++r) {
    ASSERT_TRUE(net[r].ended.contains(1));
    EXPECT_GE(net[r].ended[1].at, last_call);
  }
}

TEST(EmptyOp, SurvivesLostOpens) {
  Net net(Settings(3));
  Stream random(3, 0, "opens");
  net.fate = [&random](const Packet& packet) {
    const bool lost = packet.type() == MessageType::kOpen && random.Chance(0.5);
    return lost ? Fate{} : Fate{microseconds(50)};
  };
  for (int i = 0; i < 20; ++i) {
    net.CallAll(Exact(0));
    EXPECT_TRUE(net.RunUntilEnded(net.now + milliseconds(500)));
  }
}

TEST(SmallOp, OfOneElementIsOneCellOfTheFirstRank) {
  Net net(Settings(4));
  net.CallAll(Exact(1));
  ASSERT_TRUE(net.RunUntilEnded(net.now + milliseconds(5)));
  for (Rank r = 0; r < 4; ++r) EXPECT_EQ(net[r].ended[1].tensor, Sum(0b1111, 1, 1));
}

TEST(SmallOp, OfEverySizeAroundTheCells) {
  for (std::uint32_t ranks = 2; ranks <= 5; ++ranks) {
    Net net(Settings(ranks));
    for (const std::uint64_t count : {1U, 2U, 7U, 8U, 9U, 15U, 16U, 17U, 31U, 47U, 64U, 65U, 127U,
                                      128U, 129U, 257U, 1009U}) {
      net.CallAll(Exact(count));
      ASSERT_TRUE(net.RunUntilEnded(net.now + milliseconds(50))) << count;
      const OpNumber op = net[0].group.called();
      for (Rank r = 0; r < ranks; ++r) {
        ASSERT_EQ(net[r].ended[op].tensor, Sum(SetOfAll(ranks), op, count)) << count;
      }
    }
  }
}

TEST(GroupOfOne, ReducesToItsOwn) {
  Net net(Settings(1));
  net.CallAll(Exact(100));
  net.Turn(0);
  ASSERT_TRUE(net[0].ended.contains(1));
  EXPECT_EQ(net[0].ended[1].tensor, Sum(1, 1, 100));
}

TEST(Numbers, PassTheir32BitsInMidJob) {
  for (const OpNumber before :
       {(OpNumber{1} << 32) - 4, (OpNumber{1} << 31) - 4, (OpNumber{5} << 32) - 2}) {
    GroupSettings settings = Settings(3);
    settings.ops_before = before;
    settings.first_number = (PacketNumber{1} << 32) - 20;
    Net net(settings);
    int packets = 0;
    net.fate = [&packets](const Packet&) {
      return ++packets % 11 == 0 ? Fate{} : Fate{microseconds(50 + packets % 7)};
    };
    for (int i = 0; i < 8; ++i) {
      net.CallAll(Exact(100));
      ASSERT_TRUE(net.RunUntilEnded(net.now + seconds(2))) << before + 1 + i;
      const OpNumber op = before + 1 + static_cast<OpNumber>(i);
      for (Rank r = 0; r < 3; ++r) ASSERT_EQ(net[r].ended[op].tensor, Sum(0b111, op, 100));
    }
    net.RunUntil(net.now + seconds(1));
    for (Rank r = 0; r < 3; ++r) EXPECT_LE(net[r].actions.shards.size(), 1U);
  }
}

TEST(Numbers, TheFirstOpMayBeAnyAndNumbersBelowAreOld) {
  GroupSettings settings = Settings(2);
  settings.ops_before = 1000;
  Solo solo(settings);
  const OpSpec spec = Exact(Count(2, 1));
  EXPECT_EQ(solo.peer(1).Open(1000, spec), Counter::kDuplicate);
  EXPECT_EQ(solo.peer(1).Data(1000, 0), Counter::kLate);
  EXPECT_EQ(solo.peer(1).Open(1001, spec), Counter::kAccepted);
}

// ---- The op timeout ----------------------------------------------------------------------------

TEST(Timeout, OfAnExactOpNamesTheSilentRankAtItsInstant) {
  Solo solo(4);
  const OpSpec spec = Exact(Count(4, 2));
  solo.net.Call(0, spec, milliseconds(500));
  const Instant end = solo.net.now + milliseconds(500);
  solo.OpenAll(1, spec);
  solo.peer(1).DataAll(1);
  solo.peer(3).DataAll(1);
  solo.peer(2).Data(1, 0);
  solo.net.now = end - Duration{1};
  solo.Turn();
  EXPECT_TRUE(solo.group().failure().ok());
  solo.net.now = end;
  solo.Turn();
  const Status& failure = solo.group().failure();
  EXPECT_EQ(failure.code(), Code::kTimeout);
  EXPECT_NE(failure.text().find("op 1"), std::string::npos) << failure.text();
  EXPECT_NE(failure.text().find("500 ms"), std::string::npos) << failure.text();
  EXPECT_NE(failure.text().find("rank 2: sent 1 of 2 contributions"), std::string::npos)
      << failure.text();
  EXPECT_EQ(solo.group().NextWake(), kNever);
}

TEST(Timeout, SaysWhoHasNotCalled) {
  Solo solo(3);
  solo.net.Call(0, Exact(Count(3, 1)), milliseconds(100));
  solo.peer(1).Open(1, Exact(Count(3, 1)));
  solo.TurnAfter(milliseconds(100));
  EXPECT_NE(solo.group().failure().text().find("rank 2: has not called it"), std::string::npos)
      << solo.group().failure().text();
  EXPECT_EQ(solo.group().failure().text().find("rank 2: sent"), std::string::npos);
}

TEST(Timeout, LeavesNoTimerBehind) {
  Solo solo(2);
  const OpSpec spec = Exact(Count(2, 1));
  solo.net.Call(0, spec, seconds(5));
  solo.net.Call(0, spec, milliseconds(100));  // fails first; the other's timer is dropped
  solo.TurnAfter(milliseconds(100));
  EXPECT_FALSE(solo.group().failure().ok());
  EXPECT_EQ(solo.group().NextWake(), kNever);
}

// ---- Ranks that leave --------------------------------------------------------------------------

TEST(PeerLeft, InTheMiddleOfAnOpFailsIt) {
  Solo solo(3);
  const OpSpec spec = Exact(Count(3, 1));
  solo.net.Call(0, spec);
  solo.peer(1).Open(1, spec);
  solo.group().OnPeerLeft(2, solo.net.now);
  EXPECT_EQ(solo.group().failure().code(), Code::kPeerLost);
  EXPECT_NE(solo.group().failure().text().find("rank 2"), std::string::npos);
}

TEST(PeerLeft, AfterItsPartLetsTheOpEnd) {
  Solo solo(3);
  const OpSpec spec = Exact(Count(3, 1));
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  solo.DataAll(1);
  solo.ResultAll(1);
  solo.peer(1).report.done = 1;
  solo.peer(1).Report();
  EXPECT_FALSE(solo.group().Settled());
  solo.group().OnPeerLeft(2, solo.net.now);
  EXPECT_TRUE(solo.group().failure().ok());
  EXPECT_TRUE(solo.group().Settled());
  EXPECT_TRUE(solo.actions().shards.empty());
  EXPECT_TRUE(To(2, solo.TurnAfter(seconds(1))).empty());
}

TEST(PeerLeft, TheNextCallNamesIt) {
  Solo solo(3);
  solo.RunOp(Exact(Count(3, 1)));
  solo.group().OnPeerLeft(1, solo.net.now);
  EXPECT_TRUE(solo.group().failure().ok());
  EXPECT_EQ(solo.net.Call(0, Exact(8)), Admission::kAdmitted);
  EXPECT_EQ(solo.group().failure().code(), Code::kPeerLost);
  EXPECT_NE(solo.group().failure().text().find("rank 1"), std::string::npos);
}

}  // namespace
}  // namespace optireduce::ubt
