// Whatever is lost, nothing is repeated without bound. Every packet of one type (or of all) is lost
// for a second between ranks that have an op open; what goes out meanwhile is counted per ordered
// pair and type.
//
// The bounds, per ordered pair and second: 2000 of each control message, and each cell 1000 times.
// Timers that have backed off fire every 4 ms, 250 times; one ask makes two NACKs at most for one
// op; and a packet that shows that numbers are missing makes one ask more, so that either side's
// timers may add to the other's. Whatever grew with what it causes itself would go with the round
// trip, and pass these bounds by far where that is 10 us.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "lib/random.h"
#include "test/unit/ubt/net.h"

namespace optireduce::ubt {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kControlsPerSecond = 2000;
constexpr std::uint64_t kCellPerSecond = 1000;
constexpr int kAnyType = 0;

struct Storm {
  int lost_type;  // kAnyType: all
  double other_loss;
  bool one_way;   // only what rank 0 sends
  Duration delay;
};

std::string Name(const Storm& storm) {
  return "type " + std::to_string(storm.lost_type) + " one way " + std::to_string(storm.one_way) +
         " other loss " + std::to_string(storm.other_loss) + " delay " +
         std::to_string(storm.delay.count());
}

// The most that went out of anything: of a control type per pair, of a cell per flow.
struct Most {
  std::uint64_t control = 0;
  std::uint64_t cell = 0;
};

Most CountStorm(const Storm& storm, const OpSpec& spec) {
  GroupSettings settings = Settings(3);
  settings.bound = seconds(100);  // nothing closes early
  settings.fetch_grace = seconds(100);
  Net net(settings);
  Stream random(9, 0, "storm");
  net.fate = [&](const Packet&) { return Fate{storm.delay}; };
  // A round trip is measured first, else the repair times of the start hide a storm.
  net.CallAll(Exact(Count(3, 4)));
  EXPECT_TRUE(net.RunUntilEnded(net.now + seconds(1)));

  std::map<std::tuple<Rank, Rank, int>, std::uint64_t> controls;
  std::map<std::tuple<Rank, Rank, int, CellIndex>, std::uint64_t> cells;
  net.on_send = [&](const Packet& packet) {
    const int type = static_cast<int>(packet.type());
    if (wire::IsPayloadType(packet.type())) {
      ++cells[{packet.from, packet.to, type, packet.header.cell}];
    } else {
      ++controls[{packet.from, packet.to, type}];
    }
  };
  net.fate = [&](const Packet& packet) {
    const bool chosen = storm.lost_type == kAnyType ||
                        static_cast<int>(packet.type()) == storm.lost_type;
    if (chosen && (packet.from == 0 || !storm.one_way)) return Fate{};
    if (random.Chance(storm.other_loss)) return Fate{};
    return Fate{storm.delay};
  };
  net.CallAll(spec);
  net.RunUntil(net.now + seconds(1));

  Most most;
  for (const auto& [key, count] : controls) most.control = std::max(most.control, count);
  for (const auto& [key, count] : cells) most.cell = std::max(most.cell, count);
  // Afterwards everything is repaired.
  net.on_send = nullptr;
  net.fate = [](const Packet&) { return Fate{microseconds(50)}; };
  EXPECT_TRUE(net.RunUntilEnded(net.now + seconds(1)));
  for (Rank r = 0; r < 3; ++r) {
    EXPECT_EQ(net[r].ended[2].tensor, Sum(0b111, 2, spec.count));
  }
  return most;
}

TEST(Storm, LossOfOneTypeOrAllOfThem) {
  for (int type = kAnyType; type <= static_cast<int>(MessageType::kNotYet); ++type) {
    for (const bool one_way : {false, true}) {
      for (const double other_loss : {0.0, 0.2}) {
        for (const Duration delay : {Duration(5000), Duration(200'000)}) {
          const Storm storm{type, other_loss, one_way, delay};
          const Most most = CountStorm(storm, Exact(Count(3, 10)));
          EXPECT_LE(most.control, kControlsPerSecond) << Name(storm);
          EXPECT_LE(most.cell, kCellPerSecond) << Name(storm);
        }
      }
    }
  }
}

TEST(Storm, AnOpOfNothingAndAnOpOfOneCell) {
  for (const std::uint64_t count : {0U, 1U}) {
    for (int type = kAnyType; type <= static_cast<int>(MessageType::kNotYet); ++type) {
      const Storm storm{type, 0.1, false, microseconds(5)};
      const Most most = CountStorm(storm, Exact(count));
      EXPECT_LE(most.control, kControlsPerSecond) << Name(storm);
      EXPECT_LE(most.cell, kCellPerSecond) << Name(storm);
    }
  }
}

// A rank that is not there at all: nothing comes from it that would hurry anybody.
TEST(Storm, AStoppedRankIsAskedLessAndLess) {
  Net net(Settings(3));
  net.CallAll(Exact(Count(3, 4)));
  ASSERT_TRUE(net.RunUntilEnded(net.now + seconds(1)));
  net.stopped = {2};
  for (Rank r = 0; r < 2; ++r) net.Call(r, Exact(Count(3, 10)), seconds(100));
  net.RunUntil(net.now + seconds(1));
  std::uint64_t to_stopped = 0;
  net.on_send = [&](const Packet& packet) { to_stopped += packet.to == 2 ? 1U : 0U; };
  net.RunUntil(net.now + seconds(1));
  EXPECT_LE(to_stopped, 1200U);  // of both
  net.stopped.clear();
  net.Call(2, Exact(Count(3, 10)));
  ASSERT_TRUE(net.RunUntilEnded(net.now + seconds(1)));
  EXPECT_EQ(net[2].ended[2].tensor, Sum(0b111, 2, Count(3, 10)));
}

// Under 1 % loss, repeats are about what was lost and nearly none of them is for nothing.
TEST(Storm, OnePercentOfLossIsRepairedByOnePercentOfRepeats) {
  Net net(Settings(4));
  Stream random(5, 0, "loss");
  std::uint64_t payloads = 0;
  std::uint64_t repeats = 0;
  std::uint64_t lost = 0;
  net.on_send = [&](const Packet& packet) {
    if (!wire::IsPayloadType(packet.type())) return;
    ++payloads;
    repeats += packet.repeat() ? 1 : 0;
  };
  net.fate = [&](const Packet& packet) {
    if (random.Chance(0.01)) {
      lost += wire::IsPayloadType(packet.type()) ? 1 : 0;
      return Fate{};
    }
    return Fate{microseconds(50)};
  };
  for (OpNumber op = 1; op <= 30; ++op) {
    net.CallAll(Exact(Count(4, 100)));
    ASSERT_TRUE(net.RunUntilEnded(net.now + seconds(1)));
    for (Rank r = 0; r < 4; ++r) {
      ASSERT_EQ(net[r].ended[op].tensor, Sum(0b1111, op, Count(4, 100)));
    }
  }
  std::uint64_t duplicates = 0;
  for (Rank r = 0; r < 4; ++r) duplicates += net[r].count(Counter::kDuplicate);
  EXPECT_GT(lost, payloads / 200);
  EXPECT_LE(repeats, lost + payloads / 1000);
  EXPECT_LE(duplicates, payloads / 500);  // of control messages, too
}

// A black hole of the path MTU: full cells die, all small packets pass and show gap after gap. What
// is asked in vain is asked more and more seldom, whatever shows that it is missing.
TEST(Storm, APathThatDropsAllFullCellsIsNotAskedAtEveryGap) {
  for (const Duration delay : {microseconds(10), microseconds(300)}) {
    Net net(Settings(3));
    net.fate = [delay](const Packet&) { return Fate{delay}; };
    net.CallAll(Exact(Count(3, 4)));
    ASSERT_TRUE(net.RunUntilEnded(net.now + seconds(1)));
    std::map<std::pair<Rank, Rank>, std::uint64_t> nacks;
    net.on_send = [&](const Packet& packet) {
      if (packet.type() == MessageType::kNack) ++nacks[{packet.from, packet.to}];
    };
    net.fate = [&](const Packet& packet) {
      return wire::IsPayloadType(packet.type()) ? Fate{} : Fate{delay};
    };
    net.CallAll(Exact(Count(3, 40)));
    net.RunUntil(net.now + seconds(1));
    EXPECT_EQ(nacks.size(), 6u);
    for (const auto& [pair, count] : nacks) {
      // A timer that has backed off fires every 4 ms and asks for both stages.
      EXPECT_LT(count, 600u) << pair.first << ">" << pair.second;
    }
    // And once the hole is closed, all of it comes at once.
    net.fate = [delay](const Packet&) { return Fate{delay}; };
    EXPECT_TRUE(net.RunUntilEnded(net.now + milliseconds(30)));
  }
}

}  // namespace
}  // namespace optireduce::ubt
