#include "transport/ubt/link.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace optireduce::ubt {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart = InstantFromNanos(5'000'000'000);
constexpr Duration kGuard = microseconds(50);  // of reordering, at the start

LinkSettings Starting(PacketNumber first, std::uint32_t start = 10, std::uint32_t most = 90) {
  return {first, start, most};
}

// ---- RoundTrip ---------------------------------------------------------------------------------

TEST(RoundTrip, RepairTimeIsTenMillisecondsUntilMeasured) {
  EXPECT_EQ(RoundTrip().repair_time(), milliseconds(10));
}

TEST(RoundTrip, RepairTimeStaysWithinItsBounds) {
  RoundTrip quick;
  for (int i = 0; i < 100; ++i) quick.Sample(microseconds(1));
  EXPECT_EQ(quick.repair_time(), microseconds(500));
  RoundTrip slow;
  slow.Sample(seconds(3));
  EXPECT_EQ(slow.repair_time(), milliseconds(200));
}

TEST(RoundTrip, FollowsWhatItMeasures) {
  RoundTrip rtt;
  rtt.Sample(milliseconds(2));
  EXPECT_EQ(rtt.smoothed(), milliseconds(2));
  // 2 ms + 4 * 1 ms of variation + 0.25 ms.
  EXPECT_EQ(rtt.repair_time(), microseconds(6250));
  for (int i = 0; i < 200; ++i) rtt.Sample(milliseconds(2));
  EXPECT_LT(rtt.repair_time(), microseconds(2300));
  for (int i = 0; i < 200; ++i) rtt.Sample(milliseconds(8));
  EXPECT_GT(rtt.smoothed(), microseconds(7990));
  EXPECT_GT(rtt.repair_time(), milliseconds(8));
}

// ---- TxWindow ----------------------------------------------------------------------------------

TEST(TxWindow, OnlyCreditedPacketsTakeRoom) {
  TxWindow tx(Starting(1));
  EXPECT_EQ(tx.Room(), 10U);
  for (int i = 0; i < 7; ++i) tx.TakeNumber(true, kStart);
  for (int i = 0; i < 50; ++i) tx.TakeNumber(false, kStart);
  EXPECT_EQ(tx.in_flight(), 7U);
  EXPECT_EQ(tx.Room(), 3U);
  EXPECT_EQ(tx.last_number(), 57U);
  for (int i = 0; i < 5; ++i) tx.TakeNumber(true, kStart);
  EXPECT_EQ(tx.Room(), 0U);  // never below, also when repairs went out with more than the credit
}

TEST(TxWindow, AGapNeverStallsTheWindow) {
  TxWindow tx(Starting(1));
  for (int i = 0; i < 10; ++i) tx.TakeNumber(true, kStart);
  // The peer has seen number 10 and nothing else: the nine below are lost, and free their credit.
  tx.OnReport(10, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 0U);
  EXPECT_EQ(tx.Room(), 10U);
}

TEST(TxWindow, InFlightIsWhatWentOutAboveTheHighestSeen) {
  TxWindow tx(Starting(100));
  for (int i = 0; i < 4; ++i) tx.TakeNumber(true, kStart);   // 100 … 103
  tx.TakeNumber(false, kStart);                              // 104
  for (int i = 0; i < 3; ++i) tx.TakeNumber(true, kStart);   // 105 … 107
  tx.OnReport(102, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 4U);
  tx.OnReport(104, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 3U);
  tx.OnReport(107, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 0U);
}

TEST(TxWindow, ReportsOfThePastAndTheFutureFreeNothing) {
  TxWindow tx(Starting(1));
  for (int i = 0; i < 8; ++i) tx.TakeNumber(true, kStart);
  tx.OnReport(4, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 4U);
  EXPECT_LT(tx.OnReport(2, 10, Duration{0}, kStart), Duration{0});
  EXPECT_EQ(tx.in_flight(), 4U);
  EXPECT_LT(tx.OnReport(9, 10, Duration{0}, kStart), Duration{0});  // was never sent
  EXPECT_EQ(tx.in_flight(), 4U);
  EXPECT_LT(tx.OnReport(~PacketNumber{0}, 10, Duration{0}, kStart), Duration{0});
  EXPECT_EQ(tx.in_flight(), 4U);
}

