#include "examples/sim/swarm.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "examples/sim/run.h"
#include "lib/check.h"
#include "lib/config.h"
#include "lib/random.h"

namespace optireduce::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What the largest op of a seed may be, so that a seed takes a fraction of a second.
constexpr std::uint64_t kPacketsAboutMax = 30'000;

std::atomic<std::uint64_t> announced_seed{0};

void PrintAnnounced() {
  const std::uint64_t seed = announced_seed.load();
  std::fprintf(stderr, "while this ran: optireduce-sim --swarm-seed %llu\n",
               static_cast<unsigned long long>(seed));
}

class Maker {
 public:
  explicit Maker(std::uint64_t seed)
      : seed_(seed),
        large_(seed >= kLargeSeeds),
        random_(seed, 0, "swarm"),
        more_(seed, 0, "swarm: more faults") {}

  Scenario Make() {
    scenario_.job.seed = seed_;
    scenario_.job.ranks = static_cast<std::uint32_t>(large_ ? Between(16, 64) : Between(2, 8));
    scenario_.job.settings = Config::Defaults().settings();
    Numbers();
    Settings();
    Links();
    Faults();
    Calls();
    Arena();
    Lateness();
    Pauses();
    Partitions();
    scenario_.heal_at = Instant{} + milliseconds(Between(1, 300));
    std::swap(random_, more_);  // so that seeds keep what they meant before there were these
    MoreFaults();
    Clogs();
    Shapes();
    Clocks();
    Restart();
    NeverCalled();
    Narrows();
    scenario_.ends_within = EndsWithin();
    return std::move(scenario_);
  }

