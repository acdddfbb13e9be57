#include "transport/ubt/pair_probe.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "lib/random.h"

namespace optireduce::ubt {
namespace {

using std::chrono::milliseconds;
using std::chrono::microseconds;

constexpr Duration kOneWay = microseconds(50);
const std::vector<std::uint32_t> kSizes = {8972, 1472, 1372, 1252, 548};

// Probes between `ranks` and a network that asks `passes` about each packet.
struct Net {
  using Passes = std::function<bool(Rank from, Rank to, std::uint32_t bytes)>;
  Net(std::uint32_t ranks, Passes passes_in) : passes(std::move(passes_in)) {
    for (Rank r = 0; r < ranks; ++r) {
      probes.push_back(std::make_unique<PairProbe>(r, ranks, kSizes));
    }
  }

  void Send(Rank from) {
    PairProbe::Order order;
    while (probes[from]->Next(now, &order)) {
      const std::uint32_t bytes = order.answer ? 40 : order.probe.packet_bytes;
      ++packets;
      if (!order.answer) ++asked;
      if (passes(from, order.peer, bytes)) flying.push_back({now + kOneWay, from, order});
    }
  }
  // Until all know what passes, or for `limit`.
  void Run(Duration limit) {
    for (; now < Instant{limit}; now += microseconds(25)) {
      bool all = true;
      for (Rank r = 0; r < probes.size(); ++r) {
        Send(r);
        all &= probes[r]->Done();
      }
      if (all) return;
      while (!flying.empty() && flying.front().at <= now) {
        const Flying it = flying.front();
        flying.pop_front();
        probes[it.order.peer]->OnProbe(it.from, it.order.answer, it.order.probe, now);
      }
    }
  }
  bool AllDone() const {
    for (const auto& probe : probes) {
      if (!probe->Done()) return false;
    }
    return true;
  }