TEST(TxWindow, SilenceReleasesAllAndLaterReportsCountOnlyTheRest) {
  TxWindow tx(Starting(1));
  for (int i = 0; i < 10; ++i) tx.TakeNumber(true, kStart);
  tx.ReleaseAll();
  EXPECT_EQ(tx.Room(), 10U);
  for (int i = 0; i < 6; ++i) tx.TakeNumber(true, kStart);
  tx.OnReport(7, 10, Duration{0}, kStart);  // of those that were given up
  EXPECT_EQ(tx.in_flight(), 6U);
  tx.OnReport(13, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 3U);
}

TEST(TxWindow, MeasuresTheRoundTripLessTheHold) {
  TxWindow tx(Starting(1));
  tx.TakeNumber(true, kStart);
  tx.TakeNumber(true, kStart + milliseconds(1));
  EXPECT_EQ(tx.OnReport(2, 10, milliseconds(3), kStart + milliseconds(9)), milliseconds(5));
  // The same number again tells nothing of the round trip.
  EXPECT_LT(tx.OnReport(2, 10, Duration{0}, kStart + milliseconds(20)), Duration{0});
  tx.TakeNumber(true, kStart + milliseconds(30));
  EXPECT_EQ(tx.OnReport(3, 10, seconds(1), kStart + milliseconds(31)), Duration{0});
}

TEST(TxWindow, CreditShrinksBelowWhatIsInFlight) {
  TxWindow tx(Starting(1));
  for (int i = 0; i < 8; ++i) tx.TakeNumber(true, kStart);
  tx.OnReport(0, 4, Duration{0}, kStart);
  EXPECT_EQ(tx.credit(), 4U);
  EXPECT_EQ(tx.Room(), 0U);
  tx.OnReport(6, 4, Duration{0}, kStart);
  EXPECT_EQ(tx.Room(), 2U);
}

TEST(TxWindow, CreditIsAtMostWhatRecordsAreKeptFor) {
  for (const auto& [most, credit] : {std::pair(1U, 64U), std::pair(90U, 1024U),
                                     std::pair(2048U, 2048U)}) {
    TxWindow tx(Starting(1, 1, most));
    tx.OnReport(0, ~std::uint32_t{0}, Duration{0}, kStart);
    EXPECT_EQ(tx.credit(), credit);
  }
}

TEST(TxWindow, WhatIsForgottenWasSentBefore) {
  TxWindow tx(Starting(1));
  const PacketNumber first = tx.TakeNumber(true, kStart);
  EXPECT_FALSE(tx.SentBefore(first, kStart - Duration{1}));
  EXPECT_TRUE(tx.SentBefore(first, kStart));
  for (int i = 0; i < 4096; ++i) tx.TakeNumber(true, kStart + seconds(1));
  EXPECT_TRUE(tx.SentBefore(first, kStart - seconds(1)));
}

TEST(TxWindow, DatesAQuestionFromWhatItsAskerHadSeen) {
  TxWindow tx(Starting(1));
  tx.TakeNumber(true, kStart);
  const Instant now = kStart + milliseconds(90);
  EXPECT_EQ(tx.AskedAt(1, milliseconds(20), now), kStart + milliseconds(20));
  EXPECT_EQ(tx.AskedAt(1, milliseconds(200), now), now);  // never later than now
  // Who has seen nothing, or what is forgotten or was never sent, gives no date.
  EXPECT_EQ(tx.AskedAt(0, milliseconds(20), now), now);
  EXPECT_EQ(tx.AskedAt(7, milliseconds(20), now), now);
}

TEST(TxWindow, NumbersPass32Bits) {
  const PacketNumber first = (PacketNumber{1} << 32) - 3;
  TxWindow tx(Starting(first));
  for (int i = 0; i < 6; ++i) tx.TakeNumber(true, kStart);
  EXPECT_EQ(tx.last_number(), (PacketNumber{1} << 32) + 2);
  tx.OnReport((PacketNumber{1} << 32) - 1, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 3U);
  tx.OnReport((PacketNumber{1} << 32) + 1, 10, Duration{0}, kStart);
  EXPECT_EQ(tx.in_flight(), 1U);
}

