#include "transport/udp/udp_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test/loopback/udp/port_group.h"

namespace optireduce::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Path {
  const char* host;
  bool gso;
  bool gro;
};

class UdpPortTransferTest : public ::testing::TestWithParam<Path> {
 protected:
  UdpPortOptions Options() const {
    UdpPortOptions options;
    options.bind_address = GetParam().host;
    options.gso = GetParam().gso;
    options.gro = GetParam().gro;
    return options;
  }
  void SetUp() override {
    if (!HasAddress(GetParam().host)) GTEST_SKIP() << "this host has no " << GetParam().host;
  }
};

TEST_P(UdpPortTransferTest, SuperPacketsArriveCompleteInOrderAndEqual) {
  PortGroup group(3, Options());
  const std::size_t packet_bytes = group[0].limits().packet_bytes_max;
  const std::size_t full = group[0].limits().segments_max - 1;
  Packets sent;
  Packets received;
  for (unsigned i = 0; i < 5; ++i) {
    // Full packets and a short last one; the last super-packet is a single packet.
    const SuperPacket super_packet(i < 4 ? full : 0, packet_bytes, 100 + i, i);
    sent.insert(sent.end(), super_packet.packets.begin(), super_packet.packets.end());
    ASSERT_TRUE(group[0].Send(1, super_packet.segments));
    ASSERT_TRUE(group[0].Flush(kNow));
    ReceiveInto(&group[1], sent.size(), &received);
  }
  EXPECT_TRUE(Same(received, sent));
  EXPECT_EQ(Drain(&group[2]), 0u);

  std::uint64_t bytes = 0;
  for (const auto& packet : sent) bytes += packet.size();
  const PortCounters tx = group[0].counters();
  const PortCounters rx = group[1].counters();
  EXPECT_EQ(tx.packets_sent, sent.size());
  EXPECT_EQ(tx.bytes_sent, bytes);
  EXPECT_EQ(tx.send_refused, 0u);
  EXPECT_EQ(rx.packets_received, sent.size());
  EXPECT_EQ(rx.bytes_received, bytes);
  EXPECT_EQ(rx.receive_queue_drops, 0u);
  EXPECT_EQ(rx.foreign_packets, 0u);
}

TEST_P(UdpPortTransferTest, OneFlushSendsToSeveralPeers) {
  PortGroup group(3, Options());
  const SuperPacket to_one(7, 512, 0, 1);
  const SuperPacket to_two(3, 1024, 64, 2);
  ASSERT_TRUE(group[0].Send(1, to_one.segments));
  ASSERT_TRUE(group[0].Send(2, to_two.segments));
  ASSERT_TRUE(group[0].Flush(kNow));
  Packets one;
  Packets two;
  ReceiveInto(&group[1], to_one.packets.size(), &one);
  ReceiveInto(&group[2], to_two.packets.size(), &two);
  EXPECT_TRUE(Same(one, to_one.packets));
  EXPECT_TRUE(Same(two, to_two.packets));
}

INSTANTIATE_TEST_SUITE_P(Paths, UdpPortTransferTest,
                         ::testing::Values(Path{"127.0.0.1", true, true},
                                           Path{"127.0.0.1", false, true},
                                           Path{"127.0.0.1", true, false},
                                           Path{"127.0.0.1", false, false},
                                           Path{"::1", true, true}, Path{"::1", false, false}),
                         [](const auto& test) {
                           return std::string(test.param.host[0] == ':' ? "Ipv6" : "Ipv4") +
                                  (test.param.gso ? "Gso" : "Single") +
                                  (test.param.gro ? "Gro" : "Apart");
                         });

TEST(UdpPortTest, HeadersAreCopiedAtSend) {
  PortGroup group(2, {});
  const SuperPacket expected(4, 256, 0, 3);
  std::vector<std::byte> header(kHeaderBytes);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::span<const std::byte> right = expected.segments[i].header;
    std::copy(right.begin(), right.end(), header.begin());
    const TxSegment segment{header, expected.segments[i].payload};
    ASSERT_TRUE(group[0].Send(1, {&segment, 1}));
    std::fill(header.begin(), header.end(), std::byte{0xee});
  }
  ASSERT_TRUE(group[0].Flush(kNow));
  Packets received;
  ReceiveInto(&group[1], 4, &received);
  EXPECT_TRUE(Same(received, expected.packets));
}

