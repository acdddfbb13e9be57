#include "transport/fault/fault_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace optireduce {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kPacketBytes = 64;

// Delivers numbered packets in bursts; its memory is overwritten at each Receive(), as a real
// port's is.
class FakePort : public PacketPort {
 public:
  FakePort() { limits_.packet_bytes_max = kPacketBytes; }

  const PortLimits& limits() const override { return limits_; }
  PortCounters counters() const override { return counters_; }
  bool Send(std::uint32_t peer, std::span<const TxSegment> segments) override {
    sent.emplace_back(peer, segments.size());
    return true;
  }
  bool Flush(Instant) override { return true; }
  std::span<const RxPacket> Receive(Instant) override {
    burst_.clear();
    const std::size_t count = std::min(waiting.size(), burst_max);
    memory_.assign(count * kPacketBytes, std::byte{0xdd});
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<std::byte> bytes(&memory_[i * kPacketBytes], kPacketBytes);
      std::fill(bytes.begin(), bytes.end(), std::byte{0x55});
      std::memcpy(bytes.data(), &waiting.front(), sizeof waiting.front());
      waiting.pop_front();
      burst_.push_back({bytes});
    }
    counters_.packets_received += count;
    return burst_;
  }
  void Wait(Duration at_most) override { last_wait = at_most; }
  void Wake() override { ++wakes; }

  std::deque<std::uint32_t> waiting;
  std::size_t burst_max = 20;
  std::vector<std::pair<std::uint32_t, std::size_t>> sent;
  Duration last_wait{};
  int wakes = 0;

 private:
  PortLimits limits_;
  PortCounters counters_;
  std::vector<std::byte> memory_;
  std::vector<RxPacket> burst_;
};

struct Delivered {
  std::vector<std::uint32_t> numbers;  // in order; a corrupted packet's may be any
  std::size_t damaged_bits = 0;
};

class FaultPortTest : public ::testing::Test {
 protected:
  void Make(const FaultPlan& plan) {
    auto inner = std::make_unique<FakePort>();
    inner_ = inner.get();
    port_ = std::make_unique<FaultPort>(std::move(inner), plan);
    next_ = 0;
    delivered_ = {};
  }

  void Arrive(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) inner_->waiting.push_back(next_++);
  }

  std::size_t ReceiveOnce(Instant now) {
    const std::span<const RxPacket> burst = port_->Receive(now);
    for (const RxPacket& packet : burst) {
      EXPECT_EQ(packet.bytes.size(), kPacketBytes);
      std::uint32_t number = 0;
      std::memcpy(&number, packet.bytes.data(), sizeof number);
      delivered_.numbers.push_back(number);
      for (std::size_t i = sizeof number; i < kPacketBytes; ++i) {
        const auto damage = static_cast<unsigned>(packet.bytes[i] ^ std::byte{0x55});
        delivered_.damaged_bits += static_cast<std::size_t>(std::popcount(damage));
      }
    }
    ExpectConserved();
    return burst.size();
  }

  // `count` packets in bursts 10 us apart, and then time until nothing is held any more.
  void Run(std::size_t count) {
    Arrive(count);
    Instant now = InstantFromNanos(1'000'000);
    while (!inner_->waiting.empty() || port_->held() > 0) {
      ReceiveOnce(now);
      now += microseconds(10);
    }
    ReceiveOnce(now);
  }

  void ExpectConserved() {
    const PortCounters counters = port_->counters();
    EXPECT_EQ(counters.packets_received + counters.fault_duplicated,
              delivered_.numbers.size() + counters.fault_dropped + port_->held());
  }

  std::set<std::uint32_t> Missing() const {
    std::set<std::uint32_t> missing;
    for (std::uint32_t i = 0; i < next_; ++i) missing.insert(missing.end(), i);
    for (const std::uint32_t number : delivered_.numbers) missing.erase(number);
    return missing;
  }

  FakePort* inner_ = nullptr;
  std::unique_ptr<FaultPort> port_;
  std::uint32_t next_ = 0;
  Delivered delivered_;
};