  struct Flying {
    Instant at;
    Rank from;
    PairProbe::Order order;
  };
  Passes passes;
  std::vector<std::unique_ptr<PairProbe>> probes;
  std::deque<Flying> flying;
  Instant now{};
  int packets = 0;
  int asked = 0;
};

bool All(Rank, Rank, std::uint32_t) { return true; }

TEST(PairProbe, OnAWidePathOneRoundTripTells) {
  Net net(4, All);
  net.Run(milliseconds(100));
  ASSERT_TRUE(net.AllDone());
  for (Rank a = 0; a < 4; ++a) {
    for (Rank b = 0; b < 4; ++b) {
      if (a == b) continue;
      EXPECT_EQ(net.probes[a]->passed_bytes(b), 8972U);
      EXPECT_GE(net.probes[a]->round_trip(b), 2 * kOneWay);
      EXPECT_LE(net.probes[a]->round_trip(b), 3 * kOneWay);  // the clock has steps
    }
  }
  EXPECT_EQ(net.asked, 4 * 3 * 2);  // the largest and the smallest, once
}

TEST(PairProbe, ANarrowPathIsFoundInItsDirection) {
  Net net(3, [](Rank from, Rank to, std::uint32_t bytes) {
    return bytes <= (from == 0 && to == 2 ? 1300U : 1500U);
  });
  net.Run(milliseconds(2000));
  ASSERT_TRUE(net.AllDone());
  EXPECT_EQ(net.probes[0]->passed_bytes(2), 1252U);
  EXPECT_EQ(net.probes[2]->passed_bytes(0), 1472U);
  EXPECT_EQ(net.probes[0]->passed_bytes(1), 1472U);
  EXPECT_LT(net.now, Instant{milliseconds(200)});
}

TEST(PairProbe, RandomLossShrinksNothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Stream random(seed, 0, "loss");
    Net net(4, [&](Rank, Rank, std::uint32_t) { return random.Next() % 10 >= 3; });
    net.Run(milliseconds(5000));
    ASSERT_TRUE(net.AllDone()) << "seed " << seed;
    for (Rank peer = 1; peer < 4; ++peer) {
      EXPECT_EQ(net.probes[0]->passed_bytes(peer), 8972U) << "seed " << seed;
    }
  }
}

TEST(PairProbe, APeerThatSleepsIsNotJudged) {
  Net net(2, All);
  PairProbe::Order order;
  std::vector<PairProbe::Order> kept;
  // A second of rounds without one word back.
  for (Instant now{}; now < Instant{milliseconds(1000)}; now += milliseconds(1)) {
    while (net.probes[0]->Next(now, &order)) kept.push_back(order);
  }
  EXPECT_FALSE(net.probes[0]->Done());
  EXPECT_EQ(net.probes[0]->passed_bytes(1), 0U);
  EXPECT_LT(kept.size(), 150U) << "rounds become rarer";
  // It wakes and answers all it finds; what it answers late is enough.
  const Instant late{milliseconds(1000)};
  for (const PairProbe::Order& probe : kept) {
    net.probes[1]->OnProbe(0, false, probe.probe, late);
    while (net.probes[1]->Next(late, &order)) {
      if (order.answer) net.probes[0]->OnProbe(1, true, order.probe, late);
    }
  }
  EXPECT_TRUE(net.probes[0]->Done());
  EXPECT_EQ(net.probes[0]->passed_bytes(1), 8972U);
}

TEST(PairProbe, WhoCannotBeReachedIsKnown) {
  Net net(3, [](Rank from, Rank to, std::uint32_t) { return from + to != 3; });
  net.Run(milliseconds(500));
  EXPECT_TRUE(net.probes[0]->Done());
  EXPECT_FALSE(net.probes[1]->Done());
  EXPECT_EQ(net.probes[1]->passed_bytes(2), 0U);
  EXPECT_EQ(net.probes[1]->passed_bytes(0), 8972U);
  EXPECT_LE(net.probes[1]->NextWake(), net.now + milliseconds(64));
}

TEST(PairProbe, AnswersToNothingChangeNothing) {
  PairProbe probe(0, 2, kSizes);
  PairProbe::Order order;
  while (probe.Next(Instant{}, &order)) {
  }
  const Instant now{milliseconds(1)};
  probe.OnProbe(1, true, {0, 8972}, now);      // no such round
  probe.OnProbe(1, true, {2, 8972}, now);      // not yet
  probe.OnProbe(1, true, {1, 1472}, now);      // not asked in it
  probe.OnProbe(1, true, {1, 4000}, now);      // no such size
  probe.OnProbe(0, true, {1, 8972}, now);      // itself
  probe.OnProbe(7, true, {1, 8972}, now);      // nobody
  EXPECT_EQ(probe.passed_bytes(1), 0U);
  // A flood of questions costs no memory; some of it goes unanswered.
  for (int i = 0; i < 10'000; ++i) probe.OnProbe(1, false, {1, 548}, now);
  int answers = 0;
  while (probe.Next(now, &order)) answers += order.answer ? 1 : 0;
  EXPECT_GT(answers, 0);
  EXPECT_LT(answers, 100);
}

TEST(PairProbe, OneSizeIsAQuestionToo) {
  PairProbe probe(1, 2, {548});
  PairProbe::Order order;
  ASSERT_TRUE(probe.Next(Instant{}, &order));
  EXPECT_FALSE(probe.Next(Instant{}, &order));
  probe.OnProbe(0, true, order.probe, Instant{milliseconds(1)});
  EXPECT_TRUE(probe.Done());
  EXPECT_EQ(probe.passed_bytes(0), 548U);
}

// Later on, when a peer's large packets seem to be lost.
TEST(PairProbe, AsksAnewWhenTold) {
  PairProbe probe(0, 2, kSizes, PairProbe::Asks::kWhenTold);
  EXPECT_TRUE(probe.Done());
  EXPECT_EQ(probe.NextWake(), kNever);
  PairProbe::Order order;
  Instant now{};
  EXPECT_FALSE(probe.Next(now, &order));
  for (const std::uint32_t passes : {1472U, 1252U}) {
    probe.Ask(1, now);
    for (int turns = 0; turns < 10'000 && probe.asking(1); ++turns, now += milliseconds(1)) {
      while (probe.Next(now, &order)) {
        if (order.probe.packet_bytes <= passes) probe.OnProbe(1, true, order.probe, now);
      }
    }
    EXPECT_FALSE(probe.asking(1));
    EXPECT_EQ(probe.passed_bytes(1), passes);
    // What comes late of that says nothing about the next time.
    probe.Ask(1, now);
    probe.OnProbe(1, true, {order.probe.round, 8972}, now);
    EXPECT_TRUE(probe.asking(1));
    while (probe.asking(1) && now < Instant{} + std::chrono::minutes(1)) {
      now += milliseconds(1);
      while (probe.Next(now, &order)) {
      }
    }
  }
}

TEST(PairProbe, APeerThatIsSilentIsGivenUpAndStaysUnknown) {
  PairProbe probe(0, 2, kSizes, PairProbe::Asks::kWhenTold);
  probe.Ask(1, Instant{});
  PairProbe::Order order;
  int sent = 0;
  Instant now{};
  for (; probe.asking(1) && now < Instant{} + std::chrono::minutes(1); now += milliseconds(1)) {
    while (probe.Next(now, &order)) ++sent;
  }
  EXPECT_FALSE(probe.asking(1));
  EXPECT_TRUE(probe.Done());
  EXPECT_EQ(probe.passed_bytes(1), 0u);
  EXPECT_LT(now, Instant{} + std::chrono::seconds(3));
  EXPECT_LT(sent, 24 * 5);
}

}  // namespace
}  // namespace optireduce::ubt
