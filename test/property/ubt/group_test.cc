// Groups on a wire that loses, repeats, delays and reorders, many seeds: what P§1 promises holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/random.h"
#include "test/unit/ubt/net.h"

namespace optireduce::ubt {
namespace {

using std::chrono::seconds;

struct Weather {
  double loss = 0;
  double duplicate = 0;
  Duration delay_max{};
};

Weather Draw(Stream& random) {
  const double losses[] = {0, 0.01, 0.1, 0.3};
  return {losses[random.Below(4)], random.Below(2) == 0 ? 0 : 0.05,
          microseconds(50 + random.Below(3) * 400)};
}

GroupSettings DrawSettings(Stream& random) {
  GroupSettings settings = Settings(static_cast<std::uint32_t>(2 + random.Below(4)));
  settings.credit_start_packets = static_cast<std::uint32_t>(1 + random.Below(40));
  settings.credit_max_packets =
      settings.credit_start_packets + static_cast<std::uint32_t>(random.Below(60));
  settings.burst_cells_max = static_cast<std::uint32_t>(1 + random.Below(44));
  settings.ops_in_flight_max = static_cast<std::uint32_t>(1 + random.Below(4));
  // Half of all seeds begin near a wrap.
  if (random.Below(2) == 0) {
    settings.ops_before = (OpNumber{1} << 32) - 1 - random.Below(6);
    settings.first_number = (PacketNumber{1} << 32) - random.Below(200);
  }
  return settings;
}

void Blow(Net& net, Stream& random, const Weather& weather) {
  net.fate = [&random, weather](const Packet&) {
    Fate fate;
    const auto spread = static_cast<std::uint64_t>(weather.delay_max.count());
    if (!random.Chance(weather.loss)) {
      fate.push_back(microseconds(20) + Duration(static_cast<Duration::rep>(random.Below(spread))));
    }
    if (random.Chance(weather.duplicate)) {
      fate.push_back(microseconds(20) +
                     Duration(static_cast<Duration::rep>(random.Below(4 * spread))));
    }
    return fate;
  };
}

// Every rank makes the same calls, each when it has room and a random while after the last.
class Callers {
 public:
  Callers(Net* net, Stream* random, std::vector<OpSpec> specs, Duration pause_max)
      : net_(net), random_(random), specs_(std::move(specs)), pause_max_(pause_max) {
    for (Rank r = 0; r < net->ranks(); ++r) Later(r, 0);
  }
  bool AllCalled() const { return called_ == net_->ranks() * specs_.size(); }

 private:
  void Later(Rank rank, std::size_t index) {
    if (index == specs_.size()) return;
    const auto pause = Duration(static_cast<Duration::rep>(
        random_->Below(static_cast<std::uint64_t>(pause_max_.count()) + 1)));
    net_->At(net_->now + pause + microseconds(100), [this, rank, index] { Try(rank, index); });
  }
  void Try(Rank rank, std::size_t index) {
    if (!(*net_)[rank].group.failure().ok()) return;
    if (net_->Call(rank, specs_[index]) == Admission::kAdmitted) {
      ++called_;
      Later(rank, index + 1);
    } else {
      net_->At(net_->now + microseconds(200), [this, rank, index] { Try(rank, index); });
    }
  }

  Net* net_;
  Stream* random_;
  std::vector<OpSpec> specs_;
  Duration pause_max_;
  std::size_t called_ = 0;
};

bool RunAll(Net& net, const Callers& callers, Duration at_most) {
  const Instant limit = net.now + at_most;
  while (net.now < limit && !(callers.AllCalled() && net.AllEnded())) {
    net.RunUntil(net.now + milliseconds(5));
  }
  return callers.AllCalled() && net.AllEnded();
}

TEST(GroupProperty, ExactIsExactWhateverTheWeather) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Stream random(seed, 0, "exact");
    const GroupSettings settings = DrawSettings(random);
    Net net(settings);
    Blow(net, random, Draw(random));
    std::vector<OpSpec> specs;
    for (int i = 0; i < 8; ++i) specs.push_back(Exact(random.Below(600)));
    const Callers callers(&net, &random, specs, milliseconds(3));
    ASSERT_TRUE(RunAll(net, callers, seconds(20)));
    for (Rank r = 0; r < net.ranks(); ++r) {
      ASSERT_TRUE(net[r].group.failure().ok()) << net[r].group.failure().text();
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const OpNumber op = settings.ops_before + 1 + i;
        ASSERT_EQ(net[r].ended[op].tensor, Sum(SetOfAll(net.ranks()), op, specs[i].count));
        ASSERT_EQ(net[r].ended[op].end.ledger.lost_entries, 0U);
      }
    }
    // Once all know that all are done, nothing is kept.
    for (int i = 0; i < 100; ++i) {
      for (Rank r = 0; r < net.ranks(); ++r) net[r].group.AskToSettle(net.now);
      net.RunUntil(net.now + milliseconds(20));
    }
    for (Rank r = 0; r < net.ranks(); ++r) {
      ASSERT_TRUE(net[r].group.Settled());
      ASSERT_TRUE(net[r].actions.shards.empty());
      ASSERT_TRUE(net[r].actions.staged.empty());
    }
    if (HasFailure()) return;
  }
}