// Five standard deviations around the mean of so many tries.
void ExpectRate(std::uint64_t count, std::uint64_t tries, double chance) {
  const double mean = static_cast<double>(tries) * chance;
  const double bound = 5 * std::sqrt(mean * (1 - chance)) + 1;
  EXPECT_NEAR(static_cast<double>(count), mean, bound);
}

TEST_F(FaultPortTest, WithoutFaultsTheInnerBurstPassesUncopied) {
  Make({});
  EXPECT_FALSE(FaultPlan{}.active());
  Arrive(30);
  EXPECT_EQ(ReceiveOnce({}), 20u);
  EXPECT_EQ(ReceiveOnce({}), 10u);
  EXPECT_TRUE(Missing().empty());
  EXPECT_TRUE(std::is_sorted(delivered_.numbers.begin(), delivered_.numbers.end()));
  port_->Wait(milliseconds(7));
  EXPECT_EQ(inner_->last_wait, milliseconds(7));
  port_->Wake();
  EXPECT_EQ(inner_->wakes, 1);
  const TxSegment segments[2] = {};
  EXPECT_TRUE(port_->Send(5, segments));
  EXPECT_EQ(inner_->sent.back(), std::make_pair(5u, std::size_t{2}));
}

TEST_F(FaultPortTest, LossIsCountedExactly) {
  FaultPlan plan;
  plan.loss = 0.3;
  Make(plan);
  Run(20000);
  EXPECT_EQ(Missing().size(), port_->counters().fault_dropped);
  EXPECT_TRUE(std::is_sorted(delivered_.numbers.begin(), delivered_.numbers.end()));
  ExpectRate(port_->counters().fault_dropped, 20000, 0.3);
}

TEST_F(FaultPortTest, CertainLossLosesEverythingAndEnds) {
  FaultPlan plan;
  plan.loss = 1;
  Make(plan);
  Run(1000);
  EXPECT_TRUE(delivered_.numbers.empty());
  EXPECT_EQ(port_->counters().fault_dropped, 1000u);
}

TEST_F(FaultPortTest, BurstsTakeSeveralInARow) {
  FaultPlan plan;
  plan.burst = 0.01;
  plan.burst_packets = 10;
  Make(plan);
  Run(20000);
  const std::set<std::uint32_t> missing = Missing();
  EXPECT_EQ(missing.size(), port_->counters().fault_dropped);
  // One in eleven, in rows of ten: 1818 and 182, give or take.
  EXPECT_NEAR(static_cast<double>(missing.size()), 1818, 700);
  std::size_t rows = 0;
  for (const std::uint32_t number : missing) rows += missing.contains(number + 1) ? 0 : 1;
  EXPECT_GT(rows, 90u);
  EXPECT_LT(rows * 5, missing.size());
}

TEST_F(FaultPortTest, AClogHoldsWhatComesUntilItsEnd) {
  FaultPlan plan;
  plan.clog = milliseconds(3);
  plan.clog_every = milliseconds(10);
  Make(plan);
  Arrive(15);
  EXPECT_EQ(ReceiveOnce(InstantFromNanos(20'000'000)), 0u);  // a clog begins
  EXPECT_EQ(port_->held(), 15u);
  port_->Wait(milliseconds(50));
  EXPECT_EQ(inner_->last_wait, milliseconds(3));
  Arrive(5);
  EXPECT_EQ(ReceiveOnce(InstantFromNanos(22'999'999)), 0u);
  EXPECT_EQ(ReceiveOnce(InstantFromNanos(23'000'000)), 20u);
  EXPECT_TRUE(std::is_sorted(delivered_.numbers.begin(), delivered_.numbers.end()));
  Arrive(5);
  EXPECT_EQ(ReceiveOnce(InstantFromNanos(24'000'000)), 5u);
  EXPECT_EQ(port_->counters().fault_delayed, 20u);
}

