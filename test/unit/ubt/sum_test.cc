// Contributions to the own shard: their order, and cells that are decided once.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "test/unit/ubt/solo.h"

namespace optireduce::ubt {
namespace {

TEST(Sum, SameOrderForAllPermutationsOfArrival) {
  for (const std::uint32_t ranks : {2U, 3U, 4U}) {
    // Event 0 is the own call; event r the contribution of rank r.
    std::vector<Rank> events(ranks);
    std::iota(events.begin(), events.end(), 0);
    const OpSpec spec = Exact(Count(ranks, 2));
    do {
      Solo solo(ranks);
      solo.OpenAll(1, spec);
      for (const Rank event : events) {
        if (event == 0) {
          EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
        } else {
          solo.peer(event).DataAll(1);
        }
      }
      for (CellIndex cell = 0; cell < 2; ++cell) {
        EXPECT_EQ(solo.actions().AddedTo(1, cell), tar::SumOrder(ranks, 0));
        EXPECT_TRUE(solo.actions().Closed(1, cell));
      }
      EXPECT_TRUE(solo.actions().staged.empty());
    } while (std::next_permutation(events.begin(), events.end()));
  }
}

// Of the 5040 permutations every 13th.
TEST(Sum, SameOrderForPermutationsOfOpensAndData) {
  constexpr std::uint32_t kRanks = 4;
  const OpSpec spec = Exact(Count(kRanks, 1));
  // 0: the call; 1 … 3: an OPEN; 4 … 6: DATA of the rank.
  std::vector<int> events(7);
  std::iota(events.begin(), events.end(), 0);
  for (int permutation = 0; std::next_permutation(events.begin(), events.end()); ++permutation) {
    if (permutation % 13 != 0) continue;
    Solo solo(kRanks);
    std::vector<Rank> refused;
    for (const int event : events) {
      if (event == 0) {
        solo.net.Call(0, spec);
      } else if (event <= 3) {
        EXPECT_EQ(solo.peer(static_cast<Rank>(event)).Open(1, spec), Counter::kAccepted);
      } else {
        const auto rank = static_cast<Rank>(event - 3);
        const Counter verdict = solo.peer(rank).Data(1, 0);
        if (verdict == Counter::kEarlyNoRoom) refused.push_back(rank);
      }
    }
    for (const Rank rank : refused) solo.peer(rank).Data(1, 0, wire::kFlagRepeat);
    ASSERT_EQ(solo.actions().AddedTo(1, 0), (std::vector<Rank>{0, 3, 2, 1}));
    ASSERT_TRUE(solo.actions().Closed(1, 0));
    ASSERT_TRUE(solo.actions().staged.empty());
  }
}

TEST(Sum, OnlyWhatIsNextIsAddedAtOnce) {
  Solo solo(4);
  const OpSpec spec = Exact(Count(4, 1));
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kWaited);
  EXPECT_EQ(solo.peer(3).Data(1, 0), Counter::kAccepted);
  EXPECT_EQ(solo.actions().staged.size(), 1U);
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kAccepted);
  EXPECT_TRUE(solo.actions().staged.empty());
  EXPECT_TRUE(solo.actions().Closed(1, 0));
}

TEST(Sum, DuplicatesAddNothing) {
  Solo solo(3);
  const OpSpec spec = Exact(Count(3, 1));
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kAccepted);
  EXPECT_EQ(solo.net.Deliver(solo.peer(2).last), Counter::kDuplicate);  // the packet
  EXPECT_EQ(solo.peer(2).Data(1, 0, wire::kFlagRepeat), Counter::kDuplicate);  // the content
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kAccepted);
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kDuplicate);  // after the close, too
  EXPECT_EQ(solo.actions().AddedTo(1, 0), (std::vector<Rank>{0, 2, 1}));
}

TEST(Sum, WaitingContributionsAreNoDuplicatesOfThemselves) {
  Solo solo(4);
  const OpSpec spec = Exact(Count(4, 1));
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kWaited);
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kDuplicate);
  EXPECT_EQ(solo.actions().staged.size(), 1U);
}

TEST(Sum, DataAfterTheCloseIsLateAndAddsNothing) {
  Solo solo(3);
  const OpSpec spec = Bounded(Count(3, 1));
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  solo.peer(1).Data(1, 0);
  solo.TurnAfter(milliseconds(15));
  ASSERT_TRUE(solo.actions().Closed(1, 0));
  const Elements decided = solo.actions().shards.at(1).cells[0];
  EXPECT_EQ(SetIn(decided[0]), 0b011U);
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kLate);
  EXPECT_EQ(solo.peer(2).Data(1, 0, wire::kFlagRepeat), Counter::kLate);
  EXPECT_EQ(solo.actions().shards.at(1).cells[0], decided);
  EXPECT_EQ(solo.actions().AddedTo(1, 0), (std::vector<Rank>{0, 1}));
}

TEST(Sum, DataBeforeItsOpenWaits) {
  Solo solo(3);
  const OpSpec spec = Exact(Count(3, 1));
  solo.net.Call(0, spec);
  solo.peer(1).Open(1, spec);
  solo.Turn();
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kWaited);
  EXPECT_EQ(solo.peer(2).Data(1, 0, wire::kFlagRepeat), Counter::kDuplicate);
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kWaited);  // behind rank 2 in the order
  const std::vector<Rank>& added = solo.actions().AddedTo(1, 0);
  EXPECT_EQ(std::count(added.begin(), added.end(), 2U), 0);
  // A report shows the sender at once that its OPEN is lost.
  const std::vector<Packet> reports = To(2, Of(MessageType::kReport, solo.Turn()));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(ReportIn(reports[0]).opened, 0U);
  EXPECT_EQ(solo.peer(2).Open(1, spec), Counter::kAccepted);
  EXPECT_EQ(solo.actions().AddedTo(1, 0), (std::vector<Rank>{0, 2, 1}));
  EXPECT_TRUE(solo.actions().Closed(1, 0));
  EXPECT_TRUE(solo.actions().staged.empty());
}

