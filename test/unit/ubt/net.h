// Groups joined by a wire in memory whose every packet a test may drop, delay, or repeat, and a
// peer that is made up packet by packet. Time is a number that the test moves.
#ifndef OPTIREDUCE_TEST_UNIT_UBT_NET_H_
#define OPTIREDUCE_TEST_UNIT_UBT_NET_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/tar/schedule.h"
#include "lib/counters.h"
#include "test/unit/ubt/actions.h"
#include "transport/ubt/group.h"
#include "transport/wire/parse.h"
#include "transport/wire/serialize.h"

namespace optireduce::ubt {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using wire::MessageType;

// One packet as it travels. `op` and `number` are what its sender meant.
struct Packet {
  Rank from = 0;
  Rank to = 0;
  wire::Header header;
  OpNumber op = 0;
  PacketNumber number = 0;
  std::vector<std::byte> body;
  Instant sent_at{};
  MessageType type() const { return header.type; }
  bool repeat() const { return (header.flags & wire::kFlagRepeat) != 0; }
};

// The delays with which a packet arrives, one for each copy; none: it is lost.
using Fate = std::vector<Duration>;

struct Ended {
  OpEnd end;
  Elements tensor;
  Instant at{};
};

struct Node {
  Node(const GroupSettings& settings)  // NOLINT(google-explicit-constructor)
      : actions(settings.rank, settings.ranks), group(settings, &actions, &counters) {}
  std::uint64_t count(Counter counter) const { return counters.Get(counter); }

  Counters counters;
  FakeActions actions;
  Group group;
  std::map<OpNumber, Ended> ended;
};

// Elements are 8 bytes, full cells have 16 of them, and shards are multiples of 8.
inline constexpr std::uint32_t kCellElements = 16;

inline GroupSettings Settings(std::uint32_t ranks) {
  GroupSettings settings;
  settings.ranks = ranks;
  settings.group_id = 0x01020304;
  settings.epoch = 7;
  settings.cell_bytes = kCellElements * 8;
  settings.op_bytes_max = std::uint64_t{1} << 30;
  settings.bound = milliseconds(20);
  settings.scatter_share_pct = 75;
  settings.fetch_grace = milliseconds(10);
  return settings;
}

inline OpSpec Exact(std::uint64_t count) {
  return {count, DataType::kInt64, ReduceOp::kSum, Mode::kExact, 0};
}
inline OpSpec Bounded(std::uint64_t count) {
  return {count, DataType::kFloat64, ReduceOp::kSum, Mode::kBounded, 0};
}
// An op of `cells` full cells in each shard.
inline std::uint64_t Count(std::uint32_t ranks, std::uint32_t cells) {
  return std::uint64_t{ranks} * cells * kCellElements;
}

class Net {
 public:
  explicit Net(const GroupSettings& settings) : Net(settings, settings.ranks) {}
  // Only the ranks below `real` are made; the others are for the test to make up.
  Net(GroupSettings settings, Rank real) : settings_(std::move(settings)) {
    for (Rank r = 0; r < settings_.ranks; ++r) {
      settings_.rank_names.push_back("rank " + std::to_string(r));
    }
    for (Rank r = 0; r < real; ++r) {
      GroupSettings of_rank = settings_;
      of_rank.rank = r;
      of_rank.serve_order = tar::ServeOrder(settings_.ranks, r);
      of_rank.sum_order = tar::SumOrder(settings_.ranks, r);
      nodes_.push_back(std::make_unique<Node>(of_rank));
    }
  }

  Node& operator[](Rank rank) const { return *nodes_[rank]; }
  const GroupSettings& settings() const { return settings_; }
  std::uint32_t ranks() const { return settings_.ranks; }

  // A rank's caller calls its next op.
  Admission Call(Rank rank, const OpSpec& spec, Duration timeout = std::chrono::seconds(10)) {
    Node& node = *nodes_[rank];
    // As the engine does: the memory must be there before the core opens the op.
    const OpNumber next = node.group.called() + 1;
    node.actions.MakeTensor(next, spec.count);
    OpNumber op = 0;
    const Admission admission = node.group.Call(spec, timeout, now, &op);
    if (admission == Admission::kAdmitted && node.group.failure().ok()) {
      EXPECT_EQ(op, next);
    }
    return admission;
  }
  void CallAll(const OpSpec& spec) {
    for (Rank r = 0; r < ranks(); ++r) EXPECT_EQ(Call(r, spec), Admission::kAdmitted);
  }

  // One turn of a rank's timers, and everything it sends then.
  std::vector<Packet> Turn(Rank rank, bool idle = true) {
    Node& node = *nodes_[rank];
    node.group.OnTime(idle, now);
    return Sends(rank, idle);
  }
  std::vector<Packet> Sends(Rank rank, bool idle = true) {
    Node& node = *nodes_[rank];
    std::vector<Packet> packets;
    for (SendOrder order; node.group.NextSend(idle, now, &order);) Unpack(rank, order, &packets);
    TakeEnds(rank);
    return packets;
  }

  // A packet reaches its addressee.
  Counter Deliver(const Packet& packet) {
    Node& node = *nodes_[packet.to];
    const OpNumber op = node.group.WidenOp(packet.header.op_low);
    const PacketNumber number = node.group.WidenNumber(packet.from, packet.header.number_low);
    EXPECT_EQ(op, packet.op);
    EXPECT_EQ(number, packet.number);
    const Counter verdict = node.group.OnPacket(packet.header, op, number, packet.body, now);
    node.counters.Add(verdict);
    TakeEnds(packet.to);
    return verdict;
  }

