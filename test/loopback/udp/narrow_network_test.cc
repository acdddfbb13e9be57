// Ports in a network namespace of their own, whose loopback is narrower or slower than usual.
// Skipped where the process may not make one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "test/loopback/udp/port_group.h"
#include "test/support/net_namespace.h"

namespace optireduce::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

using ::optireduce::testing::InNetNamespace;

TEST(NarrowNetworkTest, PacketsAboveThePathMtuAreRefusedAndNotFragmented) {
  const bool entered = InNetNamespace("ip link set lo mtu 1400", [] {
    PortGroup group(2, {});  // believes in 1500
    const bool gso = group[0].gso();
    const SuperPacket large(10, 1472, 100, 1);
    const SuperPacket small(10, 1372, 100, 2);
    ASSERT_TRUE(group[0].Send(1, large.segments));
    ASSERT_TRUE(group[0].Send(1, small.segments));
    ASSERT_TRUE(group[0].Flush(kNow));
    Packets received;
    ReceiveInto(&group[1], 12, &received);
    Packets expected = small.packets;
    expected.insert(expected.begin(), large.packets.back());  // the short one passes
    EXPECT_TRUE(Same(received, expected));
    EXPECT_EQ(group[0].counters().send_refused, 10u);
    EXPECT_EQ(group[0].counters().packets_sent, 12u);
    EXPECT_EQ(group[0].gso(), gso);  // it was not the offload's fault
    EXPECT_THAT(group[0].notices(), Contains(HasSubstr("a packet of 1472 bytes to 127.0.0.1")));
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace";
}

TEST(NarrowNetworkTest, NoRouteIsLoss) {
  const bool entered = InNetNamespace("ip link set lo mtu 1500", [] {
    PortGroup group(2, {});
    const Endpoint peers[] = {group[0].local_endpoint(), *Endpoint::Parse("192.0.2.1:9"),
                              group[1].local_endpoint()};
    ASSERT_TRUE(group[0].SetPeers(peers, 0).ok());
    const SuperPacket packets(3, 100, 0, 1);
    ASSERT_TRUE(group[0].Send(1, packets.segments));
    ASSERT_TRUE(group[0].Send(2, packets.segments));
    ASSERT_TRUE(group[0].Flush(kNow));
    EXPECT_EQ(group[0].counters().send_refused, 3u);
    EXPECT_EQ(group[0].counters().packets_sent, 3u);
    EXPECT_THAT(group[0].notices(), Contains(HasSubstr("192.0.2.1:9 was refused")));
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace";
}

// The uplink's own queue holds the packets, so the socket's send queue fills: EAGAIN.
TEST(NarrowNetworkTest, ABusyNetworkKeepsTheRestQueued) {
  for (const bool gso : {true, false}) {
    bool shaped = false;
    const bool entered = InNetNamespace("ip link set lo mtu 1500", [&] {
      shaped = std::system("tc qdisc add dev lo root tbf rate 100mbit burst 70kb limit 4mb "
                           "2>/dev/null") == 0;
      if (!shaped) return;
      UdpPortOptions options;
      options.gso = gso;
      PortGroup group(2, options);
      const int send_bytes = 128 << 10;
      ASSERT_EQ(setsockopt(group[0].socket_fd(), SOL_SOCKET, SO_SNDBUF, &send_bytes,
                           sizeof send_bytes),
                0);
      const SuperPacket packets(44, 1472, 0, 1);
      Packets sent;
      Packets received;
      int busy = 0;
      for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(group[0].Send(1, packets.segments));
        sent.insert(sent.end(), packets.packets.begin(), packets.packets.end());
      }
      while (!group[0].Flush(kNow)) {
        ++busy;
        ASSERT_LT(busy, 10000);
        group[0].Wait(std::chrono::seconds(20));  // ends when the network can send again
        Drain(&group[1], &received);
      }
      ReceiveInto(&group[1], sent.size(), &received);
      EXPECT_GT(busy, 0);
      EXPECT_TRUE(Same(received, sent));
      EXPECT_EQ(group[0].counters().packets_sent, sent.size());
      EXPECT_EQ(group[0].counters().send_refused, 0u);
    });
    if (!entered || !shaped) GTEST_SKIP() << "may not make a network namespace with a slow link";
  }
}

}  // namespace
}  // namespace optireduce::test