TEST(UdpPortTest, FullQueueTakesNothing) {
  PortGroup group(2, {});
  const SuperPacket packet(1, 64, 0, 0);
  std::size_t taken = 0;
  while (taken < 1000 && group[0].Send(1, packet.segments)) ++taken;
  ASSERT_LT(taken, 1000u);
  EXPECT_FALSE(group[0].Send(1, packet.segments));
  EXPECT_TRUE(group[0].Flush(kNow));
  EXPECT_EQ(group[0].counters().packets_sent, taken);
  EXPECT_TRUE(group[0].Send(1, packet.segments));
}

TEST(UdpPortTest, LimitsFollowFamilyAndPathMtu) {
  UdpPortOptions options;
  PortGroup ipv4(1, options);
  EXPECT_EQ(ipv4[0].limits().packet_bytes_max, 1472u);
  EXPECT_EQ(ipv4[0].limits().segments_max, 44u);
  options.path_mtu = 9000;
  PortGroup jumbo(1, options);
  EXPECT_EQ(jumbo[0].limits().packet_bytes_max, 8972u);
  EXPECT_EQ(jumbo[0].limits().segments_max, 7u);
  EXPECT_EQ(PacketBytesMax(AF_INET6, 1500), 1452u);
  EXPECT_EQ(SegmentsMax(AF_INET6, 1452), 45u);
  EXPECT_EQ(PacketBytesMax(AF_INET, 65536), 65507u);
  EXPECT_EQ(SegmentsMax(AF_INET, 65507), 1u);
}

TEST(UdpPortTest, PacketsOfStrangersAreDroppedAndCounted) {
  PortGroup group(2, {});
  PortGroup strangers(2, {});
  const Endpoint target[] = {strangers[0].local_endpoint(), group[1].local_endpoint()};
  ASSERT_TRUE(strangers[0].SetPeers(target, 0).ok());
  const SuperPacket foreign(5, 200, 0, 1);
  const SuperPacket own(3, 200, 0, 2);
  ASSERT_TRUE(strangers[0].Send(1, foreign.segments));
  ASSERT_TRUE(strangers[0].Flush(kNow));
  ASSERT_TRUE(group[0].Send(1, own.segments));
  ASSERT_TRUE(group[0].Flush(kNow));
  Packets received;
  ReceiveInto(&group[1], own.packets.size(), &received);
  EXPECT_TRUE(Same(received, own.packets));
  EXPECT_EQ(group[1].counters().foreign_packets, foreign.packets.size());
  EXPECT_EQ(group[1].counters().packets_received, own.packets.size());
}

TEST(UdpPortTest, NobodyBehindAnAddressIsLossAndNoError) {
  PortGroup group(3, {});
  group.ports.pop_back();
  const SuperPacket packets(4, 100, 0, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(group[0].Send(2, packets.segments));
    ASSERT_TRUE(group[0].Send(1, packets.segments));
    EXPECT_TRUE(group[0].Flush(kNow));
  }
  Packets received;
  ReceiveInto(&group[1], 12, &received);
  EXPECT_EQ(received.size(), 12u);
}

// With SO_NO_CHECK the kernel takes single packets but no segmented ones: EINVAL.
TEST(UdpPortTest, GivesSegmentationUpWhereASendFailsWithIt) {
  PortGroup group(2, {});
  if (!group[0].gso()) GTEST_SKIP() << "this kernel has no segmentation offload";
  const int one = 1;
  ASSERT_EQ(setsockopt(group[0].socket_fd(), SOL_SOCKET, SO_NO_CHECK, &one, sizeof one), 0);
  Packets sent;
  const SuperPacket packets(20, 1000, 10, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(group[0].Send(1, packets.segments));
    sent.insert(sent.end(), packets.packets.begin(), packets.packets.end());
  }
  ASSERT_TRUE(group[0].Flush(kNow));
  Packets received;
  ReceiveInto(&group[1], sent.size(), &received);
  EXPECT_TRUE(Same(received, sent));
  EXPECT_FALSE(group[0].gso());
  EXPECT_THAT(group[0].notices(), Contains(HasSubstr("segmentation offload given up")).Times(1));
  EXPECT_THAT(group[0].Describe(), HasSubstr("gso=off"));
  EXPECT_EQ(group[0].counters().packets_sent, sent.size());
  EXPECT_EQ(group[0].counters().send_refused, 0u);
}