TEST_F(FaultPortTest, RefusedSendsDoNotReachTheInnerPort) {
  FaultPlan plan;
  plan.send_refused = 0.25;
  Make(plan);
  const TxSegment segments[3] = {};
  for (int i = 0; i < 4000; ++i) EXPECT_TRUE(port_->Send(1, segments));
  const std::uint64_t refused = port_->counters().send_refused;
  ExpectRate(refused / 3, 4000, 0.25);
  EXPECT_EQ(refused, 3 * (4000 - inner_->sent.size()));
}

TEST_F(FaultPortTest, DuplicatesComeTwice) {
  FaultPlan plan;
  plan.duplicate = 0.05;
  Make(plan);
  Run(20000);
  std::map<std::uint32_t, int> times;
  for (const std::uint32_t number : delivered_.numbers) ++times[number];
  const auto twice = std::count_if(times.begin(), times.end(),
                                   [](const auto& entry) { return entry.second == 2; });
  EXPECT_EQ(times.size(), 20000u);
  EXPECT_EQ(static_cast<std::uint64_t>(twice), port_->counters().fault_duplicated);
  ExpectRate(port_->counters().fault_duplicated, 20000, 0.05);
}

TEST_F(FaultPortTest, CorruptionFlipsOneBitOfACopy) {
  FaultPlan plan;
  plan.corrupt = 0.1;
  Make(plan);
  Run(20000);
  std::size_t number_bits = 0;
  ASSERT_EQ(delivered_.numbers.size(), 20000u);
  for (std::uint32_t i = 0; i < 20000; ++i) {
    number_bits += static_cast<std::size_t>(std::popcount(delivered_.numbers[i] ^ i));
  }
  EXPECT_EQ(delivered_.damaged_bits + number_bits, port_->counters().fault_corrupted);
  EXPECT_GT(number_bits, 0u);
  ExpectRate(port_->counters().fault_corrupted, 20000, 0.1);
}

TEST_F(FaultPortTest, ReorderedPacketsComeAfterAFewLaterOnes) {
  FaultPlan plan;
  plan.reorder = 0.1;
  Make(plan);
  Run(20000);
  ASSERT_TRUE(Missing().empty());
  ASSERT_EQ(delivered_.numbers.size(), 20000u);
  std::size_t behind = 0;
  std::uint32_t highest = 0;
  for (const std::uint32_t number : delivered_.numbers) {
    if (number < highest) ++behind;
    EXPECT_LE(highest, number + 8);
    highest = std::max(highest, number);
  }
  // A held packet is overtaken unless those behind it are held for as long.
  EXPECT_LE(behind, port_->counters().fault_reordered);
  EXPECT_GT(behind, port_->counters().fault_reordered * 8 / 10);
  ExpectRate(port_->counters().fault_reordered, 20000, 0.1);
}

TEST_F(FaultPortTest, AReorderedPacketWithNothingBehindItComesAfterTwoMilliseconds) {
  FaultPlan plan;
  plan.reorder = 1;
  Make(plan);
  Arrive(1);
  const Instant start = InstantFromNanos(5'000'000);
  EXPECT_EQ(ReceiveOnce(start), 0u);
  EXPECT_EQ(port_->held(), 1u);
  port_->Wait(milliseconds(50));
  EXPECT_EQ(inner_->last_wait, milliseconds(2));
  EXPECT_EQ(ReceiveOnce(start + milliseconds(2) - Duration(1)), 0u);
  EXPECT_EQ(ReceiveOnce(start + milliseconds(2)), 1u);
  EXPECT_EQ(port_->held(), 0u);
}

