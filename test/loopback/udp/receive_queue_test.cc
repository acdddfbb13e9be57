// How much a port's receive queue holds, and what is counted when it is full.
#include "transport/udp/receive_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "test/loopback/udp/port_group.h"

namespace optireduce::test {
namespace {

struct Sizing {
  const char* host;
  std::size_t path_mtu;
  std::size_t socket_buffer_bytes;  // 0: the kernel's default
  bool gro;
};

class ReceiveBytesHeldTest : public ::testing::TestWithParam<Sizing> {
 protected:
  UdpPortOptions Options() const {
    UdpPortOptions options;
    options.bind_address = GetParam().host;
    options.path_mtu = GetParam().path_mtu;
    options.socket_buffer_bytes = GetParam().socket_buffer_bytes;
    options.gro = GetParam().gro;
    options.gso = false;  // packets one by one: what a path without offload delivers
    return options;
  }
  void SetUp() override {
    if (!HasAddress(GetParam().host)) GTEST_SKIP() << "this host has no " << GetParam().host;
  }

  // Sends one full packet; false when the receiver's queue had no room for it.
  static bool SendOne(PortGroup* group, const SuperPacket& packet) {
    const std::uint64_t before = (*group)[1].counters().receive_queue_drops;
    EXPECT_TRUE((*group)[0].Send(1, packet.segments));
    EXPECT_TRUE((*group)[0].Flush(kNow));
    return (*group)[1].counters().receive_queue_drops == before;
  }
};

TEST_P(ReceiveBytesHeldTest, IsHeldByAnEmptyQueueAndIsNotFarBelowTheTruth) {
  PortGroup group(2, Options());
  const PortLimits& limits = group[1].limits();
  const SuperPacket packet(1, limits.packet_bytes_max, 0, 1);
  std::size_t held = 0;
  while (SendOne(&group, packet)) held += limits.packet_bytes_max;
  EXPECT_GE(held, limits.receive_bytes_held);
  EXPECT_LE(held, limits.receive_bytes_held * 2);
  EXPECT_EQ(Drain(&group[1]) * limits.packet_bytes_max, held);
}

// The kernel gives the memory of read packets back late; a refill must fit all the same.
TEST_P(ReceiveBytesHeldTest, IsHeldWhileTheReaderIsInTheMiddle) {
  PortGroup group(2, Options());
  const PortLimits& limits = group[1].limits();
  const SuperPacket packet(1, limits.packet_bytes_max, 0, 1);
  const std::size_t capacity = limits.receive_bytes_held / limits.packet_bytes_max;
  std::size_t waiting = 0;
  for (int round = 0; round < 20; ++round) {
    for (; waiting < capacity; ++waiting) ASSERT_TRUE(SendOne(&group, packet)) << round;
    waiting -= group[1].Receive(kNow).size();
    ASSERT_LT(waiting, capacity);
  }
  EXPECT_EQ(Drain(&group[1]), waiting);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ReceiveBytesHeldTest,
    ::testing::Values(Sizing{"127.0.0.1", 1500, 0, true}, Sizing{"127.0.0.1", 1500, 1 << 20, true},
                      Sizing{"127.0.0.1", 1500, 1 << 20, false},
                      Sizing{"127.0.0.1", 9000, 1 << 20, true}, Sizing{"::1", 1500, 1 << 20, true}),
    [](const auto& test) {
      return std::string(test.param.host[0] == ':' ? "Ipv6" : "Ipv4") + "Mtu" +
             std::to_string(test.param.path_mtu) + (test.param.gro ? "Gro" : "Apart") +
             std::to_string(test.param.socket_buffer_bytes >> 10) + "KiB";
    });

TEST(ReceiveQueueTest, OverflowIsCountedApartAndNothingElseIsLost) {
  for (const bool gro : {true, false}) {
    UdpPortOptions options;
    options.socket_buffer_bytes = 64 << 10;
    options.gso = false;
    options.gro = gro;
    PortGroup group(3, options);
    const SuperPacket packets(40, 1472, 0, 1);
    for (int i = 0; i < 20; ++i) {
      for (const std::size_t sender : {0u, 2u}) {
        ASSERT_TRUE(group[sender].Send(1, packets.segments));
        ASSERT_TRUE(group[sender].Flush(kNow));
      }
      if (i % 4 == 0) Drain(&group[1]);
    }
    Drain(&group[1]);
    const PortCounters rx = group[1].counters();
    EXPECT_GT(rx.receive_queue_drops, 0u);
    EXPECT_EQ(rx.packets_received + rx.receive_queue_drops,
              group[0].counters().packets_sent + group[2].counters().packets_sent);
    EXPECT_EQ(rx.foreign_packets, 0u);
  }
}

TEST(ReceiveQueueTest, SuperPacketsAreDroppedWhole) {
  UdpPortOptions options;
  options.socket_buffer_bytes = 128 << 10;
  PortGroup group(2, options);
  if (!group[0].gso() || !group[1].gro()) GTEST_SKIP() << "this kernel has no UDP offload";
  const SuperPacket packets(44, 1472, 0, 1);
  constexpr std::size_t kSent = 30;
  for (std::size_t i = 0; i < kSent; ++i) {
    ASSERT_TRUE(group[0].Send(1, packets.segments));
    ASSERT_TRUE(group[0].Flush(kNow));
  }
  const std::size_t received = Drain(&group[1]);
  EXPECT_EQ(received % 44, 0u);
  EXPECT_GT(group[1].counters().receive_queue_drops, 0u);
  EXPECT_EQ(received / 44 + group[1].counters().receive_queue_drops, kSent);
}

}  // namespace
}  // namespace optireduce::test
