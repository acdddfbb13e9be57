// What goes wrong on the network: each fault alone, all together, and the same again from the seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/random.h"
#include "test/unit/sim/bench_net.h"

namespace optireduce::sim {
namespace {

constexpr std::uint64_t kMany = 10'000;

NetworkConfig FastConfig(std::uint32_t nodes = 2, std::uint64_t seed = 1) {
  NetworkConfig config;
  config.nodes = nodes;
  config.seed = seed;
  return config;
}

// Sends `packets` packets 0 → 1, far enough apart that no queue matters, and runs until all ended.
void SendMany(BenchNet& net, std::uint64_t packets) {
  for (std::uint64_t i = 0; i < packets; ++i) {
    net.Send(0, 1, 100, static_cast<std::uint8_t>(i));
    net.world.RunUntil(net.world.now() + Duration{1000});
    if (!net.network.paused(1)) net.Read(1);
  }
  net.world.RunUntilIdle(100'000);
  net.Read(1);
}

TEST(Faults, LossTakesItsShare) {
  NetworkConfig config = FastConfig();
  config.conditions.loss = 0.1;
  BenchNet net(config);
  SendMany(net, kMany);
  const PairCounters counters = net.network.counters({0, 1});
  EXPECT_EQ(counters.sent, kMany);
  // 1000 expected, standard deviation 30.
  EXPECT_NEAR(static_cast<double>(counters.dropped_for(DropReason::kLoss)), 1000, 150);
  EXPECT_EQ(counters.dropped_total(), counters.dropped_for(DropReason::kLoss));
  EXPECT_EQ(counters.delivered + counters.dropped_total(), kMany);
  EXPECT_EQ(net.ports[1]->counters().packets_received, counters.delivered);
}

TEST(Faults, CertainLossTakesAllAndNoLossTakesNone) {
  NetworkConfig config = FastConfig();
  config.conditions.loss = 1;
  BenchNet net(config);
  SendMany(net, 100);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 0u);
  net.network.SetConditions(PairConditions{});
  SendMany(net, 100);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 100u);
}

TEST(Faults, LossOfOnePairAndDirectionLeavesTheOthers) {
  BenchNet net(FastConfig(3));
  PairConditions broken;
  broken.loss = 1;
  net.network.SetConditions(NodePair{0, 1}, broken);
  for (int i = 0; i < 20; ++i) {
    net.Send(0, 1, 100);
    net.Send(1, 0, 100);
    net.Send(0, 2, 100);
  }
  net.world.RunUntilIdle(1000);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 0u);
  EXPECT_EQ(net.network.counters({1, 0}).delivered, 20u);
  EXPECT_EQ(net.network.counters({0, 2}).delivered, 20u);
}

TEST(Faults, BurstsTakeSeveralInARow) {
  NetworkConfig config = FastConfig();
  config.conditions.burst_begin = 0.01;
  config.conditions.burst_end = 0.1;  // 10 on average
  BenchNet net(config);
  SendMany(net, kMany);
  // About 1 / (100 + 10) of the packets start a burst of 10: 910 lost, in about 91 runs.
  const auto drops = net.Of(TraceKind::kDrop);
  EXPECT_NEAR(static_cast<double>(drops.size()), 910, 350);
  std::size_t runs = 1;
  for (std::size_t i = 1; i < drops.size(); ++i) {
    EXPECT_EQ(drops[i].reason, DropReason::kBurstLoss);
    runs += drops[i].packet != drops[i - 1].packet + 1;
  }
  EXPECT_LT(runs * 5, drops.size()) << "losses do not come in rows";
  EXPECT_GT(runs, 30u);
}

TEST(Faults, ABurstMayLetSomeThrough) {
  NetworkConfig config = FastConfig();
  config.conditions.burst_begin = 0.02;
  config.conditions.burst_end = 0.02;  // half of the time is bad
  config.conditions.burst_loss = 0.5;
  BenchNet net(config);
  SendMany(net, kMany);
  const PairCounters counters = net.network.counters({0, 1});
  EXPECT_NEAR(static_cast<double>(counters.dropped_for(DropReason::kBurstLoss)), 2500, 600);
}