TEST_F(FaultPortTest, DelayedPacketsComeWhenTheyAreDueAndWaitKnows) {
  FaultPlan plan;
  plan.delay = microseconds(500);
  Make(plan);
  Arrive(300);
  const Instant start = InstantFromNanos(1'000'000);
  EXPECT_EQ(ReceiveOnce(start), 0u);
  EXPECT_EQ(port_->held(), 300u);  // empty bursts are asked past
  EXPECT_EQ(port_->counters().fault_delayed, 300u);
  for (Instant now = start; port_->held() > 0;) {
    port_->Wait(milliseconds(50));
    ASSERT_LE(inner_->last_wait, microseconds(500));
    now += inner_->last_wait;
    EXPECT_GE(ReceiveOnce(now), 1u);  // exactly due, none late
    ASSERT_LE(now - start, microseconds(500));
  }
  EXPECT_TRUE(Missing().empty());
  EXPECT_FALSE(std::is_sorted(delivered_.numbers.begin(), delivered_.numbers.end()));
  port_->Wait(milliseconds(50));
  EXPECT_EQ(inner_->last_wait, milliseconds(50));
}

TEST_F(FaultPortTest, WhatFindsNoRoomGoesAtOnce) {
  FaultPlan plan;
  plan.delay = std::chrono::seconds(1);
  Make(plan);
  Arrive(6000);
  while (!inner_->waiting.empty()) ReceiveOnce(InstantFromNanos(1));
  EXPECT_EQ(port_->held(), port_->counters().fault_delayed);
  EXPECT_LT(port_->held(), 6000u);
  EXPECT_EQ(delivered_.numbers.size(), 6000u - port_->held());
  Run(0);
  ReceiveOnce(InstantFromNanos(2'000'000'000));
  EXPECT_TRUE(Missing().empty());
}

FaultPlan AllFaults() {
  FaultPlan plan;
  plan.loss = 0.2;
  plan.duplicate = 0.1;
  plan.reorder = 0.2;
  plan.corrupt = 0.05;
  plan.seed = 42;
  return plan;
}

TEST_F(FaultPortTest, EqualSeedsDecideEquallyHoweverThePacketsAreBatched) {
  Make(AllFaults());
  Run(5000);
  const std::vector<std::uint32_t> first = delivered_.numbers;
  Make(AllFaults());
  inner_->burst_max = 3;
  Run(5000);
  EXPECT_EQ(delivered_.numbers, first);
  FaultPlan other = AllFaults();
  other.node = 1;
  Make(other);
  Run(5000);
  EXPECT_NE(delivered_.numbers, first);
  other = AllFaults();
  other.seed = 43;
  Make(other);
  Run(5000);
  EXPECT_NE(delivered_.numbers, first);
}

TEST_F(FaultPortTest, WhichPacketsAreLostDoesNotDependOnTheOtherFaults) {
  FaultPlan plan = AllFaults();
  plan.corrupt = 0;  // so that the numbers are right
  Make(plan);
  Run(5000);
  const std::set<std::uint32_t> lost = Missing();
  EXPECT_EQ(lost.size(), port_->counters().fault_dropped);
  plan.duplicate = 0;
  plan.reorder = 0;
  plan.delay = microseconds(100);
  Make(plan);
  Run(5000);
  EXPECT_EQ(Missing(), lost);
}

TEST_F(FaultPortTest, AllFaultsAtOnceAreConserved) {
  FaultPlan plan = AllFaults();
  plan.delay = microseconds(300);
  for (plan.seed = 0; plan.seed < 20; ++plan.seed) {
    Make(plan);
    Run(2000);  // ReceiveOnce() checks after every burst
    const PortCounters counters = port_->counters();
    EXPECT_EQ(counters.packets_received, 2000u);
    EXPECT_EQ(delivered_.numbers.size(),
              2000u + counters.fault_duplicated - counters.fault_dropped);
    EXPECT_EQ(counters.fault_reordered, 0u);  // delay has taken its place
  }
}

}  // namespace
}  // namespace optireduce