 private:
  std::uint64_t Between(std::uint64_t least, std::uint64_t most) {
    return least + random_.Below(most - least + 1);
  }
  bool Chance(double probability) { return random_.Chance(probability); }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(random_.Below(values.size())));
  }
  Rank AnyRank() { return static_cast<Rank>(random_.Below(scenario_.job.ranks)); }
  Rank OtherThan(Rank rank) {
    return static_cast<Rank>((rank + Between(1, scenario_.job.ranks - 1)) % scenario_.job.ranks);
  }

  // Op and packet numbers are 32 bits on the wire.
  void Numbers() {
    const bool near_wrap = Chance(0.5);
    const std::uint64_t wraps = std::uint64_t{1} << 32;
    const std::uint64_t ops_short = Between(1, 12);
    const std::uint64_t packets_short = Between(1, 3000);
    const std::uint64_t times = OneOf<std::uint64_t>({1, 1, 2, 77});
    if (!near_wrap) return;
    scenario_.job.ops_before = times * wraps - ops_short;
    scenario_.job.first_number = times * wraps - packets_short;
  }

  void Settings() {
    optireduce::Settings& s = scenario_.job.settings;
    s.ops_behind_max = Between(1, 8);
    s.ops_in_flight_max = Between(1, 8);
    s.bounded_bound = microseconds(OneOf<std::int64_t>({1'000, 2'000, 5'000, 20'000, 50'000}));
    s.bounded_scatter_share_pct = Between(10, 95);
    s.bounded_fetch_grace_pct = OneOf<std::uint64_t>({0, 20, 100, 100, 300});
    s.credit_bytes_total = OneOf<std::uint64_t>({64 << 10, 256 << 10, 1 << 20});
    s.credit_bytes_start = OneOf<std::uint64_t>({2 << 10, 16 << 10, 64 << 10});
    s.bucket_bytes_max = OneOf<std::uint64_t>({64 << 20, 64 << 20, 64 << 20, 96 << 10});
    s.security_tag = OneOf({TagMode::kHeader, TagMode::kHeader, TagMode::kFull, TagMode::kOff});
    s.security_check = CheckMode::kOn;
  }

  void Links() {
    NetworkConfig& network = scenario_.job.network;
    network.packet_bytes_max = OneOf<std::size_t>({1472, 1472, 1452, 548, 8972});
    network.segments_max = OneOf<std::size_t>({44, 44, 2, 7});
    NodeConfig& node = network.node;
    const auto rate = OneOf<std::uint64_t>({1'000'000'000, 10'000'000'000, 10'000'000'000, 0});
    node.uplink.rate_bits_per_s = node.downlink.rate_bits_per_s = rate;
    node.uplink.queue_bytes_max = OneOf<std::uint64_t>({16 << 10, 128 << 10, 1 << 20});
    node.downlink.queue_bytes_max = OneOf<std::uint64_t>({16 << 10, 128 << 10, 1 << 20, 1 << 20});
    node.uplink.propagation = microseconds(Between(0, 20));
    node.uplink.jitter = microseconds(OneOf<std::int64_t>({0, 0, 10, 300}));
    node.downlink.jitter = microseconds(OneOf<std::int64_t>({0, 0, 10, 300}));
    node.uplink_full = Chance(0.8) ? UplinkFull::kBusy : UplinkFull::kDrop;
    node.receive_queue_bytes_max =
        OneOf<std::uint64_t>({8 << 20, 8 << 20, 208 << 10, 208 << 10, 64 << 10});
    scenario_.job.turn_cost = Duration{OneOf<std::int64_t>({500, 2'000, 2'000, 20'000})};
  }

  double Rate(double most) {
    const double light = 0.0005 + 0.02 * random_.Uniform();
    const double heavy = most * random_.Uniform();
    const std::uint64_t which = random_.Below(10);
    if (which < 4) return 0;
    return which < 8 ? std::min(light, most) : heavy;
  }

  void Faults() {
    PairConditions& c = scenario_.job.network.conditions;
    c.loss = Rate(0.3);
    c.burst_begin = Rate(0.02);
    c.burst_end = 2.0 / static_cast<double>(1 + Between(2, 44));
    c.duplicate = Rate(0.2);
    c.corrupt = Rate(0.1);
    c.reorder = Rate(0.5);
    c.reorder_delay_max = microseconds(OneOf<std::int64_t>({5, 100, 2'000}));
  }

  std::uint64_t Count(std::uint64_t element_bytes, std::uint64_t calls) {
    const std::uint64_t n = scenario_.job.ranks;
    const std::uint64_t payload = scenario_.job.network.packet_bytes_max - 60;
    const std::uint64_t bytes_max = kPacketsAboutMax * payload / (2 * (n - 1)) / calls;
    const std::uint64_t most = std::min<std::uint64_t>(bytes_max, 400'000) / element_bytes;
    const std::uint64_t any = Between(1, std::max<std::uint64_t>(most, 1));
    switch (random_.Below(10)) {
      case 0: return OneOf<std::uint64_t>({0, 1, n - 1, n, n + 1});
      case 1: return OneOf<std::uint64_t>({2, 3, 17, 127, 1009, 7919});
      case 2: return Between(1, 600);
      default: return any;
    }
  }

  void Calls() {
    const std::uint64_t calls = Between(1, large_ ? 3 : 14);
    const double bounded = OneOf({0.0, 0.5, 1.0});
    for (std::uint64_t i = 0; i < calls; ++i) {
      CallPlan plan;
      plan.spec.mode = Chance(bounded) ? Mode::kBounded : Mode::kExact;
      do {
        plan.spec.type = static_cast<DataType>(random_.Below(kDataTypes));
        plan.spec.reduce = static_cast<ReduceOp>(random_.Below(kReduceOps));
        if (Chance(0.5)) plan.spec.reduce = ReduceOp::kSum;
      } while (!Supported(plan.spec.type, plan.spec.reduce) ||
               (plan.spec.mode == Mode::kBounded &&
                !MayBeBounded(plan.spec.type, plan.spec.reduce)));
      const bool can_tell =
          CallValues::CanTellSets(plan.spec.type, plan.spec.reduce, scenario_.job.ranks);
      plan.values = can_tell ? ValueKind::kSets : ValueKind::kSmall;
      if (!can_tell && MayBeBounded(plan.spec.type, plan.spec.reduce)) {
        plan.values = ValueKind::kCounts;
      }
      plan.values_seed = random_.Next();
      plan.spec.count = Count(ElementBytes(plan.spec.type), calls);
      plan.spec.key = Chance(0.3) ? random_.Next() : 0;
      plan.in_place = Chance(0.5);
      scenario_.calls.push_back(plan);
    }
    scenario_.calls_in_flight = static_cast<std::uint32_t>(Between(1, 8));
  }

  // Sometimes with hardly more room than the largest op needs.
  void Arena() {
    std::uint64_t shard_bytes = 4096;
    for (const CallPlan& plan : scenario_.calls) {
      const std::uint64_t bytes =
          std::min(plan.spec.count * ElementBytes(plan.spec.type),
                   scenario_.job.settings.bucket_bytes_max);
      // An accumulator is at most four times its element.
      shard_bytes = std::max(shard_bytes, 4 * (bytes / scenario_.job.ranks + 64));
    }
    const std::uint64_t tiny = shard_bytes * 4 / 3 + 8192;
    scenario_.job.settings.arena_bytes_max = Chance(0.3) ? tiny + Between(0, tiny) : 64 << 20;
  }

  void Lateness() {
    const auto skew = OneOf<std::uint64_t>({0, 10, 1'000, 20'000});
    for (Rank rank = 0; rank < scenario_.job.ranks; ++rank) {
      scenario_.start_after.push_back(microseconds(Between(0, skew)));
    }
    const std::uint64_t late = Chance(0.4) ? Between(1, 4) : 0;
    for (std::uint64_t i = 0; i < late; ++i) {
      const Rank rank = AnyRank();
      const std::uint64_t call = random_.Below(scenario_.calls.size());
      scenario_.late_calls.push_back({rank, call, microseconds(Between(100, 60'000))});
    }
  }

  void Pauses() {
    const std::uint64_t pauses = Chance(0.3) ? Between(1, 3) : 0;
    for (std::uint64_t i = 0; i < pauses; ++i) {
      const Rank rank = AnyRank();
      const Instant begin = Instant{} + microseconds(Between(0, 20'000));
      scenario_.pauses.push_back({rank, begin, begin + microseconds(Between(100, 120'000))});
    }
  }

  void Partitions() {
    const std::uint64_t partitions = Chance(0.2) ? Between(1, 2) : 0;
    for (std::uint64_t i = 0; i < partitions; ++i) {
      std::array<std::vector<NodeId>, 2> sides;
      for (NodeId node = 0; node < scenario_.job.ranks; ++node) {
        sides[random_.Below(2)].push_back(node);
      }
      BlockPlan plan;
      plan.pairs = Network::PairsBetween(sides[0], sides[1]);
      if (Chance(0.5)) {
        const auto back = Network::PairsBetween(sides[1], sides[0]);
        plan.pairs.insert(plan.pairs.end(), back.begin(), back.end());
      }
      plan.begin = Instant{} + microseconds(Between(0, 20'000));
      plan.end = plan.begin + microseconds(Between(100, 200'000));
      scenario_.partitions.push_back(std::move(plan));
    }
  }

  void MoreFaults() {
    PairConditions& c = scenario_.job.network.conditions;
    c.burst_loss = OneOf({1.0, 1.0, 0.8, 0.5});
    c.corrupt_caught = Rate(0.1);
    c.send_refused = Rate(0.1);
    c.send_busy = Rate(0.3);
  }

  // Every way to a rank, every way from one, or one way.
  void Clogs() {
    const std::uint64_t clogs = Chance(0.2) ? Between(1, 3) : 0;
    for (std::uint64_t i = 0; i < clogs; ++i) {
      const Rank rank = AnyRank();
      const Rank other = OtherThan(rank);
      const std::uint64_t which = random_.Below(3);
      BlockPlan plan;
      for (Rank peer = 0; peer < scenario_.job.ranks; ++peer) {
        if (peer == rank || (which == 2 && peer != other)) continue;
        plan.pairs.push_back(which == 0 ? NodePair{peer, rank} : NodePair{rank, peer});
      }
      plan.begin = Instant{} + microseconds(Between(0, 20'000));
      plan.end = plan.begin + microseconds(Between(50, 100'000));
      scenario_.clogs.push_back(std::move(plan));
    }
  }

  // Links that are slower or longer than the others, and ways that are worse than the way back.
  void Shapes() {
    const std::uint64_t links = Chance(0.2) ? Between(1, 2) : 0;
    for (std::uint64_t i = 0; i < links; ++i) {
      LinkPlan plan;
      plan.rank = AnyRank();
      plan.uplink = scenario_.job.network.node.uplink;
      plan.downlink = scenario_.job.network.node.downlink;
      LinkConfig& link = Chance(0.5) ? plan.uplink : plan.downlink;
      link.rate_bits_per_s = OneOf<std::uint64_t>({250'000'000, 1'000'000'000});
      link.propagation += microseconds(OneOf<std::int64_t>({0, 50, 500}));
      scenario_.links.push_back(plan);
    }
    const std::uint64_t ways = Chance(0.2) ? Between(1, 3) : 0;
    for (std::uint64_t i = 0; i < ways; ++i) {
      const Rank from = AnyRank();
      WayPlan plan{{from, OtherThan(from)}, scenario_.job.network.conditions};
      plan.conditions.loss = Rate(0.7);
      plan.conditions.extra_delay = microseconds(OneOf<std::int64_t>({0, 20, 300, 2'000}));
      scenario_.ways.push_back(plan);
    }
  }

  void Clocks() {
    if (!Chance(0.3)) return;
    const auto most = OneOf<std::uint64_t>({50, 200, 1000});
    const auto hours = OneOf<std::uint64_t>({0, 1, 24 * 100});
    for (Rank rank = 0; rank < scenario_.job.ranks; ++rank) {
      RankClock clock;
      clock.offset = std::chrono::hours(Between(0, hours)) + microseconds(Between(0, 1'000'000));
      clock.ppm = static_cast<std::int64_t>(Between(0, 2 * most)) - static_cast<std::int64_t>(most);
      scenario_.job.clocks.push_back(clock);
    }
  }

  void Restart() {
    if (!Chance(0.1)) return;
    RestartPlan plan;
    plan.rank = AnyRank();
    plan.killed_at = Instant{} + microseconds(Between(1, 20'000));
    for (Rank rank = 0; rank < scenario_.job.ranks; ++rank) {
      plan.dead_after.push_back(microseconds(Between(0, 5'000)));
      plan.started_after.push_back(microseconds(Between(1, 10'000)));
    }
    plan.same_key = Chance(0.5);
    scenario_.job.epoch = plan.same_key ? 1 : 0;
    scenario_.restart = std::move(plan);
  }

  void NeverCalled() {
    if (!Chance(0.05)) return;
    scenario_.never_calls.push_back({AnyRank(), random_.Below(scenario_.calls.size())});
    for (CallPlan& plan : scenario_.calls) plan.spec.timeout = seconds(5);
  }

  // A path, or all paths from a rank or to it, as where a tunnel comes into the way.
  void Narrows() {
    if (!Chance(0.15)) return;
    const std::size_t packet = scenario_.job.network.packet_bytes_max;
    const std::size_t to = packet > 2'000  ? OneOf<std::size_t>({4'100, 1'472})
                           : packet > 1'000 ? OneOf<std::size_t>({1'440, 1'372, 1'000, 560})
                                            : OneOf<std::size_t>({520, 400, 310});
    const Rank rank = AnyRank();
    const Rank other = OtherThan(rank);
    const std::uint64_t which = random_.Below(3);
    const Instant at = Instant{} + microseconds(Between(0, 20'000));
    for (Rank peer = 0; peer < scenario_.job.ranks; ++peer) {
      if (peer == rank || (which == 2 && peer != other)) continue;
      scenario_.narrows.push_back(
          {which == 0 ? NodePair{peer, rank} : NodePair{rank, peer}, at, to});
    }
  }

  // Two seconds, a bound and a grace for every op, and sixteen times what the bytes take on the
  // slowest link.
  Duration EndsWithin() const {
    const optireduce::Settings& s = scenario_.job.settings;
    Duration within = seconds(2);
    std::uint64_t bytes = 0;
    for (const CallPlan& plan : scenario_.calls) {
      within += static_cast<Duration::rep>(OpsOf(scenario_, plan.spec)) * s.bounded_bound *
                static_cast<Duration::rep>(100 + s.bounded_fetch_grace_pct) / 100;
      bytes += plan.spec.count * ElementBytes(plan.spec.type);
    }
    // At 1 Gbit/s, or what the slowest has.
    const Duration::rep slow = scenario_.links.empty() ? 1 : 4;
    return within + Duration{static_cast<Duration::rep>(16 * 2 * 8 * bytes) * slow};
  }

  const std::uint64_t seed_;
  const bool large_;
  Stream random_;
  Stream more_;
  Scenario scenario_;
};

}  // namespace

Scenario MakeSwarmScenario(std::uint64_t seed) { return Maker(seed).Make(); }

SwarmResult RunSwarmSeed(std::uint64_t seed) {
  AnnounceSeed(seed);
  const Scenario scenario = MakeSwarmScenario(seed);
  SwarmResult result{RunScenario(scenario), {}};
  result.findings = CheckAll(result.evidence);
  if (seed % 8 == 0) {
    const Findings equal = CheckEqualRuns(result.evidence, RunScenario(scenario));
    result.findings.insert(result.findings.end(), equal.begin(), equal.end());
  }
  return result;
}

std::string ReplayCommand(std::uint64_t seed) {
  return "optireduce-sim --swarm-seed " + std::to_string(seed);
}

void AnnounceSeed(std::uint64_t seed) {
  announced_seed.store(seed);
  SetCheckHook(PrintAnnounced);
}

}  // namespace optireduce::sim