// What an op's sets say: who is in each element, as its owner decided.
void CheckBounded(Net& net, OpNumber op, const OpSpec& spec) {
  const std::uint64_t all = SetOfAll(net.ranks());
  const Elements* agreed = nullptr;
  for (Rank r = 0; r < net.ranks(); ++r) {
    const Ended& ended = net[r].ended[op];
    if (ended.end.outcome != OpEnd::Outcome::kAgreed) continue;
    if (agreed == nullptr) agreed = &ended.tensor;
    ASSERT_EQ(ended.tensor, *agreed) << "op " << op << " rank " << r;  // the same bits
    std::uint64_t lost = 0;
    std::uint64_t own_lost = 0;
    for (std::uint64_t i = 0; i < spec.count; ++i) {
      const std::uint64_t set = SetIn(ended.tensor[i]);
      ASSERT_EQ(ended.tensor[i], SumOf(set, op, i)) << "not the sum of its set";
      lost += static_cast<std::uint64_t>(std::popcount(all & ~set));
      own_lost += (set >> r & 1) == 0 ? 1 : 0;
    }
    ASSERT_EQ(ended.end.ledger.lost_entries, lost);
    ASSERT_EQ(ended.end.ledger.own_left_out_entries, own_lost);
  }
}

TEST(GroupProperty, BoundedEndsInTimeWithTheSameBits) {
  std::uint64_t incomplete = 0;
  std::uint64_t divergent = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Stream random(seed, 0, "bounded");
    GroupSettings settings = DrawSettings(random);
    settings.bound = milliseconds(4 + 4 * random.Below(4));
    settings.fetch_grace = settings.bound;
    Net net(settings);
    Blow(net, random, Draw(random));
    std::vector<OpSpec> specs;
    for (int i = 0; i < 8; ++i) specs.push_back(Bounded(1 + random.Below(600)));
    // Some ranks call late; now and then by more than the bound.
    const Callers callers(&net, &random, specs, random.Below(2) == 0 ? milliseconds(1)
                                                                     : milliseconds(25));
    ASSERT_TRUE(RunAll(net, callers, seconds(20)));
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const OpNumber op = settings.ops_before + 1 + i;
      CheckBounded(net, op, specs[i]);
      for (Rank r = 0; r < net.ranks(); ++r) {
        const OpEnd& end = net[r].ended[op].end;
        incomplete += end.ledger.lost_entries > 0 ? 1 : 0;
        divergent += end.outcome == OpEnd::Outcome::kDivergent ? 1 : 0;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(incomplete, 50U);  // else the weather was too good to show anything
  EXPECT_GT(divergent, 0U);
}

// The bound holds exactly: nobody ends later than the deadline, or the last "held", plus the grace.
TEST(GroupProperty, BoundedOpsOfPunctualRanksEndByDeadlineAndGrace) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Stream random(seed, 0, "time");
    GroupSettings settings = DrawSettings(random);
    settings.ops_in_flight_max = 1;
    settings.bound = milliseconds(8);
    settings.fetch_grace = milliseconds(6);
    Net net(settings);
    Blow(net, random, Draw(random));
    // An owner that says that it holds a cell open gives more time, from then on; and an OPEN that
    // comes late may show that the time was over before.
    std::map<std::pair<OpNumber, Rank>, Instant> held;
    std::map<std::pair<OpNumber, Rank>, std::set<Instant>> opened;
    const auto wire = net.fate;
    net.fate = [&](const Packet& packet) {
      const Fate fate = wire(packet);
      for (const Duration delay : fate) {
        const std::pair key(packet.op, packet.to);
        if (packet.type() == MessageType::kOpen) opened[key].insert(net.now + delay);
        if (packet.type() == MessageType::kNotYet) {
          held[key] = std::max(held[key], net.now + delay);
        }
      }
      return fate;
    };
    for (OpNumber i = 1; i <= 6; ++i) {
      const OpNumber op = settings.ops_before + i;
      net.RunUntil(net.now + milliseconds(3));
      const OpSpec spec = Bounded(1 + random.Below(600));
      const Instant call = net.now;
      for (Rank r = 0; r < net.ranks(); ++r) {
        while (net.Call(r, spec) != Admission::kAdmitted) net.RunUntil(net.now + microseconds(100));
      }
      ASSERT_TRUE(net.RunUntilEnded(call + seconds(2)));
      CheckBounded(net, op, spec);
      for (Rank r = 0; r < net.ranks(); ++r) {
        const OpEnd& end = net[r].ended[op].end;
        if (end.deadline == kNever) {  // all was there before half of the OPENs were
          ASSERT_EQ(end.outcome, OpEnd::Outcome::kAgreed);
          continue;
        }
        const Instant from = std::max(end.deadline, std::min(held[{op, r}], end.ended_at));
        if (!opened[{op, r}].contains(end.ended_at)) {
          ASSERT_LE(end.ended_at, from + settings.fetch_grace);
        }
        if (end.outcome == OpEnd::Outcome::kDivergent) {
          ASSERT_GE(end.ended_at, end.deadline + settings.fetch_grace);
        }
      }
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace optireduce::ubt