TEST(Sum, DataOfAnOpThatNobodyOpenedIsRefused) {
  Solo solo(3);
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kEarlyNoRoom);
  EXPECT_TRUE(solo.actions().staged.empty());
}

TEST(Sum, DataWithoutOpenIsDroppedAtTheDeadline) {
  Solo solo(3);
  const OpSpec spec = Bounded(Count(3, 2));
  solo.net.Call(0, spec);
  solo.peer(1).Open(1, spec);
  solo.peer(1).DataAll(1);
  EXPECT_EQ(solo.peer(2).Data(1, 1), Counter::kWaited);
  solo.TurnAfter(milliseconds(15));
  EXPECT_TRUE(solo.actions().staged.empty());
  for (CellIndex cell = 0; cell < 2; ++cell) {
    EXPECT_EQ(solo.actions().AddedTo(1, cell), (std::vector<Rank>{0, 1}));
  }
  EXPECT_EQ(solo.peer(2).Open(1, spec), Counter::kAccepted);
  EXPECT_EQ(solo.actions().AddedTo(1, 1), (std::vector<Rank>{0, 1}));
}

TEST(Sum, NoRoomToWaitCountsAsNotReceived) {
  Solo solo(4);
  const OpSpec spec = Exact(Count(4, 1));
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  solo.actions().staged_max = 0;
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kEarlyNoRoom);
  EXPECT_EQ(solo.peer(3).Data(1, 0), Counter::kAccepted);  // is next: needs none
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kAccepted);
  // It is asked for like a lost packet.
  solo.Turn();
  std::vector<Packet> nacks;
  for (int ms = 0; ms < 30 && nacks.empty(); ++ms) {
    nacks = To(1, Of(MessageType::kNack, solo.TurnAfter(milliseconds(1))));
  }
  ASSERT_FALSE(nacks.empty());
  EXPECT_EQ(NackIn(nacks[0]).ranges[0], (wire::CellRange{0, 1}));
  EXPECT_EQ(solo.peer(1).Data(1, 0, wire::kFlagRepeat), Counter::kAccepted);
  EXPECT_TRUE(solo.actions().Closed(1, 0));
}

// ---- Ranks that called different things --------------------------------------------------------

TEST(Mismatch, OfTwoPeersFailsWithBothCalls) {
  Solo solo(3);
  solo.net.Call(0, Exact(96));
  solo.peer(1).Open(1, Exact(96));
  EXPECT_EQ(solo.peer(2).Open(1, Exact(97)), Counter::kAccepted);
  const Status& failure = solo.group().failure();
  EXPECT_EQ(failure.code(), Code::kMismatch);
  EXPECT_NE(failure.text().find("op 1: "), std::string::npos) << failure.text();
  EXPECT_NE(failure.text().find("of 96 int64"), std::string::npos) << failure.text();
  EXPECT_NE(failure.text().find("of 97 int64"), std::string::npos) << failure.text();
  EXPECT_NE(failure.text().find("rank 2"), std::string::npos) << failure.text();
  EXPECT_NE(failure.text().find("rank 0"), std::string::npos) << failure.text();
}

TEST(Mismatch, OfTheOwnCallFailsToo) {
  Solo solo(3);
  OpSpec other = Exact(96);
  other.fingerprint = 4711;
  solo.peer(2).Open(1, other);
  EXPECT_EQ(solo.net.Call(0, Exact(96)), Admission::kAdmitted);
  EXPECT_EQ(solo.group().failure().code(), Code::kMismatch);
  EXPECT_NE(solo.group().failure().text().find("key 4711"), std::string::npos);
}

TEST(Mismatch, EveryFieldIsCompared) {
  const OpSpec own{96, DataType::kFloat64, ReduceOp::kSum, Mode::kExact, 5};
  std::vector<OpSpec> others(5, own);
  others[0].count = 95;
  others[1].type = DataType::kInt64;
  others[2].reduce = ReduceOp::kAvg;
  others[3].mode = Mode::kBounded;
  others[4].fingerprint = 6;
  for (const OpSpec& other : others) {
    Solo solo(2);
    solo.net.Call(0, own);
    solo.peer(1).Open(1, other);
    EXPECT_EQ(solo.group().failure().code(), Code::kMismatch) << Describe(other);
  }
}

TEST(Mismatch, ContributionsBeforeItAreNeverAdded) {
  Solo solo(2);
  solo.net.Call(0, Exact(Count(2, 1)));
  solo.Turn();
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kWaited);
  solo.peer(1).Open(1, Exact(Count(2, 1) + 1));
  EXPECT_TRUE(solo.actions().AddedTo(1, 0).empty());
  EXPECT_FALSE(solo.actions().Closed(1, 0));
}

TEST(Failure, EndsAllTraffic) {
  Solo solo(3);
  const OpSpec spec = Exact(Count(3, 2));
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  solo.group().Fail({Code::kAborted, "first"});
  solo.group().Fail({Code::kAborted, "second"});
  EXPECT_EQ(solo.group().failure().text(), "first");
  EXPECT_TRUE(solo.Turn().empty());
  EXPECT_EQ(solo.group().NextWake(), kNever);
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kUnexpected);
  EXPECT_EQ(solo.peer(1).Open(2, spec), Counter::kUnexpected);
  EXPECT_TRUE(solo.actions().AddedTo(1, 0).empty());
  EXPECT_TRUE(solo.group().Settled());
}

}  // namespace
}  // namespace optireduce::ubt