  // ---- By itself: the wire delivers, timers run ----------------------------------------------
  void At(Instant at, std::function<void()> what) { events_.emplace(at, std::move(what)); }

  void RunUntil(Instant until) {
    while (!stuck_ && NextEvent() <= until) Step();
    now = std::max(now, until);
  }
  // False: an op that was called has not ended by then.
  bool RunUntilEnded(Instant until) {
    while (!stuck_ && !AllEnded() && NextEvent() <= until) Step();
    return !stuck_ && AllEnded();
  }
  bool AllEnded() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
      return node->group.done() == node->group.called() || !node->group.failure().ok();
    });
  }

  Instant now = InstantFromNanos(1'000'000'000);
  // What becomes of a packet; by default each takes 50 us.
  std::function<Fate(const Packet&)> fate = [](const Packet&) { return Fate{microseconds(50)}; };
  std::function<void(const Packet&)> on_send;  // sees every packet that the wire takes
  // Ranks that the wire does not turn: their processes are stopped, or are made up by the test.
  std::vector<Rank> stopped;
  std::uint64_t sent = 0;

 private:
  bool IsStopped(Rank r) const {
    return std::find(stopped.begin(), stopped.end(), r) != stopped.end();
  }

  Instant NextEvent() const {
    Instant at = events_.empty() ? kNever : events_.begin()->first;
    for (Rank r = 0; r < nodes_.size(); ++r) {
      if (!IsStopped(r)) at = std::min(at, std::max(now, nodes_[r]->group.NextWake()));
    }
    return at;
  }

  void Step() {
    const Instant at = NextEvent();
    same_instant_ = at == now ? same_instant_ + 1 : 0;
    stuck_ = same_instant_ > 1000;
    ASSERT_FALSE(stuck_) << "time stands still";
    now = std::max(now, at);
    while (!events_.empty() && events_.begin()->first <= now) {
      const auto what = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      what();
    }
    for (Rank r = 0; r < nodes_.size(); ++r) {
      if (IsStopped(r)) continue;
      for (const Packet& packet : Turn(r)) Travel(packet);
    }
  }

  void Travel(const Packet& packet) {
    ++sent;
    if (on_send) on_send(packet);
    for (const Duration delay : fate(packet)) {
      events_.emplace(now + delay, [this, packet] { Arrive(packet); });
    }
  }
  // What comes for a stopped process waits in its queue.
  void Arrive(const Packet& packet) {
    if (IsStopped(packet.to)) {
      events_.emplace(now + microseconds(500), [this, packet] { Arrive(packet); });
    } else {
      Deliver(packet);
    }
  }

  void Unpack(Rank from, const SendOrder& order, std::vector<Packet>* packets) {
    Node& node = *nodes_[from];
    EXPECT_LE(order.cell_count, settings_.burst_cells_max);
    for (std::uint32_t i = 0; i < order.cell_count; ++i) {
      const SendOrder::Cell& cell = order.cells[i];
      Packet packet;
      packet.from = from;
      packet.to = order.peer;
      packet.op = order.op;
      packet.number = cell.number;
      packet.sent_at = now;
      packet.header.type =
          order.stage == Stage::kScatter ? MessageType::kData : MessageType::kResult;
      packet.header.flags = cell.flags;
      packet.header.sender = static_cast<std::uint16_t>(from);
      packet.header.group = settings_.group_id;
      packet.header.epoch = settings_.epoch;
      packet.header.shard = static_cast<std::uint16_t>(order.shard);
      packet.header.op_low = static_cast<std::uint32_t>(order.op);
      packet.header.cell = cell.cell;
      packet.header.number_low = static_cast<std::uint32_t>(cell.number);
      packet.body = node.actions.Payload(order.stage, order.op, order.shard, cell.cell);
      // Segments of one super-packet: all of one size but the last, which may be shorter.
      if (i + 1 < order.cell_count || order.control_bytes > 0) {
        EXPECT_EQ(packet.body.size(), settings_.cell_bytes);
      }
      packets->push_back(std::move(packet));
    }
    if (order.control_bytes == 0) return;
    Packet packet;
    packet.from = from;
    packet.to = order.peer;
    packet.op = order.control_op;
    packet.number = order.control_number;
    packet.sent_at = now;
    const auto bytes = std::span<const std::byte>(order.control).first(order.control_bytes);
    EXPECT_EQ(wire::ParseHeader(bytes, &packet.header), wire::ParseResult::kOk);
    const auto body = bytes.subspan(wire::kHeaderBytes);
    packet.body.assign(body.begin(), body.end());
    packets->push_back(std::move(packet));
  }

  // Ends of ops, after which the caller overwrites its memory at once.
  void TakeEnds(Rank rank) {
    Node& node = *nodes_[rank];
    while (const std::optional<OpEnd> end = node.group.NextEnd()) {
      EXPECT_FALSE(node.ended.contains(end->op));
      Elements& tensor = node.actions.tensors.at(end->op);
      node.ended[end->op] = {*end, tensor, now};
      std::fill(tensor.begin(), tensor.end(), -1);
    }
  }

  GroupSettings settings_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::multimap<Instant, std::function<void()>> events_;
  int same_instant_ = 0;
  bool stuck_ = false;
};

// The whole result of an op to which the ranks of `set` contributed everywhere.
inline Elements Sum(std::uint64_t set, OpNumber op, std::uint64_t count) {
  Elements sum;
  for (std::uint64_t i = 0; i < count; ++i) sum.push_back(SumOf(set, op, i));
  return sum;
}

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TEST_UNIT_UBT_NET_H_
