// Jobs of many ranks: 64 with all their bytes, and the protocol alone, without payloads, of 256.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/engine.h"
#include "collectives/tar/schedule.h"
#include "lib/random.h"
#include "test/simulation/directed/scenes.h"
#include "transport/ubt/group.h"
#include "transport/wire/parse.h"

namespace optireduce::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Large, SixtyFourRanksWithBytes) {
  for (const Mode mode : {Mode::kExact, Mode::kBounded}) {
    Scenario scenario = Scene(64, mode, 64 * 360, 2);
    for (CallPlan& plan : scenario.calls) plan.values = ValueKind::kCounts;
    scenario.job.settings.bounded_bound = milliseconds(50);
    scenario.job.network.conditions.loss = 0.01;
    scenario.job.network.conditions.corrupt = 0.002;
    scenario.pauses = {{17, Instant{} + microseconds(10), Instant{} + milliseconds(60)}};
    const Evidence evidence = RunAndCheck(scenario);
    EXPECT_GT(DropsOf(evidence, DropReason::kLoss), 50u);
    if (mode == Mode::kExact) continue;
    EXPECT_GT(evidence.calls[0].by_rank[0].report.lost_entries, 0u) << "rank 17 was away";
  }
}

// Counts what the core orders instead of doing it.
class Counting final : public ubt::PayloadActions {
 public:
  Counting(Rank self, std::uint32_t ranks) : self_(self), ranks_(ranks) {}

  bool OpenShard(OpNumber, const ubt::OpSpec&, const ubt::Grid& grid) override {
    grid_ = grid;
    added_.assign(grid.Cells(self_), 0);
    placed_.assign(grid.FlatCells(), 0);
    return true;
  }
  void RetireShard(OpNumber) override { ++retired; }
  ubt::StagedId Stage(std::span<const std::byte>) override { return ++staged_; }
  void Unstage(ubt::StagedId) override {}
  void AddOwn(OpNumber, CellIndex cell, bool) override { ++added_[cell]; }
  void Add(OpNumber, CellIndex cell, std::span<const std::byte>, bool) override { ++added_[cell]; }
  void AddStaged(OpNumber, CellIndex cell, ubt::StagedId, bool) override { ++added_[cell]; }
  void CloseCell(OpNumber, CellIndex cell, std::uint32_t contributors) override {
    EXPECT_EQ(contributors, ranks_);
    EXPECT_EQ(added_[cell], ranks_);
  }
  void PlaceOwn(OpNumber, CellIndex cell) override { ++placed_[grid_.Flat(self_) + cell]; }
  void Place(OpNumber, Rank shard, CellIndex cell, std::span<const std::byte>) override {
    ++placed_[grid_.Flat(shard) + cell];
  }
  void PlaceStaged(OpNumber, Rank shard, CellIndex cell, ubt::StagedId) override {
    ++placed_[grid_.Flat(shard) + cell];
  }
  void PlaceZero(OpNumber, Rank, CellIndex) override { ADD_FAILURE() << "a result is given up"; }

  // Every result of every shard was placed, once.
  bool AllPlaced() const {
    for (Rank shard = 0; shard < ranks_; ++shard) {
      for (CellIndex cell = 0; cell < grid_.Cells(shard); ++cell) {
        if (placed_[grid_.Flat(shard) + cell] != 1) return false;
      }
    }
    return true;
  }

  std::uint64_t retired = 0;

 private:
  const Rank self_;
  const std::uint32_t ranks_;
  ubt::Grid grid_;
  std::vector<std::uint32_t> added_;
  std::vector<std::uint32_t> placed_;
  ubt::StagedId staged_ = 0;
};

// Ranks in steps of 50 us, which is what a packet takes. Payloads are lengths without bytes.
class Cores {
 public:
  Cores(std::uint32_t ranks, double loss) : loss_chance_(loss), loss_(1, 0, "loss") {
    const PortLimits limits{1472, 64, std::size_t{4} << 20};
    const Settings settings = Config::Defaults().settings();
    for (Rank rank = 0; rank < ranks; ++rank) {
      ubt::GroupSettings group = MakeGroupSettings(settings, limits, rank, ranks);
      group_id_ = group.group_id;
      nodes_.push_back(std::make_unique<Node>(group, rank, ranks));
    }
    payload_.resize(1472);
  }

  void CallAll(const ubt::OpSpec& spec) {
    const ubt::GroupSettings& settings = nodes_[0]->group.settings();
    grid_ = ubt::Grid(spec.count, static_cast<std::uint32_t>(ElementBytes(spec.type)),
                      settings.ranks, settings.cell_bytes);
    for (const auto& node : nodes_) {
      OpNumber op = 0;
      EXPECT_EQ(node->group.Call(spec, std::chrono::seconds(10), now_, &op),
                ubt::Admission::kAdmitted);
    }
  }
  // False: some rank has not settled by then.
  bool RunUntilSettled(Duration limit) {
    const Instant until = now_ + limit;
    const auto settled = [](const auto& node) { return node->group.Settled(); };
    while (!std::all_of(nodes_.begin(), nodes_.end(), settled)) {
      if (now_ >= until) return false;
      Step();
    }
    return true;
  }

