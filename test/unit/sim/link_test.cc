#include "transport/sim/link.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace optireduce::sim {
namespace {

LinkConfig Gigabit() {
  LinkConfig config;
  config.rate_bits_per_s = 1'000'000'000;  // 8 ns per byte
  config.queue_bytes_max = 3000;
  config.propagation = Duration{500};
  return config;
}

TEST(Link, APacketTakesItsBitsDividedByTheRate) {
  Link link(Gigabit());
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(100), 1000)), 8100);
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(100), 500)), 12'100) << "behind the first";
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(50'000), 1)), 50'008) << "idle in between";
}

TEST(Link, FractionsOfNanosecondsAddUp) {
  LinkConfig config = Gigabit();
  config.rate_bits_per_s = 3'000'000'000;  // 1 byte: 2 2/3 ns
  config.queue_bytes_max = 1 << 20;
  Link link(config);
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(0), 1)), 3);
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(0), 1)), 6);
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(0), 1)), 8) << "three bytes are exactly 8 ns";
  for (int i = 3; i < 3000; ++i) link.Transmit(InstantFromNanos(0), 1);
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(0), 3)), 8008) << "3003 bytes";
}

TEST(Link, QueueCountsWhatHasNotLeft) {
  Link link(Gigabit());
  link.Transmit(InstantFromNanos(0), 1000);
  link.Transmit(InstantFromNanos(0), 1500);
  EXPECT_EQ(link.QueuedBytes(InstantFromNanos(7999)), 2500u);
  EXPECT_EQ(link.QueuedBytes(InstantFromNanos(8000)), 1500u);
  EXPECT_EQ(link.QueuedBytes(InstantFromNanos(19'999)), 1500u);
  EXPECT_EQ(link.QueuedBytes(InstantFromNanos(20'000)), 0u);
}

TEST(Link, FitsUpToTheLimitAndTellsWhenThereIsRoom) {
  Link link(Gigabit());
  link.Transmit(InstantFromNanos(0), 1000);
  link.Transmit(InstantFromNanos(0), 1500);
  EXPECT_TRUE(link.Fits(InstantFromNanos(0), 500));
  EXPECT_FALSE(link.Fits(InstantFromNanos(0), 501));
  EXPECT_EQ(Nanos(link.RoomAt(InstantFromNanos(0), 500)), 0);
  EXPECT_EQ(Nanos(link.RoomAt(InstantFromNanos(0), 1500)), 8000);
  EXPECT_TRUE(link.Fits(InstantFromNanos(8000), 1500));
  EXPECT_EQ(Nanos(link.RoomAt(InstantFromNanos(8000), 1501)), 20'000);
}

TEST(Link, AnEmptyQueueTakesMoreThanItsLimit) {
  Link link(Gigabit());
  EXPECT_TRUE(link.Fits(InstantFromNanos(0), 5000));
  link.Transmit(InstantFromNanos(0), 5000);
  EXPECT_FALSE(link.Fits(InstantFromNanos(0), 1));
  EXPECT_EQ(Nanos(link.RoomAt(InstantFromNanos(0), 5000)), 40'000);
}

TEST(Link, JitterDelaysButNeverReorders) {
  Link link(Gigabit());
  EXPECT_EQ(Nanos(link.Arrival(InstantFromNanos(1000), Duration{300})), 1800);
  EXPECT_EQ(Nanos(link.Arrival(InstantFromNanos(1100), Duration{0})), 1800) << "not 1600";
  EXPECT_EQ(Nanos(link.Arrival(InstantFromNanos(1500), Duration{0})), 2000);
}

TEST(Link, RateZeroTakesNoTime) {
  LinkConfig config = Gigabit();
  config.rate_bits_per_s = 0;
  Link link(config);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(link.Fits(InstantFromNanos(7), 1500));
    EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(7), 1500)), 7);
  }
}

TEST(Link, ANewRateIsForWhatComesNext) {
  Link link(Gigabit());
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(0), 1000)), 8000);
  LinkConfig slow = Gigabit();
  slow.rate_bits_per_s = 100'000'000;
  link.set_config(slow);
  EXPECT_EQ(Nanos(link.Transmit(InstantFromNanos(0), 1000)), 88'000);
}

TEST(Truesize, AgreesWithWhatTheKernelHeld) {
  // Measured with single packets: a queue of 2 V bytes held 1.28 V of payload in 1472-byte packets
  // and 0.15 V in packets of 64 bytes.
  EXPECT_EQ(TruesizeBytes(1472), 2304u);
  EXPECT_EQ(TruesizeBytes(64), 832u);
  EXPECT_EQ(TruesizeBytes(192), 832u);
  EXPECT_EQ(TruesizeBytes(193), 256u + 1024u);
  EXPECT_EQ(TruesizeBytes(8972), 256u + 16'384u);
}

}  // namespace
}  // namespace optireduce::sim