// ---- RxWindow ----------------------------------------------------------------------------------

TEST(RxWindow, TakesEachNumberOnce) {
  RxWindow rx(Starting(1));
  EXPECT_TRUE(rx.Accept(1, true, kStart));
  EXPECT_FALSE(rx.Accept(1, true, kStart));
  EXPECT_TRUE(rx.Accept(4, true, kStart));
  EXPECT_TRUE(rx.Accept(3, false, kStart));
  EXPECT_TRUE(rx.Accept(2, true, kStart));
  for (PacketNumber n = 1; n <= 4; ++n) EXPECT_FALSE(rx.Accept(n, true, kStart)) << n;
  EXPECT_EQ(rx.received(), 4U);
  EXPECT_EQ(rx.credited_received(), 3U);
  EXPECT_EQ(rx.highest(), 4U);
}

TEST(RxWindow, RefusesWhatIsTooOldToTell) {
  RxWindow rx(Starting(1));
  EXPECT_TRUE(rx.Accept(5000, true, kStart));
  EXPECT_FALSE(rx.Accept(5000 - 4096, true, kStart));
  EXPECT_TRUE(rx.Accept(5000 - 4095, true, kStart));
}

TEST(RxWindow, JumpsFartherThanTheWindow) {
  RxWindow rx(Starting(1));
  for (PacketNumber n = 1; n <= 100; ++n) EXPECT_TRUE(rx.Accept(n, true, kStart));
  EXPECT_TRUE(rx.Accept(100'000, true, kStart));
  // None of the numbers in between was in, whatever was in at their places of the window before.
  for (PacketNumber n = 100'000 - 4095; n < 100'000; ++n) ASSERT_TRUE(rx.Accept(n, true, kStart));
  for (PacketNumber n = 100'000 - 4095; n <= 100'000; ++n) ASSERT_FALSE(rx.Accept(n, true, kStart));
}

TEST(RxWindow, NumbersPass32Bits) {
  const PacketNumber wrap = PacketNumber{1} << 32;
  RxWindow rx(Starting(wrap - 2));
  EXPECT_EQ(rx.highest(), wrap - 3);
  EXPECT_TRUE(rx.Accept(wrap - 2, true, kStart));
  EXPECT_TRUE(rx.Accept(wrap + 1, true, kStart));
  EXPECT_TRUE(rx.Accept(wrap, true, kStart));
  EXPECT_FALSE(rx.Accept(wrap, true, kStart));
  EXPECT_EQ(rx.GapDue(), kStart + kGuard);  // wrap - 1
  EXPECT_TRUE(rx.Accept(wrap - 1, true, kStart));
  EXPECT_EQ(rx.GapDue(), kNever);
}

TEST(RxWindow, AGapIsDueExactlyAReorderGuardAfterItShows) {
  RxWindow rx(Starting(1));
  rx.Accept(1, true, kStart);
  EXPECT_EQ(rx.GapDue(), kNever);
  rx.Accept(3, true, kStart + milliseconds(1));
  rx.Accept(6, true, kStart + milliseconds(2));  // the oldest gap counts
  const Instant due = kStart + milliseconds(1) + kGuard;
  EXPECT_EQ(rx.GapDue(), due);
  EXPECT_FALSE(rx.GapOpen(due - Duration{1}));
  EXPECT_TRUE(rx.GapOpen(due));
}

TEST(RxWindow, WhatIsOnlyReorderedLeavesNoGap) {
  RxWindow rx(Starting(1));
  rx.Accept(3, true, kStart);
  rx.Accept(1, true, kStart);
  rx.Accept(2, true, kStart);
  EXPECT_EQ(rx.GapDue(), kNever);
}

TEST(RxWindow, WhatWasAskedForIsNoGapAnyMore) {
  RxWindow rx(Starting(1));
  rx.Accept(3, true, kStart);
  rx.Asked(kStart + milliseconds(1));
  EXPECT_EQ(rx.GapDue(), kNever);
  rx.Accept(4, true, kStart + milliseconds(2));
  EXPECT_EQ(rx.GapDue(), kNever);
  rx.Accept(6, true, kStart + milliseconds(3));
  EXPECT_GE(rx.GapDue(), kStart + milliseconds(3));
  EXPECT_LT(rx.GapDue(), kNever);
}

TEST(RxWindow, TheReorderGuardGrowsByWhatWasOnlyLate) {
  RxWindow rx(Starting(1));
  rx.Accept(2, true, kStart);
  rx.Asked(kStart + kGuard);
  // Number 1 was asked for, and comes 400 us later by itself.
  rx.Accept(1, true, kStart + kGuard + microseconds(400));
  rx.Accept(4, true, kStart + milliseconds(5));
  // Now a gap may last (400 + 50) us and a quarter more.
  EXPECT_EQ(rx.GapDue(), kStart + milliseconds(5) + microseconds(450) + Duration{112'500});
}

TEST(RxWindow, TheReorderGuardIsBoundedAndDecays) {
  RxWindow rx(Starting(1));
  PacketNumber n = 0;
  rx.Accept(n += 2, true, kStart);
  rx.Asked(kStart);
  rx.Accept(1, true, kStart + seconds(1));
  Instant at = kStart + seconds(2);
  rx.Accept(n += 2, true, at);
  Duration guard = rx.GapDue() - at;
  EXPECT_EQ(guard, milliseconds(20));
  for (int i = 0; i < 500; ++i) {
    rx.Asked(at);
    at += seconds(1);
    rx.Accept(n += 2, true, at);
    const Duration next = rx.GapDue() - at;
    ASSERT_LE(next, guard);
    guard = next;
  }
  EXPECT_EQ(guard, kGuard);
}

TEST(RxWindow, WhatFoundNoRoomIsDueAsIfLost) {
  RxWindow rx(Starting(1));
  rx.Accept(1, true, kStart);
  rx.Refused(kStart + milliseconds(7));
  rx.Refused(kStart + milliseconds(9));
  EXPECT_EQ(rx.GapDue(), kStart + milliseconds(7));
  rx.Accept(3, true, kStart);
  EXPECT_EQ(rx.GapDue(), kStart + kGuard);
  rx.Asked(kStart + milliseconds(1));
  EXPECT_EQ(rx.GapDue(), kNever);
}

TEST(RxWindow, KnowsWhenItHeardWhat) {
  RxWindow rx(Starting(1));
  rx.Accept(1, true, kStart);
  rx.Accept(3, false, kStart + milliseconds(1));
  rx.Accept(2, false, kStart + milliseconds(2));
  EXPECT_EQ(rx.credited_at(), kStart);
  EXPECT_EQ(rx.highest_at(), kStart + milliseconds(1));
  EXPECT_EQ(rx.heard_at(), kStart + milliseconds(2));
}

// ---- CreditGrant -------------------------------------------------------------------------------

TEST(CreditGrant, DoublesPerCleanReportUpToItsMost) {
  CreditGrant grant(Starting(1, 10, 90));
  EXPECT_EQ(grant.packets(), 10U);
  for (const std::uint32_t expected : {20U, 40U, 80U, 90U, 90U}) {
    const std::uint32_t before = grant.packets();
    grant.OnCleanReport();
    EXPECT_EQ(grant.packets(), expected);
    EXPECT_EQ(grant.told_packets(), before);  // the report that says more may be lost
  }
}

TEST(CreditGrant, HalvesOnOverflowDownToFour) {
  CreditGrant grant(Starting(1, 64, 90));
  for (const std::uint32_t expected : {32U, 16U, 8U, 4U, 4U, 4U}) {
    grant.OnOverflow();
    EXPECT_EQ(grant.packets(), expected);
    EXPECT_LE(grant.told_packets(), expected);
  }
}

TEST(CreditGrant, NeverAboveItsMost) {
  CreditGrant grant(Starting(1, 2, 2));
  grant.OnOverflow();
  EXPECT_EQ(grant.packets(), 2U);
  grant.OnCleanReport();
  EXPECT_EQ(grant.packets(), 2U);
}

}  // namespace
}  // namespace optireduce::ubt
