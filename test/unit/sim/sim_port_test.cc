#include "transport/sim/sim_port.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "test/unit/sim/bench_net.h"

namespace optireduce::sim {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string Text(std::span<const std::byte> bytes) {
  std::string text(bytes.size(), '\0');
  std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

TEST(SimPort, LimitsAreThoseOfTheNetwork) {
  NetworkConfig config = PlainConfig();
  config.packet_bytes_max = 1472;
  config.segments_max = 44;
  config.node.receive_queue_bytes_max = 2 * 208 * 1024;
  BenchNet net(config);
  EXPECT_EQ(net.ports[0]->limits().packet_bytes_max, 1472u);
  EXPECT_EQ(net.ports[0]->limits().segments_max, 44u);
  EXPECT_EQ(net.ports[0]->limits().receive_bytes_held, (2u * 208 * 1024 / 2304) * 1472);
}

TEST(SimPort, ReceiveBytesHeldIsWhatTheQueueReallyHolds) {
  NetworkConfig config = PlainConfig();
  config.node.receive_queue_bytes_max = 100'000;
  BenchNet net(config);
  const std::size_t held = net.ports[1]->limits().receive_bytes_held;
  for (int i = 0; i < 60; ++i) net.Send(0, 1, 1472);
  net.world.RunUntilIdle(1000);
  EXPECT_EQ(net.network.counters({0, 1}).delivered * 1472, held);
}

TEST(SimPort, SegmentsTravelAsPacketsOfHeaderAndPayload) {
  BenchNet net(PlainConfig());
  const std::vector<TxSegment> segments = {
      {Bytes("one:"), Bytes("alpha")}, {Bytes("two:"), Bytes("bravo")}, {Bytes("end"), {}}};
  EXPECT_TRUE(net.ports[0]->Send(1, segments));
  EXPECT_TRUE(net.ports[0]->Flush(net.world.now()));
  net.world.RunUntilIdle(100);
  const auto burst = net.ports[1]->Receive(net.world.now());
  ASSERT_EQ(burst.size(), 3u);
  EXPECT_EQ(Text(burst[0].bytes), "one:alpha");
  EXPECT_EQ(Text(burst[1].bytes), "two:bravo");
  EXPECT_EQ(Text(burst[2].bytes), "end");
  EXPECT_TRUE(net.ports[1]->Receive(net.world.now()).empty());

  const PortCounters sent = net.ports[0]->counters();
  EXPECT_EQ(sent.packets_sent, 3u);
  EXPECT_EQ(sent.bytes_sent, 21u);
  EXPECT_EQ(sent.send_calls, 1u);
  const PortCounters received = net.ports[1]->counters();
  EXPECT_EQ(received.packets_received, 3u);
  EXPECT_EQ(received.bytes_received, 21u);
  EXPECT_EQ(received.receive_calls, 2u);
}

TEST(SimPort, HeadersAreCopiedBySendAndPayloadsReadByFlush) {
  BenchNet net(PlainConfig());
  std::string header = "header ";
  std::string payload = "old";
  const TxSegment segment{Bytes(header), Bytes(payload)};
  EXPECT_TRUE(net.ports[0]->Send(1, std::span(&segment, 1)));
  EXPECT_TRUE(net.happenings.empty()) << "nothing leaves before Flush";
  header = "erased!";
  payload = "new";
  EXPECT_TRUE(net.ports[0]->Flush(net.world.now()));
  payload = "xxx";
  net.world.RunUntilIdle(100);
  const auto burst = net.ports[1]->Receive(net.world.now());
  ASSERT_EQ(burst.size(), 1u);
  EXPECT_EQ(Text(burst[0].bytes), "header new");
}

TEST(SimPort, ABurstIsOverwrittenByTheNext) {
  BenchNet net(PlainConfig());
  const TxSegment segment{Bytes("kept too long"), {}};
  net.ports[0]->Send(1, std::span(&segment, 1));
  net.ports[0]->Flush(net.world.now());
  net.world.RunUntilIdle(100);
  const auto burst = net.ports[1]->Receive(net.world.now());
  ASSERT_EQ(burst.size(), 1u);
  const std::span<const std::byte> bytes = burst[0].bytes;
  EXPECT_EQ(Text(bytes), "kept too long");
  net.ports[1]->Receive(net.world.now());
  EXPECT_NE(Text(bytes), "kept too long");
}

TEST(SimPort, ABusyUplinkKeepsTheRestQueuedAndWakesTheNode) {
  NetworkConfig config = PlainConfig();
  config.node.uplink.queue_bytes_max = 3000;  // two packets of 1434
  BenchNet net(config);
  std::vector<std::int64_t> wakes;
  net.network.SetWake(0, [&] {
    wakes.push_back(Nanos(net.world.now()));
    net.ports[0]->Flush(net.world.now());
  });
  const std::vector<std::byte> payload(1434);
  const TxSegment segment{{}, payload};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(net.ports[0]->Send(1, std::span(&segment, 1)));
  EXPECT_FALSE(net.ports[0]->Flush(net.world.now()));
  EXPECT_FALSE(net.ports[0]->Flush(net.world.now())) << "asking again wakes no second time";
  EXPECT_EQ(net.network.totals().sent, 2u);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(wakes, (std::vector<std::int64_t>{12'000, 24'000}));
  EXPECT_EQ(net.network.totals().delivered, 4u);
  EXPECT_EQ(net.ports[0]->counters().send_refused, 0u);
}

TEST(SimPort, ASuperPacketAboveTheUplinkQueuePassesWhenItIsEmpty) {
  NetworkConfig config = PlainConfig();
  config.node.uplink.queue_bytes_max = 3000;
  BenchNet net(config);
  const std::vector<std::byte> payload(1434);
  const std::vector<TxSegment> segments(44, TxSegment{{}, payload});
  EXPECT_TRUE(net.ports[0]->Send(1, segments));
  EXPECT_TRUE(net.ports[0]->Send(1, segments));
  EXPECT_FALSE(net.ports[0]->Flush(net.world.now()));
  EXPECT_EQ(net.network.totals().sent, 44u);
}

TEST(SimPort, SendSaysWhenItsQueueIsFull) {
  NetworkConfig config = PlainConfig();
  config.node.uplink.queue_bytes_max = 1;
  BenchNet net(config);
  const TxSegment segment{Bytes("x"), {}};
  int taken = 0;
  while (net.ports[0]->Send(1, std::span(&segment, 1))) ++taken;
  EXPECT_GT(taken, 1);
  EXPECT_FALSE(net.ports[0]->Flush(net.world.now())) << "one packet left";
  EXPECT_TRUE(net.ports[0]->Send(1, std::span(&segment, 1)));
  EXPECT_FALSE(net.ports[0]->Send(1, std::span(&segment, 1)));
}

TEST(SimPort, AnUplinkThatDropsCountsRefusedPackets) {
  NetworkConfig config = PlainConfig();
  config.node.uplink.queue_bytes_max = 3000;
  config.node.uplink_full = UplinkFull::kDrop;
  BenchNet net(config);
  for (int i = 0; i < 5; ++i) net.Send(0, 1, 1434);
  EXPECT_EQ(net.ports[0]->counters().packets_sent, 5u);
  EXPECT_EQ(net.ports[0]->counters().send_refused, 3u);
  EXPECT_EQ(net.network.counters({0, 1}).dropped_for(DropReason::kUplinkQueue), 3u);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(net.Read(1), 2u);
  EXPECT_EQ(net.network.CheckConservation(), "");
}

TEST(SimPort, ANewPortOfANodeCountsItsOwnDropsOnly) {
  NetworkConfig config = PlainConfig();
  config.node.receive_queue_bytes_max = TruesizeBytes(64);
  BenchNet net(config);
  net.Send(0, 1, 64);
  net.Send(0, 1, 64);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(net.ports[1]->counters().receive_queue_drops, 1u);
  SimPort second(&net.network, 1);
  EXPECT_EQ(second.counters().receive_queue_drops, 0u);
}

TEST(SimPort, WaitReturnsAndWakeCallsTheNode) {
  BenchNet net(PlainConfig());
  int wakes = 0;
  net.network.SetWake(0, [&] { ++wakes; });
  net.ports[0]->Wait(Duration{1'000'000'000});
  EXPECT_EQ(Nanos(net.world.now()), 0);
  net.ports[0]->Wake();
  EXPECT_EQ(wakes, 1);
}

TEST(SimPortDeathTest, RefusesWhatNoNetworkWouldTake) {
  BenchNet net(PlainConfig());
  const std::vector<std::byte> bytes(1473);
  const auto send = [&](std::uint32_t peer, std::vector<TxSegment> segments) {
    net.ports[0]->Send(peer, segments);
  };
  const std::span<const std::byte> all(bytes);
  EXPECT_DEATH(send(1, {{all, {}}}), "packet_bytes_max");
  EXPECT_DEATH(send(2, {{all.first(10), {}}}), "peer");
  EXPECT_DEATH(send(0, {{all.first(10), {}}}), "peer");
  EXPECT_DEATH(send(1, {}), "segments");
  EXPECT_DEATH(send(1, {{{}, {}}}), "segment_bytes");
  EXPECT_DEATH(send(1, std::vector<TxSegment>(45, TxSegment{all.first(10), {}})), "segments_max");
  EXPECT_DEATH(send(1, {{all.first(10), {}}, {all.first(9), {}}, {all.first(10), {}}}), "segment");
  EXPECT_DEATH(send(1, {{all.first(10), {}}, {all.first(11), {}}}), "segment");
}

}  // namespace
}  // namespace optireduce::sim