TEST(UdpPortTest, WaitEndsByAPacket) {
  PortGroup group(2, {});
  const SuperPacket packet(1, 64, 0, 0);
  std::thread sender([&] {
    std::this_thread::sleep_for(milliseconds(5));
    group[0].Send(1, packet.segments);
    group[0].Flush(kNow);
  });
  const auto start = steady_clock::now();
  group[1].Wait(std::chrono::seconds(20));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  sender.join();
  EXPECT_EQ(group[1].Receive(kNow).size(), 1u);
}

TEST(UdpPortTest, WaitEndsByWakeOnceEach) {
  PortGroup group(1, {});
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(5));
    group[0].Wake();
  });
  auto start = steady_clock::now();
  group[0].Wait(std::chrono::seconds(20));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  waker.join();
  // A wake-up before the wait ends it too; several are as good as one.
  group[0].Wake();
  group[0].Wake();
  start = steady_clock::now();
  group[0].Wait(std::chrono::seconds(20));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  start = steady_clock::now();
  group[0].Wait(milliseconds(20));
  EXPECT_GE(steady_clock::now() - start, milliseconds(20));
}

TEST(UdpPortTest, WaitEndsByTime) {
  PortGroup group(1, {});
  const auto start = steady_clock::now();
  group[0].Wait(Duration(0));
  group[0].Wait(Duration(-5));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(group[0].counters().waits, 0u);
  group[0].Wait(milliseconds(10));
  EXPECT_GE(steady_clock::now() - start, milliseconds(10));
  EXPECT_EQ(group[0].counters().waits, 1u);
  group[0].Wake();
  group[0].Wait(Duration::max());  // no overflow on the way to the kernel
}

TEST(UdpPortTest, RefusesWhatCannotWork) {
  UdpPortOptions options;
  options.bind_address = "no.such.host";
  EXPECT_EQ(UdpPort::Bind(options).status().code(), Code::kInvalidArgument);
  options.bind_address = "192.0.2.1";  // of a documentation network: no host has it
  const Status unavailable = UdpPort::Bind(options).status();
  EXPECT_EQ(unavailable.code(), Code::kUnavailable);
  EXPECT_THAT(unavailable.text(), HasSubstr("192.0.2.1"));
  options.bind_address = "fe80::1";
  EXPECT_THAT(UdpPort::Bind(options).status().text(), HasSubstr("needs its interface"));
  options.bind_address = "127.0.0.1";
  options.path_mtu = 100;
  EXPECT_THAT(UdpPort::Bind(options).status().text(), HasSubstr("path MTU 100"));

  PortGroup group(2, {});
  options.path_mtu = 1500;
  options.bind_port = group[0].local_endpoint().port();
  EXPECT_EQ(UdpPort::Bind(options).status().code(), Code::kUnavailable);
}

TEST(UdpPortTest, RefusesPeersThatCannotBe) {
  PortGroup group(2, {});
  const auto peers = [&](const char* other) {
    const Endpoint by_rank[] = {group[0].local_endpoint(), *Endpoint::Parse(other),
                                group[1].local_endpoint()};
    return group[0].SetPeers(by_rank, 0);
  };
  EXPECT_TRUE(peers("127.0.0.1:9").ok());
  EXPECT_THAT(peers("[::1]:9").text(), HasSubstr("rank 1, [::1]:9: not of the family"));
  EXPECT_THAT(peers("127.0.0.1:0").text(), HasSubstr("rank 1"));
  EXPECT_THAT(peers("0.0.0.0:9").text(), HasSubstr("rank 1"));
  EXPECT_THAT(peers(group[0].local_endpoint().ToString().c_str()).text(),
              HasSubstr("another rank"));
  EXPECT_THAT(peers(group[1].local_endpoint().ToString().c_str()).text(),
              HasSubstr("rank 2"));
}

TEST(UdpPortTest, ClippedQueuesNameTheSysctl) {
  UdpPortOptions options;
  options.exceed_buffer_limits = false;
  options.socket_buffer_bytes = std::size_t{1} << 30;
  PortGroup group(1, options);
  EXPECT_THAT(group[0].notices(),
              ElementsAre(HasSubstr("sysctl -w net.core.rmem_max=1073741824"),
                          HasSubstr("sysctl -w net.core.wmem_max=1073741824")));
}

TEST(UdpPortTest, DescribesItself) {
  UdpPortOptions options;
  options.gso = false;
  PortGroup group(1, options);
  EXPECT_THAT(group[0].Describe(),
              HasSubstr("udp " + group[0].local_endpoint().ToString() +
                        " path MTU 1500 gso=off gro=o"));
}

}  // namespace
}  // namespace optireduce::test