TEST(Faults, AKernelCatchesDamageThatItsChecksumShows) {
  NetworkConfig config = FastConfig();
  config.conditions.corrupt_caught = 0.2;
  BenchNet net(config);
  SendMany(net, 1000);
  const PairCounters counters = net.network.counters({0, 1});
  const std::uint64_t caught = counters.dropped_for(DropReason::kChecksum);
  EXPECT_NEAR(static_cast<double>(caught), 200, 65);
  EXPECT_EQ(counters.delivered, 1000 - caught);
  EXPECT_EQ(net.network.receive_queue_drops(1), 0u);
}

TEST(Faults, ARefusedSendIsLostAndCounted) {
  NetworkConfig config = FastConfig();
  config.conditions.send_refused = 0.3;
  BenchNet net(config);
  SendMany(net, 1000);
  const PairCounters counters = net.network.counters({0, 1});
  const std::uint64_t refused = counters.dropped_for(DropReason::kSendRefused);
  EXPECT_NEAR(static_cast<double>(refused), 300, 75);
  EXPECT_EQ(net.ports[0]->counters().send_refused, refused);
  EXPECT_EQ(net.ports[0]->counters().packets_sent, 1000u);
  EXPECT_EQ(counters.delivered, 1000 - refused);
}

TEST(Faults, ABusySendIsPutOffAndTheNodeIsWoken) {
  NetworkConfig config = FastConfig();
  config.conditions.send_busy = 0.9;
  BenchNet net(config);
  int wakes = 0;
  net.network.SetWake(0, [&] {
    ++wakes;
    net.ports[0]->Flush(net.world.now());
  });
  for (int i = 0; i < 50; ++i) net.Send(0, 1, 100);
  net.world.RunUntilIdle(100'000);
  const PairCounters counters = net.network.counters({0, 1});
  EXPECT_EQ(counters.delivered, 50u);
  EXPECT_GT(counters.busy, 50u);
  EXPECT_GT(wakes, 50);
  EXPECT_LE(net.world.now() - Instant{}, wakes * Duration{200'001} + Duration{1'000'000});
}

TEST(Faults, AClogHoldsItsDirectionUntilItsEndAndKeepsTheOrder) {
  BenchNet net(FastConfig());
  const std::vector<NodePair> way = {{0, 1}};
  net.network.Clog(way, InstantFromNanos(0), InstantFromNanos(1'000'000));
  for (std::uint8_t i = 0; i < 5; ++i) {
    net.Send(0, 1, 100, i);
    net.Send(1, 0, 100, i);
    net.world.RunUntil(net.world.now() + Duration{10'000});
  }
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 0u);
  EXPECT_EQ(net.network.counters({1, 0}).delivered, 5u);
  EXPECT_EQ(net.network.CountInFlight({0, 1}), 5u);
  net.Send(0, 1, 100, 5);
  net.world.RunUntilIdle(1000);
  EXPECT_EQ(net.network.counters({0, 1}).clogged, 6u);
  ASSERT_EQ(net.network.counters({0, 1}).delivered, 6u);
  std::uint8_t expected = 0;
  for (const RxPacket& packet : net.ports[1]->Receive(net.world.now())) {
    EXPECT_EQ(packet.bytes[0], std::byte{expected++});
  }
  EXPECT_EQ(net.Of(TraceKind::kDeliver).back().at_ns, 1'000'000);
  net.Send(0, 1, 100);  // and afterwards nothing is held
  net.world.RunUntilIdle(1000);
  EXPECT_LT(net.Of(TraceKind::kDeliver).back().at_ns, 1'100'000);
}

TEST(Faults, DuplicatesAreSecondCopiesOfTheSameBytes) {
  NetworkConfig config = FastConfig();
  config.conditions.duplicate = 1;
  BenchNet net(config);
  net.Send(0, 1, 100, 0x77);
  net.world.RunUntilIdle(100);
  const auto burst = net.ports[1]->Receive(net.world.now());
  ASSERT_EQ(burst.size(), 2u);
  EXPECT_TRUE(std::ranges::equal(burst[0].bytes, burst[1].bytes));
  EXPECT_EQ(burst[1].bytes[99], std::byte{0x77});
  EXPECT_EQ(net.network.counters({0, 1}).sent, 1u);
  EXPECT_EQ(net.network.counters({0, 1}).duplicated, 1u);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 2u);
  EXPECT_EQ(net.network.CheckConservation(), "");
}

TEST(Faults, CorruptionFlipsOneBitAndNotTheSendersOwn) {
  NetworkConfig config = FastConfig();
  config.conditions.corrupt = 1;
  BenchNet net(config);
  const std::vector<std::byte> payload(100, std::byte{0});
  const TxSegment segment{{}, payload};
  std::set<std::size_t> places;
  for (int i = 0; i < 200; ++i) {
    net.ports[0]->Send(1, std::span(&segment, 1));
    net.ports[0]->Flush(net.world.now());
    net.world.RunUntilIdle(100);
    const auto burst = net.ports[1]->Receive(net.world.now());
    ASSERT_EQ(burst.size(), 1u);
    int flipped = 0;
    for (std::size_t b = 0; b < 100; ++b) {
      const int bits = std::popcount(static_cast<unsigned>(burst[0].bytes[b]));
      flipped += bits;
      if (bits > 0) places.insert(b);
    }
    EXPECT_EQ(flipped, 1);
  }
  EXPECT_GT(places.size(), 50u) << "the bit is not chosen over the whole packet";
  EXPECT_EQ(net.network.counters({0, 1}).corrupted, 200u);
  EXPECT_TRUE(std::ranges::all_of(payload, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Faults, ACorruptedDuplicateLeavesTheOriginal) {
  NetworkConfig config = FastConfig();
  config.conditions.duplicate = 1;
  config.conditions.corrupt = 0.5;
  BenchNet net(config);
  int one_of_two = 0;
  for (int i = 0; i < 100; ++i) {
    net.Send(0, 1, 50, 0);
    net.world.RunUntilIdle(100);
    const auto burst = net.ports[1]->Receive(net.world.now());
    ASSERT_EQ(burst.size(), 2u);
    const std::vector<std::byte> clean(50);
    one_of_two +=
        std::ranges::equal(burst[0].bytes, clean) != std::ranges::equal(burst[1].bytes, clean);
  }
  EXPECT_NEAR(one_of_two, 50, 25);
}

TEST(Faults, WithoutReorderALinkIsFirstInFirstOutWhateverTheJitter) {
  NetworkConfig config = FastConfig();
  config.node.uplink.jitter = Duration{50'000};
  config.node.downlink.jitter = Duration{50'000};
  config.conditions.loss = 0.05;
  config.conditions.duplicate = 0.05;
  BenchNet net(config);
  std::set<std::int64_t> gaps;
  SendMany(net, 2000);
  const auto delivered = net.Of(TraceKind::kDeliver);
  ASSERT_GT(delivered.size(), 1800u);
  // Copies have their own numbers, made at the switch; the order of the originals is what counts.
  std::set<std::uint64_t> copies;
  for (const Happening& copy : net.Of(TraceKind::kDuplicate)) copies.insert(copy.packet);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    if (i > 0) gaps.insert(delivered[i].at_ns - delivered[i - 1].at_ns);
    if (copies.contains(delivered[i].packet)) continue;
    EXPECT_GT(delivered[i].packet, last);
    last = delivered[i].packet;
  }
  EXPECT_GT(gaps.size(), 100u) << "no jitter at all";
}

TEST(Faults, ReorderLetsOthersOvertake) {
  NetworkConfig config = FastConfig();
  config.conditions.reorder = 0.1;
  config.conditions.reorder_delay_max = Duration{20'000};
  BenchNet net(config);
  SendMany(net, 2000);
  const auto delivered = net.Of(TraceKind::kDeliver);
  ASSERT_EQ(delivered.size(), 2000u);
  std::size_t overtaken = 0;
  std::uint64_t highest = 0;
  for (const Happening& happening : delivered) {
    overtaken += happening.packet < highest;
    highest = std::max(highest, happening.packet);
  }
  EXPECT_GT(overtaken, 100u);
  EXPECT_GE(net.network.counters({0, 1}).delayed, overtaken);
  EXPECT_NEAR(static_cast<double>(net.network.counters({0, 1}).delayed), 200, 70);
}

TEST(Faults, APartitionBlocksItsDirectionInItsInterval) {
  BenchNet net(FastConfig(3));
  const std::vector<NodeId> left = {0};
  const std::vector<NodeId> right = {1, 2};
  net.network.Partition(Network::PairsBetween(left, right), InstantFromNanos(1'000'000),
                        InstantFromNanos(2'000'000));
  const auto send_all = [&] {
    net.Send(0, 1, 100);
    net.Send(0, 2, 100);
    net.Send(1, 0, 100);
    net.Send(1, 2, 100);
  };
  for (const std::int64_t at : {0, 1'000'000, 1'500'000, 2'000'000}) {
    net.world.RunUntil(InstantFromNanos(at));
    send_all();
  }
  net.world.RunUntilIdle(1000);
  EXPECT_EQ(net.network.counters({0, 1}).delivered, 2u);
  EXPECT_EQ(net.network.counters({0, 1}).dropped_for(DropReason::kPartition), 2u);
  EXPECT_EQ(net.network.counters({0, 2}).dropped_for(DropReason::kPartition), 2u);
  EXPECT_EQ(net.network.counters({1, 0}).delivered, 4u) << "the way back is open";
  EXPECT_EQ(net.network.counters({1, 2}).delivered, 4u);
}

TEST(Faults, APartitionHoldsFromItsBeginUntilJustBeforeItsEnd) {
  NetworkConfig config = PlainConfig();
  config.node.uplink.rate_bits_per_s = 0;  // a packet is at the switch 1,000 ns after its send
  BenchNet net(config);
  const std::vector<NodePair> way = {{0, 1}};
  net.network.Partition(way, InstantFromNanos(5000), InstantFromNanos(6000));
  for (const std::int64_t at : {3999, 4000, 4999, 5000}) {
    net.world.RunUntil(InstantFromNanos(at));
    net.Send(0, 1, 100);
  }
  net.world.RunUntilIdle(100);
  const auto dropped = net.Of(TraceKind::kDrop);
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0].at_ns, 5000);
  EXPECT_EQ(dropped[1].at_ns, 5999);
}

TEST(Faults, PairsBetweenLeavesOutANodeToItself) {
  const std::vector<NodeId> all = {0, 1, 2};
  EXPECT_EQ(Network::PairsBetween(all, all).size(), 6u);
}

TEST(Faults, HealEndsFaultsAndPartitionsAndKeepsTheShape) {
  BenchNet net(FastConfig());
  PairConditions bad;
  bad.loss = 1;
  bad.extra_delay = Duration{70'000};
  net.network.SetConditions(bad);
  net.network.SetConditions(NodePair{0, 1}, bad);
  const std::vector<NodePair> way = {{0, 1}};
  net.network.Partition(way, InstantFromNanos(0), kNever);
  net.Send(0, 1, 100);
  net.Send(1, 0, 100);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(net.network.totals().delivered, 0u);
  net.network.Heal();
  const std::int64_t sent_at = Nanos(net.world.now());
  net.Send(0, 1, 100);
  net.Send(1, 0, 100);
  net.world.RunUntilIdle(100);
  EXPECT_EQ(net.network.totals().delivered, 2u);
  EXPECT_GT(net.Of(TraceKind::kDeliver)[0].at_ns, sent_at + 70'000);
}

// Random traffic under all faults at once, with pauses, partitions and changes on the way.
struct Storm {
  explicit Storm(std::uint64_t seed, std::uint64_t network_seed) : traffic(seed, 0, "traffic") {
    NetworkConfig config = FastConfig(5, network_seed);
    config.node.uplink.jitter = Duration{3000};
    config.node.downlink.queue_bytes_max = 20'000;
    config.node.downlink.rate_bits_per_s = 4'000'000'000;
    config.node.receive_queue_bytes_max = 60'000;
    config.node.uplink.queue_bytes_max = 30'000;
    config.node.uplink_full = UplinkFull::kDrop;
    config.conditions.loss = 0.05;
    config.conditions.burst_begin = 0.01;
    config.conditions.burst_end = 0.3;
    config.conditions.corrupt_caught = 0.02;
    config.conditions.send_refused = 0.02;
    config.conditions.send_busy = 0.02;
    config.conditions.duplicate = 0.1;
    config.conditions.corrupt = 0.1;
    config.conditions.reorder = 0.1;
    net = std::make_unique<BenchNet>(config);
  }

  void Run(int steps) {
    const std::vector<NodeId> left = {0, 1};
    const std::vector<NodeId> right = {2, 3, 4};
    for (int step = 0; step < steps; ++step) {
      const auto from = static_cast<NodeId>(traffic.Below(5));
      const auto to = static_cast<NodeId>((from + 1 + traffic.Below(4)) % 5);
      // Now and then a train of packets, which fills queues.
      const std::uint64_t packets = traffic.Chance(0.05) ? 30 : 1;
      for (std::uint64_t i = 0; i < packets && !net->network.paused(from); ++i) {
        net->Send(from, to, static_cast<std::size_t>(2 + traffic.Below(1470)),
                  static_cast<std::uint8_t>(traffic.Below(256)));
      }
      if (traffic.Chance(0.02)) net->network.Pause(to);
      if (traffic.Chance(0.05)) net->network.Resume(from);
      if (traffic.Chance(0.01)) {
        net->network.Partition(Network::PairsBetween(left, right), net->world.now(),
                               net->world.now() + Duration{20'000});
        net->network.Clog(Network::PairsBetween(right, left), net->world.now(),
                          net->world.now() + Duration{20'000});
      }
      if (!net->network.paused(to) && traffic.Chance(0.3)) net->Read(to);
      net->world.RunUntil(net->world.now() +
                          Duration{static_cast<std::int64_t>(traffic.Below(1000))});
      if (step % 50 == 0) {
        ASSERT_EQ(net->network.CheckConservation(), "") << "step " << step;
      }
    }
  }

  Stream traffic;
  std::unique_ptr<BenchNet> net;
};

TEST(Faults, PacketsAreConservedUnderAllOfThem) {
  Storm storm(11, 12);
  storm.Run(20'000);
  PairCounters totals = storm.net->network.totals();
  // Every way to end or to multiply has happened, or this test shows nothing.
  for (const DropReason reason :
       {DropReason::kLoss, DropReason::kBurstLoss, DropReason::kUplinkQueue, DropReason::kPortQueue,
        DropReason::kReceiveQueue, DropReason::kPartition, DropReason::kChecksum,
        DropReason::kSendRefused}) {
    EXPECT_GT(totals.dropped_for(reason), 10u) << Name(reason);
  }
  EXPECT_GT(totals.duplicated, 10u);
  EXPECT_GT(totals.corrupted, 10u);
  EXPECT_GT(totals.delayed, 10u);
  EXPECT_GT(totals.clogged, 10u);
  EXPECT_GT(totals.busy, 10u);
  storm.net->network.Heal();
  storm.net->world.RunUntilIdle(1'000'000);
  totals = storm.net->network.totals();
  EXPECT_EQ(storm.net->network.CountInFlight(), 0u);
  EXPECT_EQ(totals.sent + totals.duplicated, totals.delivered + totals.dropped_total());
  std::uint64_t packets_sent = 0;
  for (const auto& port : storm.net->ports) packets_sent += port->counters().packets_sent;
  EXPECT_EQ(totals.sent, packets_sent);
}

TEST(Faults, OneSeedOneTrace) {
  Storm first(11, 12);
  Storm again(11, 12);
  Storm other_network(11, 13);
  Storm other_traffic(14, 12);
  for (Storm* storm : {&first, &again, &other_network, &other_traffic}) storm->Run(2000);
  EXPECT_EQ(first.net->network.trace_hash(), again.net->network.trace_hash());
  EXPECT_NE(first.net->network.trace_hash(), other_network.net->network.trace_hash());
  EXPECT_NE(first.net->network.trace_hash(), other_traffic.net->network.trace_hash());
}

TEST(Faults, OneMoreFaultDoesNotShiftTheOthers) {
  std::vector<std::vector<Happening>> losses;
  for (const double duplicate : {0.0, 0.2}) {
    NetworkConfig config = FastConfig();
    config.conditions.loss = 0.2;
    config.conditions.duplicate = duplicate;
    BenchNet net(config);
    SendMany(net, 500);
    losses.push_back(net.Of(TraceKind::kDrop));
  }
  ASSERT_EQ(losses[0].size(), losses[1].size());
  for (std::size_t i = 0; i < losses[0].size(); ++i) {
    EXPECT_EQ(losses[0][i].at_ns, losses[1][i].at_ns);
  }
}

TEST(Trace, TheHashSeesContentOrderAndTime) {
  const auto hash_of = [](std::uint8_t fill, std::int64_t at_ns, NodeId first) {
    BenchNet net(FastConfig(3));
    net.world.RunUntil(InstantFromNanos(at_ns));
    net.Send(first, 2, 100, fill);
    net.Send(1 - first, 2, 100, fill);
    return net.network.trace_hash();
  };
  const std::uint64_t base = hash_of(1, 0, 0);
  EXPECT_EQ(base, hash_of(1, 0, 0));
  EXPECT_NE(base, hash_of(2, 0, 0)) << "content";
  EXPECT_NE(base, hash_of(1, 1, 0)) << "time";
  EXPECT_NE(base, hash_of(1, 0, 1)) << "order";
}

TEST(Trace, ContentHashSeesEveryByteAndTheLength) {
  std::vector<std::byte> bytes(100);
  std::set<std::uint64_t> hashes = {ContentHash(bytes)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{1};
    hashes.insert(ContentHash(bytes));
    bytes[i] = std::byte{0};
    hashes.insert(ContentHash(std::span(bytes).first(i)));
  }
  EXPECT_EQ(hashes.size(), 201u);
}

TEST(Trace, RecordsCarryTheHashOfTheirBytesCorruptedOrNot) {
  NetworkConfig config = FastConfig();
  config.conditions.corrupt = 0.5;
  config.conditions.duplicate = 0.5;
  BenchNet net(config);
  std::size_t records = 0;
  net.network.SetTraceSink([&](const TraceRecord& record) {
    EXPECT_EQ(record.content_hash, ContentHash(record.bytes));
    ++records;
  });
  for (std::uint8_t i = 0; i < 50; ++i) net.Send(0, 1, 100, i);
  net.world.RunUntilIdle(1000);
  EXPECT_GT(records, 100u);
}

TEST(Trace, RecordsReadAsText) {
  TraceRecord record;
  record.at = InstantFromNanos(12'345);
  record.kind = TraceKind::kDrop;
  record.reason = DropReason::kPortQueue;
  record.from = 3;
  record.to = 5;
  record.packet = 17;
  const std::vector<std::byte> bytes(1472);
  record.bytes = bytes;
  EXPECT_EQ(ToString(record), "     12.345 us  3>5  #17 drop 1472 B (port queue)");
  record = TraceRecord{};
  record.kind = TraceKind::kPause;
  record.from = 3;
  EXPECT_EQ(ToString(record), "      0.000 us  node 3 pause");
  record.kind = TraceKind::kHeal;
  EXPECT_EQ(ToString(record), "      0.000 us  heal");
}

// By count only: a few million events, and the queue and the pool do not keep growing.
TEST(Network, ManyPacketsLeaveNothingBehind) {
  BenchNet net(FastConfig(4));
  net.network.SetTraceSink(nullptr);
  const std::vector<std::byte> payload(64);
  const TxSegment segment{{}, payload};
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const auto from = static_cast<NodeId>(i % 4);
    const auto to = static_cast<NodeId>((i + 1) % 4);
    net.ports[from]->Send(to, std::span(&segment, 1));
    net.ports[from]->Flush(net.world.now());
    net.world.RunUntil(net.world.now() + Duration{100});
    net.Read(to);
  }
  net.world.RunUntilIdle(10'000);
  EXPECT_EQ(net.network.totals().delivered, 200'000u);
  EXPECT_EQ(net.world.events_run(), 400'000u) << "two events a packet";
  EXPECT_EQ(net.world.pending(), 0u);
}

}  // namespace
}  // namespace optireduce::sim
