// What goes out when: repairs, OPENs again, reports, credit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "test/unit/ubt/solo.h"

namespace optireduce::ubt {
namespace {

using std::chrono::seconds;

// Before any round trip is measured.
constexpr Duration kRepairTime = milliseconds(10);

std::vector<CellIndex> Cells(const std::vector<Packet>& packets) {
  std::vector<CellIndex> cells;
  for (const Packet& packet : packets) cells.push_back(packet.header.cell);
  return cells;
}

// Two ranks, an op of 6 cells a shard that both have called; rank 0 has sent all it has.
struct PairOf6 : ::testing::Test {
  explicit PairOf6(const OpSpec& s = Exact(Count(2, 6))) : solo(2), peer(solo.peer(1)), spec(s) {
    solo.net.Call(0, spec);
    peer.Open(1, spec);
    first = solo.net.Turn(0);  // the peer has not seen it yet
  }
  std::vector<Packet> DataNow() { return Of(MessageType::kData, solo.net.Sends(0)); }
  PacketNumber NumberOf(MessageType type, CellIndex cell) {
    for (const Packet& packet : first) {
      if (packet.type() == type && packet.header.cell == cell) return packet.number;
    }
    ADD_FAILURE() << "not sent";
    return 0;
  }
  Solo solo;
  Forger& peer;
  OpSpec spec;
  std::vector<Packet> first;
};

// ---- What a NACK makes go out ------------------------------------------------------------------

TEST_F(PairOf6, OnlyWhatWentOutBelowTheEchoIsRepeated) {
  peer.SeeUpTo(NumberOf(MessageType::kData, 2));
  peer.Nack(1, Stage::kScatter, {{0, 6}});
  const std::vector<Packet> again = DataNow();
  EXPECT_EQ(Cells(again), (std::vector<CellIndex>{0, 1, 2}));
  for (const Packet& packet : again) {
    EXPECT_TRUE(packet.repeat());
    EXPECT_GT(packet.number, first.back().number);
  }
}

TEST_F(PairOf6, ARepeatIsNotRepeatedUntilItsOwnNumberIsPassed) {
  peer.SeeUpTo(NumberOf(MessageType::kData, 5));
  peer.Nack(1, Stage::kScatter, {{4, 1}});
  const std::vector<Packet> again = DataNow();
  ASSERT_EQ(again.size(), 1U);
  for (int i = 0; i < 5; ++i) {
    peer.Nack(1, Stage::kScatter, {{4, 1}});
    EXPECT_TRUE(DataNow().empty());
  }
  peer.SeeUpTo(again[0].number);  // seen past it, and it is lacking still
  peer.Nack(1, Stage::kScatter, {{4, 1}});
  EXPECT_EQ(DataNow().size(), 1U);
}

TEST_F(PairOf6, WhatIsOlderThanTheRepairTimeIsRepeatedForTheTail) {
  peer.SeeUpTo(NumberOf(MessageType::kData, 0));
  solo.net.now += kRepairTime - Duration{1};
  peer.Nack(1, Stage::kScatter, {{3, 3}});
  EXPECT_TRUE(DataNow().empty());
  solo.net.now += Duration{1};
  peer.Nack(1, Stage::kScatter, {{3, 3}});
  EXPECT_EQ(Cells(DataNow()), (std::vector<CellIndex>{3, 4, 5}));
  peer.Nack(1, Stage::kScatter, {{3, 3}});
  EXPECT_TRUE(DataNow().empty());
}

TEST_F(PairOf6, AQuestionThatLayUnreadMakesNothingOlder) {
  peer.SeeUpTo(NumberOf(MessageType::kData, 0));
  solo.net.now += milliseconds(1);
  // Asked now, read by this rank's process much later: the tail was 1 ms old then.
  peer.Nack(1, Stage::kScatter, {{3, 3}}, false, seconds(1));
  EXPECT_TRUE(DataNow().empty());
}

TEST_F(PairOf6, DataOfACellWhoseResultIsPlacedIsNeverSentAgain) {
  EXPECT_EQ(peer.Result(1, 2), Counter::kAccepted);  // has overwritten the contribution
  solo.net.now += seconds(1);
  peer.Nack(1, Stage::kScatter, {{0, 6}});
  EXPECT_EQ(Cells(DataNow()), (std::vector<CellIndex>{0, 1, 3, 4, 5}));
}

TEST_F(PairOf6, DataWhoseResultCameAfterTheNackIsNotSentEither) {
  solo.net.now += seconds(1);
  peer.Nack(1, Stage::kScatter, {{0, 6}});
  for (CellIndex cell = 0; cell < 5; ++cell) peer.Result(1, cell);
  EXPECT_EQ(Cells(DataNow()), (std::vector<CellIndex>{5}));
}

TEST_F(PairOf6, ResultsAreRepeatedBySameRule) {
  peer.DataAll(1);
  first = solo.net.Turn(0);
  ASSERT_EQ(Of(MessageType::kResult, first).size(), 6U);
  peer.SeeUpTo(NumberOf(MessageType::kResult, 1));
  peer.Nack(1, Stage::kBroadcast, {{0, 1}, {1, 4}});
  EXPECT_EQ(Cells(Of(MessageType::kResult, solo.net.Sends(0))), (std::vector<CellIndex>{0, 1}));
}

TEST_F(PairOf6, AskingForWhatIsHeldOpenGetsNotYet) {
  peer.Data(1, 0);
  solo.net.Turn(0);
  peer.Nack(1, Stage::kBroadcast, {{3, 2}});
  const std::vector<Packet> sent = Of(MessageType::kNotYet, solo.net.Sends(0));
  ASSERT_EQ(sent.size(), 1U);
  wire::NotYet not_yet;
  ASSERT_EQ(wire::ParseNotYet(sent[0].body, &not_yet), wire::ParseResult::kOk);
  EXPECT_EQ(not_yet.reason, wire::NotYet::Reason::kHeld);
  EXPECT_EQ(not_yet.stage, Stage::kBroadcast);
  EXPECT_EQ(sent[0].header.shard, 0U);
}

TEST_F(PairOf6, AskingForWhatIsNotCalledGetsNotYet) {
  peer.Open(2, spec);
  for (const OpNumber op : {OpNumber{2}, OpNumber{3}}) {  // open but not called; not even open
    peer.Nack(op, Stage::kScatter, {{0, 1}});
    const std::vector<Packet> sent = solo.net.Sends(0);
    ASSERT_EQ(Of(MessageType::kNotYet, sent).size(), 1U);
    wire::NotYet not_yet;
    ASSERT_EQ(wire::ParseNotYet(Of(MessageType::kNotYet, sent)[0].body, &not_yet),
              wire::ParseResult::kOk);
    EXPECT_EQ(not_yet.reason, wire::NotYet::Reason::kNotCalled);
    EXPECT_TRUE(Of(MessageType::kData, sent).empty());
  }
}

// ---- What is asked for, and when ---------------------------------------------------------------

TEST_F(PairOf6, AGapIsAskedForExactlyAReorderGuardLater) {
  peer.Data(1, 0);
  peer.next_number += 2;  // cells 1 and 2 are lost
  solo.net.now += milliseconds(1);
  peer.Data(1, 3);
  const Instant due = solo.net.now + microseconds(50);
  solo.net.Turn(0);
  EXPECT_LE(solo.group().NextWake(), due);
  solo.net.now = due - Duration{1};
  EXPECT_TRUE(Of(MessageType::kNack, solo.net.Turn(0)).empty());
  solo.net.now = due;
  EXPECT_TRUE(Of(MessageType::kNack, solo.net.Turn(0, /*idle=*/false)).empty());
  // Who lost them is not known: results may be among the lost packets too.
  const std::vector<Packet> nacks = Of(MessageType::kNack, solo.net.Turn(0));
  ASSERT_EQ(nacks.size(), 2U);
  EXPECT_EQ(NackIn(nacks[0]).stage, Stage::kBroadcast);
  const wire::Nack nack = NackIn(nacks[1]);
  EXPECT_EQ(nack.stage, Stage::kScatter);
  ASSERT_EQ(nack.range_count, 2U);
  EXPECT_EQ(nack.ranges[0], (wire::CellRange{1, 2}));
  EXPECT_EQ(nack.ranges[1], (wire::CellRange{4, 2}));
  EXPECT_EQ(nack.highest_low, static_cast<std::uint32_t>(peer.next_number - 1));
  EXPECT_TRUE(Of(MessageType::kNack, solo.net.Turn(0)).empty());
}

TEST_F(PairOf6, TheTailIsAskedForAfterSilenceWithBackOff) {
  const Instant last = solo.net.now;
  peer.Data(1, 0);
  std::vector<Instant> asked;
  for (int us = 0; us < 400'000; us += 250) {
    solo.net.now = last + microseconds(us);
    if (!Of(MessageType::kNack, solo.net.Turn(0)).empty()) asked.push_back(solo.net.now);
  }
  ASSERT_GE(asked.size(), 4U);
  EXPECT_EQ(asked[0], last + kRepairTime);
  EXPECT_EQ(asked[1], asked[0] + 2 * kRepairTime);
  EXPECT_EQ(asked[2], asked[1] + 4 * kRepairTime);
  EXPECT_EQ(asked[3], asked[2] + 8 * kRepairTime);
}

TEST_F(PairOf6, NothingIsAskedForWhileInputWaits) {
  for (int i = 0; i < 100; ++i) {
    solo.net.now += milliseconds(10);
    EXPECT_TRUE(Of(MessageType::kNack, solo.net.Turn(0, /*idle=*/false)).empty());
  }
  EXPECT_FALSE(Of(MessageType::kNack, solo.net.Turn(0)).empty());
}

TEST_F(PairOf6, NotYetStopsAskingForItsOpOnly) {
  solo.net.Call(0, spec);
  peer.Open(2, spec);
  peer.DataAll(1);
  peer.DataAll(2);
  solo.net.Turn(0);
  solo.net.now += milliseconds(100);  // well behind with both
  std::vector<Packet> nacks = Of(MessageType::kNack, solo.net.Turn(0));
  ASSERT_EQ(nacks.size(), 2U);
  peer.NotYet(1, Stage::kBroadcast, wire::NotYet::Reason::kNotCalled);
  const Instant told = solo.net.now;
  bool asked_2 = false;
  Instant asked_1 = kNever;
  for (int us = 0; us < 200'000; us += 250) {
    if (us % 9000 == 0) peer.NotYet(1, Stage::kBroadcast, wire::NotYet::Reason::kHeld);
    solo.net.now = told + microseconds(us);
    for (const Packet& nack : Of(MessageType::kNack, solo.net.Turn(0))) {
      asked_2 |= nack.op == 2;
      if (nack.op == 1) asked_1 = std::min(asked_1, solo.net.now);
    }
  }
  EXPECT_TRUE(asked_2);
  EXPECT_EQ(asked_1, kNever);
  for (int us = 0; us < 200'000; us += 250) {  // not told any more
    solo.net.now += microseconds(250);
    for (const Packet& nack : Of(MessageType::kNack, solo.net.Turn(0))) {
      if (nack.op == 1) asked_1 = std::min(asked_1, solo.net.now);
    }
  }
  EXPECT_NE(asked_1, kNever);
}

// ---- OPENs again -------------------------------------------------------------------------------

TEST_F(PairOf6, AReportThatShowsALostOpenMakesItGoOutAtOnceAndOnce) {
  peer.See(first);
  peer.report.opened = 0;
  peer.Report();
  std::vector<Packet> opens = Of(MessageType::kOpen, solo.net.Sends(0));
  ASSERT_EQ(opens.size(), 1U);
  for (int i = 0; i < 5; ++i) {  // these have not seen the new one pass
    peer.Report();
    EXPECT_TRUE(Of(MessageType::kOpen, solo.net.Sends(0)).empty());
  }
  peer.See(opens);
  peer.Report();
  EXPECT_EQ(Of(MessageType::kOpen, solo.net.Sends(0)).size(), 1U);
}

TEST_F(PairOf6, AnOpenIsRepeatedUntilCovered) {
  int opens = 0;
  for (int ms = 0; ms < 1000; ++ms) {
    solo.net.now += milliseconds(1);
    opens += static_cast<int>(Of(MessageType::kOpen, solo.net.Turn(0)).size());
  }
  EXPECT_GE(opens, 8);
  EXPECT_LE(opens, 20);  // from 10 ms to 80 ms apart
  peer.report.opened = 1;
  peer.Report();
  for (int ms = 0; ms < 1000; ++ms) {
    solo.net.now += milliseconds(1);
    EXPECT_TRUE(Of(MessageType::kOpen, solo.net.Turn(0)).empty());
  }
}

TEST_F(PairOf6, ACompleteResultCoversAnOpen) {
  peer.Result(1, 0);
  for (int ms = 0; ms < 200; ++ms) {
    solo.net.now += milliseconds(1);
    EXPECT_TRUE(Of(MessageType::kOpen, solo.net.Turn(0)).empty());
  }
}

TEST_F(PairOf6, AnOpenTellsTheAgeOfItsCall) {
  solo.net.now += milliseconds(70);
  const std::vector<Packet> opens = Of(MessageType::kOpen, solo.net.Turn(0));
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(ReportIn(opens[0]).age_ns, 70'000'000U);
}

// ---- Reports -----------------------------------------------------------------------------------

TEST(Reports, AreOwedWhenThreeEighthsOfTheCreditAreUsed) {
  GroupSettings settings = Settings(2);
  settings.credit_start_packets = settings.credit_max_packets = 40;
  Solo solo(settings);
  const OpSpec spec = Exact(Count(2, 64));
  solo.peer(1).Open(1, spec);  // rank 0 has nothing to send
  for (CellIndex cell = 0; cell < 13; ++cell) {
    EXPECT_TRUE(solo.Turn().empty());
    solo.peer(1).Data(1, cell);
  }
  solo.peer(1).Data(1, 13);  // 15 packets
  const std::vector<Packet> sent = solo.Turn();
  ASSERT_EQ(sent.size(), 1U);
  const wire::ReportBlock report = ReportIn(sent[0]);
  EXPECT_EQ(report.highest_low, 15U);
  EXPECT_EQ(report.received_low, 15U);
  EXPECT_EQ(report.credit, 40U);
  EXPECT_EQ(report.opened, 1U);
  EXPECT_EQ(report.called, 0U);
}

TEST(Reports, RideLastWithABurstToTheSamePeer) {
  GroupSettings settings = Settings(2);
  settings.credit_start_packets = settings.credit_max_packets = 40;
  Solo solo(settings);
  const OpSpec spec = Exact(Count(2, 64));
  solo.peer(1).report.credit = 40;
  solo.peer(1).Open(1, spec);
  for (CellIndex cell = 0; cell < 9; ++cell) solo.peer(1).Data(1, cell);  // a quarter
  solo.net.Call(0, spec);
  const std::vector<Packet> sent = solo.Turn();
  // OPEN (which is a report), then bursts of half of the credit.
  ASSERT_EQ(sent[0].type(), MessageType::kOpen);
  EXPECT_EQ(ReportIn(sent[0]).highest_low, 10U);
  EXPECT_EQ(Of(MessageType::kResult, sent).size(), 9U);
  EXPECT_EQ(Of(MessageType::kData, sent).size(), 20U);
  solo.peer(1).report.opened = 1;
  solo.peer(1).Report();
  for (CellIndex cell = 9; cell < 20; ++cell) solo.peer(1).Data(1, cell);
  const std::vector<Packet> more = solo.Turn();
  ASSERT_GE(more.size(), 3U);
  const auto report = std::find_if(more.begin(), more.end(), [](const Packet& packet) {
    return packet.type() == MessageType::kReport;
  });
  ASSERT_NE(report, more.end());
  ASSERT_NE(report, more.begin());
  EXPECT_EQ(report->number, (report - 1)->number + 1);
  EXPECT_EQ(Of(MessageType::kReport, more).size(), 1U);
}

TEST(Reports, WhoWaitsIsHeardEveryTenMilliseconds) {
  Solo solo(2);
  solo.net.Call(0, Exact(Count(2, 1)));
  solo.peer(1).report.opened = 1;
  solo.peer(1).See(solo.Turn());
  solo.peer(1).Report();
  Instant last = solo.net.now;
  for (int ms = 0; ms < 500; ++ms) {
    if (!solo.TurnAfter(milliseconds(1)).empty()) {
      EXPECT_LE(solo.net.now - last, milliseconds(10));
      last = solo.net.now;
    }
  }
  EXPECT_LE(solo.net.now - last, milliseconds(10));
}

TEST(Reports, AnIdleGroupFallsSilent) {
  Solo solo(2);
  solo.RunOp(Exact(Count(2, 1)));
  int reports = 0;
  for (int ms = 0; ms < 3000; ++ms) {
    reports += static_cast<int>(solo.TurnAfter(milliseconds(1)).size());
  }
  EXPECT_GE(reports, 4);  // that it is done, again in case one is lost
  EXPECT_LE(reports, 6);
  EXPECT_EQ(solo.group().NextWake(), kNever);
}

TEST(Reports, ASmallCreditStartsNoPingPong) {
  for (const std::uint32_t credit : {1U, 2U, 3U, 4U}) {
    GroupSettings settings = Settings(2);
    settings.credit_start_packets = settings.credit_max_packets = credit;
    Net net(settings);
    net.CallAll(Exact(Count(2, 5)));
    ASSERT_TRUE(net.RunUntilEnded(net.now + seconds(2))) << credit;
    net.RunUntil(net.now + seconds(1));
    const std::uint64_t before = net.sent;
    net.RunUntil(net.now + seconds(1));
    EXPECT_EQ(net.sent, before) << "of an idle group with credit " << credit;
  }
}

// ---- Credit ------------------------------------------------------------------------------------

TEST(Credit, NoMoreThanGrantedIsInFlight) {
  GroupSettings settings = Settings(3);
  settings.credit_start_packets = 12;
  Solo solo(settings);
  solo.net.Call(0, Exact(Count(3, 50)));
  std::vector<Packet> sent = Of(MessageType::kData, solo.net.Turn(0));
  EXPECT_EQ(To(1, sent).size(), 12U);
  EXPECT_EQ(To(2, sent).size(), 12U);
  // A gap frees what is below it.
  solo.peer(1).report.credit = 20;
  solo.peer(1).SeeUpTo(To(1, sent)[7].number);
  solo.peer(1).Report();
  sent = Of(MessageType::kData, solo.net.Sends(0));
  EXPECT_EQ(To(1, sent).size(), 10U);  // 4 are in flight still, and a burst is half of the credit
  EXPECT_EQ(solo.group().link(1).tx.in_flight(), 14U);
  EXPECT_TRUE(To(2, sent).empty());
}

TEST(Credit, SilenceFreesAllOfIt) {
  for (const std::uint32_t credit : {1U, 2U, 12U}) {
    GroupSettings settings = Settings(2);
    settings.credit_start_packets = credit;
    Solo solo(settings);
    solo.net.Call(0, Exact(Count(2, 50)));
    EXPECT_EQ(Of(MessageType::kData, solo.Turn()).size(), credit);
    EXPECT_TRUE(Of(MessageType::kData, solo.TurnAfter(2 * kRepairTime - Duration{1})).empty());
    EXPECT_EQ(Of(MessageType::kData, solo.TurnAfter(Duration{1})).size(), credit) << credit;
    EXPECT_EQ(solo.node().count(Counter::kSilenceReleases), 1U);
  }
}

TEST(Credit, OverflowHalvesWhatIsGranted) {
  Solo solo(2);
  solo.group().OnReceiveOverflow(1, solo.net.now);
  solo.peer(1).Report(wire::kFlagAnswer);
  const std::vector<Packet> sent = solo.Turn();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_LE(ReportIn(sent[0]).credit, 44U);
  solo.group().OnReceiveOverflow(1, solo.net.now);
  solo.group().OnReceiveOverflow(1, solo.net.now);
  EXPECT_EQ(solo.group().link(1).grant.packets(), ReportIn(sent[0]).credit / 4);
}

TEST(Credit, APeerWithoutCreditHoldsUpNobodyElse) {
  GroupSettings settings = Settings(3);
  settings.credit_start_packets = 4;
  Solo solo(settings);
  solo.net.Call(0, Exact(Count(3, 30)));
  std::vector<Packet> sent = solo.net.Turn(0);
  std::size_t data = 0;
  for (int i = 0; i < 40; ++i) {
    data += To(2, Of(MessageType::kData, sent)).size();
    solo.peer(2).See(sent);
    solo.peer(2).Report();
    sent = solo.net.Sends(0);
  }
  EXPECT_EQ(solo.group().link(1).tx.in_flight(), 4U);
  EXPECT_EQ(data, 30U);
}

TEST(Credit, AFullControlQueueLosesNoSetsForGood) {
  Solo solo(2);
  const OpSpec spec = Bounded(Count(2, 1));
  solo.net.Call(0, spec);
  solo.peer(1).Open(1, spec);
  solo.Turn();
  // More questions than the queue takes, and no turn to answer them.
  for (int i = 0; i < 200; ++i) solo.peer(1).Nack(2, Stage::kScatter, {{0, 1}});
  EXPECT_GT(solo.node().count(Counter::kControlQueueFull), 0U);
  solo.net.now += milliseconds(15);
  solo.group().OnTime(true, solo.net.now);
  ASSERT_TRUE(solo.actions().Closed(1, 0));
  solo.Turn();
  solo.peer(1).Nack(1, Stage::kBroadcast, {{0, 1}}, /*sets_only=*/true);
  EXPECT_EQ(Of(MessageType::kSets, solo.Turn()).size(), 1U);
}

}  // namespace
}  // namespace optireduce::ubt