  struct Node {
    Node(const ubt::GroupSettings& settings, Rank rank, std::uint32_t ranks)
        : actions(rank, ranks), group(settings, &actions, &counters) {}
    Counters counters;
    Counting actions;
    ubt::Group group;
  };
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t delivered = 0;

 private:
  struct Packet {
    Rank from = 0;
    Rank to = 0;
    wire::Header header;
    std::size_t payload_bytes = 0;
    std::vector<std::byte> control;  // of the others
  };

  void Step() {
    std::vector<Packet> packets = std::move(on_the_way_);
    on_the_way_.clear();
    now_ += microseconds(50);
    for (const Packet& packet : packets) Deliver(packet);
    for (Rank rank = 0; rank < nodes_.size(); ++rank) {
      ubt::Group& group = nodes_[rank]->group;
      group.OnTime(true, now_);
      while (group.NextSend(true, now_, &order_)) Send(rank);
      while (group.NextEnd()) {
      }
      EXPECT_TRUE(group.failure().ok()) << group.failure().text();
    }
  }

  void Send(Rank from) {
    Packet packet;
    packet.from = from;
    packet.to = order_.peer;
    for (std::uint32_t i = 0; i < order_.cell_count; ++i) {
      packet.header.type = order_.stage == Stage::kScatter ? wire::MessageType::kData
                                                           : wire::MessageType::kResult;
      packet.header.flags = order_.cells[i].flags;
      packet.header.sender = static_cast<std::uint16_t>(from);
      packet.header.group = group_id_;
      packet.header.shard = static_cast<std::uint16_t>(order_.shard);
      packet.header.op_low = static_cast<std::uint32_t>(order_.op);
      packet.header.cell = order_.cells[i].cell;
      packet.header.number_low = static_cast<std::uint32_t>(order_.cells[i].number);
      packet.payload_bytes = std::size_t{grid_.CellElements(order_.shard, order_.cells[i].cell)} *
                             grid_.element_bytes();
      Travel(packet);
    }
    if (order_.control_bytes == 0) return;
    const auto bytes = std::span<const std::byte>(order_.control).first(order_.control_bytes);
    EXPECT_EQ(wire::ParseHeader(bytes, &packet.header), wire::ParseResult::kOk);
    const auto body = bytes.subspan(wire::kHeaderBytes);
    packet.payload_bytes = 0;
    packet.control.assign(body.begin(), body.end());
    Travel(packet);
  }

  void Travel(const Packet& packet) {
    ++sent;
    if (loss_.Chance(loss_chance_)) {
      ++lost;
    } else {
      on_the_way_.push_back(packet);
    }
  }

  void Deliver(const Packet& packet) {
    ++delivered;
    Node& node = *nodes_[packet.to];
    const auto body = wire::IsPayloadType(packet.header.type)
                          ? std::span<const std::byte>(payload_).first(packet.payload_bytes)
                          : std::span<const std::byte>(packet.control);
    node.counters.Add(node.group.OnPacket(
        packet.header, node.group.WidenOp(packet.header.op_low),
        node.group.WidenNumber(packet.from, packet.header.number_low), body, now_));
  }

  const double loss_chance_;
  Stream loss_;
  std::uint32_t group_id_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Packet> on_the_way_;
  std::vector<std::byte> payload_;
  ubt::Grid grid_;
  ubt::SendOrder order_;
  Instant now_ = InstantFromNanos(1'000'000'000);
};

TEST(Large, TheProtocolAloneOf256Ranks) {
  constexpr std::uint32_t kRanks = 256;
  Cores cores(kRanks, 0.01);
  ubt::OpSpec spec;
  spec.count = std::uint64_t{kRanks} * 300;  // one cell in a shard
  cores.CallAll(spec);
  ASSERT_TRUE(cores.RunUntilSettled(std::chrono::seconds(5)));
  std::uint64_t verdicts = 0;
  std::uint64_t counted = 0;
  for (const auto& node : cores.nodes()) {
    EXPECT_TRUE(node->actions.AllPlaced());
    EXPECT_EQ(node->group.done(), 1u);
    for (auto i = static_cast<std::size_t>(kFirstVerdict);
         i <= static_cast<std::size_t>(kLastVerdict); ++i) {
      verdicts += node->counters.Get(static_cast<Counter>(i));
    }
    for (Rank peer = 0; peer < kRanks; ++peer) {
      if (peer != node->group.settings().rank) counted += node->group.link(peer).packets_sent;
    }
  }
  EXPECT_EQ(cores.sent, counted);
  EXPECT_EQ(cores.delivered, verdicts);
  EXPECT_GT(cores.lost, 1000u);
  // For every pair: two cells, an OPEN, a report with its four repeats, and what repair takes.
  EXPECT_GT(cores.sent, 2u * kRanks * (kRanks - 1));
  EXPECT_LT(cores.sent, 12u * kRanks * (kRanks - 1));
}

}  // namespace
}  // namespace optireduce::sim
