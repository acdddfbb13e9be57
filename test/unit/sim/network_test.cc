#include "transport/sim/network.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "test/unit/sim/bench_net.h"

namespace optireduce::sim {
namespace {

constexpr std::size_t kFull = 1434;  // 1500 on the wire

TEST(Network, APacketArrivesWhenItsBitsHaveTravelledBothLinks) {
  BenchNet net(PlainConfig());
  net.Send(0, 1, kFull);
  net.world.RunUntilIdle(100);
  // Up 12,000 ns + 1,000; down 24,000 ns + 2,000.
  const auto delivered = net.Of(TraceKind::kDeliver);
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered[0].at_ns, 39'000);
  EXPECT_EQ(delivered[0].bytes, kFull);
  EXPECT_EQ(net.Read(1), 1u);
}

TEST(Network, PacketsQueueBehindOneAnother) {
  BenchNet net(PlainConfig(3));
  net.Send(0, 1, kFull);
  net.Send(0, 1, kFull);
  net.Send(2, 1, 434);    // 500 on the wire: at the switch after 4,000 + 1,000 ns
  net.Send(1, 0, kFull);  // the other direction does not meet them
  net.world.RunUntilIdle(100);
  const auto delivered = net.Of(TraceKind::kDeliver);
  ASSERT_EQ(delivered.size(), 4u);
  // From 2: port 5,000 … 13,000. From 0: at the switch 13,000 and 25,000; port 13,000 … 37,000 and
  // 37,000 … 61,000.
  EXPECT_EQ(delivered[0].from, 2u);
  EXPECT_EQ(delivered[0].at_ns, 15'000);
  EXPECT_EQ(delivered[1].from, 0u);
  EXPECT_EQ(delivered[1].at_ns, 39'000);
  EXPECT_EQ(delivered[2].to, 0u);
  EXPECT_EQ(delivered[2].at_ns, 39'000);
  EXPECT_EQ(delivered[3].at_ns, 63'000);
}

TEST(Network, ExtraDelayIsForOnePair) {
  BenchNet net(PlainConfig());
  PairConditions far;
  far.extra_delay = Duration{100'000};
  net.network.SetConditions(NodePair{0, 1}, far);
  net.Send(0, 1, kFull);
  net.Send(1, 0, kFull);
  net.world.RunUntilIdle(100);
  const auto delivered = net.Of(TraceKind::kDeliver);
  ASSERT_EQ(delivered.size(), 2u);
  EXPECT_EQ(delivered[0].at_ns, 39'000);
  EXPECT_EQ(delivered[1].at_ns, 139'000);
}

TEST(Network, ALoweredDelayDoesNotReorder) {
  BenchNet net(PlainConfig());
  PairConditions far;
  far.extra_delay = Duration{1'000'000};
  net.network.SetConditions(far);
  net.Send(0, 1, 100);
  net.world.RunUntil(InstantFromNanos(100'000));
  net.network.SetConditions(PairConditions{});
  net.Send(0, 1, 100);
  net.world.RunUntilIdle(100);
  const auto delivered = net.Of(TraceKind::kDeliver);
  ASSERT_EQ(delivered.size(), 2u);
  EXPECT_LT(delivered[0].packet, delivered[1].packet);
}

TEST(Network, LinksCanChangeWhileItRuns) {
  BenchNet net(PlainConfig());
  LinkConfig fast = PlainConfig().node.uplink;
  fast.rate_bits_per_s = 0;
  fast.propagation = Duration{10};
  net.network.SetUplink(0, fast);
  net.network.SetDownlink(1, fast);
  net.Send(0, 1, kFull);
  net.world.RunUntilIdle(100);
  ASSERT_EQ(net.Of(TraceKind::kDeliver).size(), 1u);
  EXPECT_EQ(net.Of(TraceKind::kDeliver)[0].at_ns, 20);
}

TEST(Network, PortQueueDropsTheTailAtItsByteLimit) {
  NetworkConfig config = PlainConfig(3);
  config.node.downlink.queue_bytes_max = 3000;  // two full packets
  BenchNet net(config);
  net.Send(0, 1, kFull);
  net.Send(2, 1, kFull);
  net.Send(0, 1, kFull);
  net.Send(2, 1, kFull);
  net.world.RunUntilIdle(100);
  // At the switch: two at 13,000 and two at 25,000. The port is busy with the first until 37,000.
  const auto dropped = net.Of(TraceKind::kDrop);
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0].at_ns, 25'000);
  EXPECT_EQ(dropped[0].reason, DropReason::kPortQueue);
  EXPECT_EQ(net.network.counters({0, 1}).dropped_for(DropReason::kPortQueue), 1u);
  EXPECT_EQ(net.network.counters({2, 1}).dropped_for(DropReason::kPortQueue), 1u);
  EXPECT_EQ(net.network.totals().delivered, 2u);
  EXPECT_EQ(net.network.CheckConservation(), "");
}

TEST(Network, AByteLessThanTheLimitDropsOneMore) {
  NetworkConfig config = PlainConfig(3);
  config.node.downlink.queue_bytes_max = 2999;
  BenchNet net(config);
  net.Send(0, 1, kFull);
  net.Send(2, 1, kFull);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(net.network.totals().dropped_for(DropReason::kPortQueue), 1u);
}

TEST(Network, ReceiveQueueCountsKernelMemoryNotPayload) {
  NetworkConfig config = PlainConfig();
  config.node.receive_queue_bytes_max = 10 * TruesizeBytes(64);
  BenchNet net(config);
  for (int i = 0; i < 15; ++i) net.Send(0, 1, 64);
  net.world.RunUntilIdle(1000);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 10u);
  EXPECT_EQ(net.network.counters({0, 1}).dropped_for(DropReason::kReceiveQueue), 5u);
  EXPECT_EQ(net.network.receive_queue_drops(1), 5u);
  EXPECT_EQ(net.ports[1]->counters().receive_queue_drops, 5u);
  EXPECT_EQ(net.network.receive_queue_bytes(1), 10 * TruesizeBytes(64));
  // Reading makes room.
  EXPECT_EQ(net.Read(1), 10u);
  EXPECT_EQ(net.network.receive_queue_bytes(1), 0u);
  net.Send(0, 1, 64);
  net.world.RunUntilIdle(1000);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 11u);
  EXPECT_EQ(net.network.CheckConservation(), "");
}

TEST(Network, WakesANodeWhenItsEmptyQueueGetsAPacket) {
  BenchNet net(PlainConfig());
  std::vector<std::int64_t> wakes;
  net.network.SetWake(1, [&] { wakes.push_back(Nanos(net.world.now())); });
  net.Send(0, 1, kFull);
  net.Send(0, 1, kFull);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(wakes, (std::vector<std::int64_t>{39'000})) << "the second found a packet waiting";
  net.Read(1);
  net.Send(0, 1, kFull);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(wakes.size(), 2u);
}

TEST(Network, APausedNodeReceivesButIsNotWoken) {
  BenchNet net(PlainConfig());
  int wakes = 0;
  net.network.SetWake(1, [&] { ++wakes; });
  net.network.Pause(1);
  EXPECT_TRUE(net.network.paused(1));
  net.Send(0, 1, kFull);
  net.Send(0, 1, kFull);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(wakes, 0);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 2u);
  net.network.Resume(1);
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(net.Read(1), 2u);
  net.network.Resume(1);
  EXPECT_EQ(wakes, 1) << "it was not paused";
}

TEST(Network, APausedNodesQueueOverflows) {
  NetworkConfig config = PlainConfig();
  config.node.receive_queue_bytes_max = 4 * TruesizeBytes(kFull);
  BenchNet net(config);
  net.network.Pause(1);
  for (int i = 0; i < 10; ++i) net.Send(0, 1, kFull);
  net.world.RunUntilIdle(1000);
  net.network.Resume(1);
  EXPECT_EQ(net.Read(1), 4u);
  EXPECT_EQ(net.network.receive_queue_drops(1), 6u);
}

TEST(NetworkDeathTest, APausedNodeMustNotTurn) {
  BenchNet net(PlainConfig());
  net.network.Pause(1);
  EXPECT_DEATH(net.ports[1]->Receive(net.world.now()), "paused");
  EXPECT_DEATH(net.ports[1]->Flush(net.world.now()), "paused");
}

TEST(Network, ADeadNodeLosesItsQueueAndWhatComesLater) {
  BenchNet net(PlainConfig());
  int wakes = 0;
  net.network.SetWake(1, [&] { ++wakes; });
  net.Send(0, 1, kFull);
  net.world.RunUntilIdle(100);
  net.Send(0, 1, kFull);
  net.Send(1, 0, kFull);
  net.network.TakeDown(1);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(net.network.counters({0, 1}).dropped_for(DropReason::kNodeDown), 1u);
  EXPECT_EQ(net.Read(0), 1u) << "what it had sent is on its way";
  net.network.BringUp(1);
  net.Send(0, 1, kFull);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(net.Read(1), 1u);
  EXPECT_EQ(net.network.CheckConservation(), "");
}

TEST(Network, EventsOfANetworkThatIsGoneDoNotRun) {
  World world;
  const std::vector<std::byte> bytes(100);
  {
    Network network(&world, PlainConfig());
    SimPort port(&network, 0);
    const TxSegment segment{bytes, {}};
    port.Send(1, std::span(&segment, 1));
    port.Flush(world.now());
    EXPECT_FALSE(world.idle());
  }
  EXPECT_TRUE(world.idle());
  EXPECT_FALSE(world.Step());
}

TEST(Network, InFlightIsCountedOverThePackets) {
  BenchNet net(PlainConfig(3));
  net.Send(0, 1, kFull);
  net.Send(0, 1, kFull);
  net.Send(2, 1, kFull);
  EXPECT_EQ(net.network.CountInFlight({0, 1}), 2u);
  EXPECT_EQ(net.network.CountInFlight(), 3u);
  EXPECT_EQ(net.network.CheckConservation(), "");
  net.world.RunUntil(InstantFromNanos(39'000));
  EXPECT_EQ(net.network.CountInFlight(), 2u);
  EXPECT_EQ(net.network.CheckConservation(), "");
  net.world.RunUntilIdle(100);
  EXPECT_EQ(net.network.CountInFlight(), 0u);
}

}  // namespace
}  // namespace optireduce::sim
