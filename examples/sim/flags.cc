#include "examples/sim/flags.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "lib/config.h"
#include "lib/values.h"

namespace optireduce::sim {
namespace {

using std::chrono::milliseconds;

// What is known of one rank before its links, clocks and ways are.
struct RankBlock {
  Rank rank = 0;
  Instant begin{};
  Instant end{};
};
struct RateOfRank {
  Rank rank = 0;
  std::uint64_t up = 0;
  std::uint64_t down = 0;
};
struct ClockOfRank {
  Rank rank = 0;
  RankClock clock;
};

struct Draft {
  ProgramOptions options;
  std::uint64_t bytes = 1 << 20;
  std::uint64_t ops = 1;
  std::uint64_t mtu = 1500;
  DataType type = DataType::kFloat32;
  ReduceOp reduce = ReduceOp::kSum;
  Mode mode = Mode::kExact;
  bool in_place = false;
  std::optional<ValueKind> values;
  std::vector<RankBlock> partitions;
  std::vector<RankBlock> clogs;
  std::vector<RateOfRank> rates;
  std::vector<ClockOfRank> clocks;

  Settings& settings() { return options.scenario.job.settings; }
  NetworkConfig& network() { return options.scenario.job.network; }
  PairConditions& conditions() { return network().conditions; }
};

// Each gives true when the text is a value.
bool Count(const std::string& text, std::uint64_t least, std::uint64_t most, std::uint64_t* out) {
  const auto value = ParseCount(text);
  if (!value || *value < least || *value > most) return false;
  *out = *value;
  return true;
}

bool Bytes(const std::string& text, std::uint64_t most, std::uint64_t* out) {
  const auto value = ParseBytes(text);
  if (!value || *value > most) return false;
  *out = *value;
  return true;
}

bool Time(const std::string& text, Duration* out) {
  const auto value = ParseDuration(text);
  if (!value || *value > std::chrono::hours(1)) return false;
  *out = *value;
  return true;
}

bool Percent(const std::string& text, double* out) {
  const auto value = ParseNumber(text);
  if (!value || *value < 0 || *value > 100) return false;
  *out = *value / 100;
  return true;
}

bool Gbits(const std::string& text, std::uint64_t* out) {
  const auto value = ParseNumber(text);
  if (!value || *value < 0 || *value > 1000) return false;
  *out = static_cast<std::uint64_t>(*value * 1e9);
  return true;
}

// One of the enumerators 0 … count-1, by name.
template <typename Enum>
bool Named(const std::string& text, std::size_t count, Enum* out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (Name(static_cast<Enum>(i)) != text) continue;
    *out = static_cast<Enum>(i);
    return true;
  }
  return false;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool RankOf(const std::string& text, Rank* out) {
  std::uint64_t rank = 0;
  if (!Count(text, 0, kRanksMax - 1, &rank)) return false;
  *out = static_cast<Rank>(rank);
  return true;
}

bool TakePause(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  PausePlan pause;
  Duration begin{};
  Duration end{};
  if (parts.size() != 3 || !RankOf(parts[0], &pause.rank) || !Time(parts[1], &begin) ||
      !Time(parts[2], &end) || end <= begin) {
    return false;
  }
  pause.begin = Instant{} + begin;
  pause.end = Instant{} + end;
  draft.options.scenario.pauses.push_back(pause);
  return true;
}

// RANK:BEGIN:END, of all ways from and to the rank.
bool TakeBlock(const std::string& text, std::vector<RankBlock>* blocks) {
  const auto parts = Split(text);
  RankBlock block;
  Duration begin{};
  Duration end{};
  if (parts.size() != 3 || !RankOf(parts[0], &block.rank) || !Time(parts[1], &begin) ||
      !Time(parts[2], &end) || end <= begin) {
    return false;
  }
  block.begin = Instant{} + begin;
  block.end = Instant{} + end;
  blocks->push_back(block);
  return true;
}

bool TakeWay(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  WayPlan way;
  if (parts.size() != 3 || !RankOf(parts[0], &way.pair.from) || !RankOf(parts[1], &way.pair.to) ||
      way.pair.from == way.pair.to || !Percent(parts[2], &way.conditions.loss)) {
    return false;
  }
  draft.options.scenario.ways.push_back(way);
  return true;
}

bool TakeNarrow(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  NarrowPlan narrow;
  Duration at{};
  std::uint64_t mtu = 0;
  if (parts.size() != 4 || !RankOf(parts[0], &narrow.pair.from) ||
      !RankOf(parts[1], &narrow.pair.to) || narrow.pair.from == narrow.pair.to ||
      !Time(parts[2], &at) || !Count(parts[3], 68, 65'535, &mtu)) {
    return false;
  }
  narrow.at = Instant{} + at;
  narrow.packet_bytes_max = mtu - 28;  // IPv4 and UDP
  draft.options.scenario.narrows.push_back(narrow);
  return true;
}

bool TakeLink(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  RateOfRank link;
  if (parts.size() != 3 || !RankOf(parts[0], &link.rank) || !Gbits(parts[1], &link.up) ||
      !Gbits(parts[2], &link.down)) {
    return false;
  }
  draft.rates.push_back(link);
  return true;
}

bool TakeClock(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  ClockOfRank clock;
  if (parts.size() != 3 || !RankOf(parts[0], &clock.rank) || !Time(parts[1], &clock.clock.offset)) {
    return false;
  }
  const bool loses = parts[2].starts_with("-");
  std::uint64_t ppm = 0;
  if (!Count(parts[2].substr(loses ? 1 : 0), 0, 1000, &ppm)) return false;
  clock.clock.ppm = loses ? -static_cast<std::int64_t>(ppm) : static_cast<std::int64_t>(ppm);
  draft.clocks.push_back(clock);
  return true;
}

bool TakeNever(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  NeverCall never;
  if (parts.size() != 2 || !RankOf(parts[0], &never.rank) ||
      !Count(parts[1], 0, 100'000, &never.call)) {
    return false;
  }
  draft.options.scenario.never_calls.push_back(never);
  return true;
}

bool TakeRestart(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  RestartPlan plan;
  Duration at{};
  if (parts.size() != 2 || !RankOf(parts[0], &plan.rank) || !Time(parts[1], &at)) return false;
  plan.killed_at = Instant{} + at;
  draft.options.scenario.restart = plan;
  return true;
}

bool TakeLate(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  LateCall late;
  if (parts.size() != 2 || !RankOf(parts[0], &late.rank) || !Time(parts[1], &late.by)) {
    return false;
  }
  draft.options.scenario.late_calls.push_back(late);
  return true;
}

bool TakeSwarm(Draft& draft, const std::string& text) {
  const auto parts = Split(text);
  std::pair<std::uint64_t, std::uint64_t> seeds;
  const std::uint64_t most = ~std::uint64_t{0} - 1;
  if (parts.size() != 2 || !Count(parts[0], 0, most, &seeds.first) ||
      !Count(parts[1], seeds.first, most, &seeds.second)) {
    return false;
  }
  draft.options.swarm = seeds;
  return true;
}

bool TakeRate(Draft& draft, const std::string& text) {
  std::uint64_t bits = 0;
  if (!Gbits(text, &bits)) return false;
  draft.network().node.uplink.rate_bits_per_s = bits;
  draft.network().node.downlink.rate_bits_per_s = bits;
  return true;
}

struct Flag {
  std::string_view name;
  std::string_view value;  // what it is; empty: none is taken
  std::string_view help;
  bool (*take)(Draft& draft, const std::string& text);
};

constexpr std::uint64_t kRanksHere = 64;

// The default of each is that of a machine's own network: 10 Gbit/s, no faults.
const std::array kFlags = {
    Flag{"ranks", "N", "ranks of the job, 2 to 64 (4)",
         [](Draft& d, const std::string& t) {
           std::uint64_t n = 0;
           if (!Count(t, 2, kRanksHere, &n)) return false;
           d.options.scenario.job.ranks = static_cast<std::uint32_t>(n);
           return true;
         }},
    Flag{"seed", "N", "of everything random (1)",
         [](Draft& d, const std::string& t) {
           return Count(t, 0, ~std::uint64_t{0}, &d.options.scenario.job.seed);
         }},
    Flag{"bytes", "SIZE", "of each rank's tensor, such as 4K or 25M (1M)",
         [](Draft& d, const std::string& t) { return Bytes(t, std::uint64_t{1} << 30, &d.bytes); }},
    Flag{"ops", "N", "calls of each rank, one after the other (1)",
         [](Draft& d, const std::string& t) { return Count(t, 1, 100'000, &d.ops); }},
    Flag{"in_flight", "N", "calls that a rank makes without waiting for the first (1)",
         [](Draft& d, const std::string& t) {
           std::uint64_t n = 0;
           if (!Count(t, 1, 1024, &n)) return false;
           d.options.scenario.calls_in_flight = static_cast<std::uint32_t>(n);
           return true;
         }},
    Flag{"mode", "exact|bounded", "of the calls (exact)",
         [](Draft& d, const std::string& t) { return Named(t, 2, &d.mode); }},
    Flag{"type", "TYPE", "of the elements (float32)",
         [](Draft& d, const std::string& t) { return Named(t, kDataTypes, &d.type); }},
    Flag{"op", "OP", "sum, avg, prod, min, max, band, bor or bxor (sum)",
         [](Draft& d, const std::string& t) {
           constexpr std::array<std::string_view, kReduceOps> kShort = {
               "sum", "avg", "prod", "min", "max", "band", "bor", "bxor"};
           for (std::size_t i = 0; i < kReduceOps; ++i) {
             d.reduce = static_cast<ReduceOp>(i);
             if (t == kShort[i] || t == Name(d.reduce)) return true;
           }
           return false;
         }},
    Flag{"values", "small|sets|random|counts",
         "contributions: whole numbers, powers of two that tell who is in a sum, random numbers, "
         "or equal ones that tell how many are in a sum (sets where the type can)",
         [](Draft& d, const std::string& t) {
           d.values.emplace();
           return Named(t, 4, &*d.values);
         }},
    Flag{"in_place", "", "the result replaces the contribution",
         [](Draft& d, const std::string&) { return d.in_place = true; }},
    Flag{"bound", "DURATION", "of a bounded op, to its deadline (option bounded.bound)",
         [](Draft& d, const std::string& t) {
           return Time(t, &d.settings().bounded_bound) && d.settings().bounded_bound > Duration{0};
         }},
    Flag{"share_pct", "N", "of the bound, after which owners close (bounded.scatter_share_pct)",
         [](Draft& d, const std::string& t) {
           return Count(t, 10, 95, &d.settings().bounded_scatter_share_pct);
         }},
    Flag{"grace_pct", "N", "of the bound, for late results (bounded.fetch_grace_pct)",
         [](Draft& d, const std::string& t) {
           return Count(t, 0, 1000, &d.settings().bounded_fetch_grace_pct);
         }},
    Flag{"loss", "PERCENT", "of the packets that the network loses (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().loss); }},
    Flag{"burst_loss", "PERCENT", "of the packets with which a burst begins to be lost (0)",
         [](Draft& d, const std::string& t) {
           if (d.conditions().burst_end == 1) d.conditions().burst_end = 1.0 / 20;
           return Percent(t, &d.conditions().burst_begin);
         }},
    Flag{"burst_packets", "N", "of a burst, on average (20)",
         [](Draft& d, const std::string& t) {
           std::uint64_t n = 0;
           if (!Count(t, 1, 100'000, &n)) return false;
           d.conditions().burst_end = 1 / static_cast<double>(n);
           return true;
         }},
    Flag{"duplicate", "PERCENT", "of the packets that come twice (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().duplicate); }},
    Flag{"reorder", "PERCENT", "of the packets that later ones overtake (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().reorder); }},
    Flag{"corrupt", "PERCENT", "of the packets that a bit flips in (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().corrupt); }},
    Flag{"corrupt_caught", "PERCENT", "of the packets whose UDP checksum shows damage (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().corrupt_caught); }},
    Flag{"send_busy", "PERCENT", "of the sends that the kernel puts off, with EAGAIN (0)",
         [](Draft& d, const std::string& t) {
           return Percent(t, &d.conditions().send_busy) && d.conditions().send_busy < 1;
         }},
    Flag{"send_refused", "PERCENT", "of the packets that the kernel refuses, with an error (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().send_refused); }},
    Flag{"way", "FROM:TO:PERCENT", "loss of one way only, such as 1:0:60; may be repeated",
         TakeWay},
    Flag{"narrow", "FROM:TO:AT:MTU", "a way loses larger IP packets from then on; may be repeated",
         TakeNarrow},
    Flag{"link", "RANK:GBITS:GBITS", "rates of a rank's uplink and downlink; may be repeated",
         TakeLink},
    Flag{"partition", "RANK:BEGIN:END", "cuts a rank off from all others; may be repeated",
         [](Draft& d, const std::string& t) { return TakeBlock(t, &d.partitions); }},
    Flag{"clog", "RANK:BEGIN:END", "packets to and from a rank wait until the end; may be repeated",
         [](Draft& d, const std::string& t) { return TakeBlock(t, &d.clogs); }},
    Flag{"heal", "DURATION", "after which all these faults end (never)",
         [](Draft& d, const std::string& t) {
           Duration at{};
           if (!Time(t, &at)) return false;
           d.options.scenario.heal_at = Instant{} + at;
           return true;
         }},
    Flag{"pause", "RANK:BEGIN:END", "stops a rank's process, such as 2:1ms:50ms; may be repeated",
         TakePause},
    Flag{"late", "RANK:DURATION", "a rank's first call comes so much later; may be repeated",
         TakeLate},
    Flag{"never", "RANK:CALL", "a rank does not make this call, from 0, nor later ones", TakeNever},
    Flag{"clock", "RANK:AHEAD:PPM", "a rank's clock, such as 2:1h:-200; may be repeated",
         TakeClock},
    Flag{"restart", "RANK:AT", "an earlier run, in which this rank is killed, comes first",
         TakeRestart},
    Flag{"ops_before", "N", "number of the op before the first, such as 4294967290 (0)",
         [](Draft& d, const std::string& t) {
           return Count(t, 0, std::uint64_t{1} << 60, &d.options.scenario.job.ops_before);
         }},
    Flag{"first_packet", "N", "number of each pair's first packet (1)",
         [](Draft& d, const std::string& t) {
           return Count(t, 1, std::uint64_t{1} << 60, &d.options.scenario.job.first_number);
         }},
    Flag{"rate", "GBITS", "of every link; 0: packets take no time on it (10)", TakeRate},
    Flag{"latency", "DURATION", "of each of the two links of a way (2us)",
         [](Draft& d, const std::string& t) {
           NodeConfig& node = d.network().node;
           return Time(t, &node.uplink.propagation) && Time(t, &node.downlink.propagation);
         }},
    Flag{"jitter", "DURATION", "up to so much more per packet and link (0)",
         [](Draft& d, const std::string& t) {
           NodeConfig& node = d.network().node;
           return Time(t, &node.uplink.jitter) && Time(t, &node.downlink.jitter);
         }},
    Flag{"receive_queue", "SIZE", "kernel memory of a rank's receive queue (8M)",
         [](Draft& d, const std::string& t) {
           return Bytes(t, std::uint64_t{1} << 30, &d.network().node.receive_queue_bytes_max) &&
                  d.network().node.receive_queue_bytes_max >= 16 << 10;
         }},
    Flag{"switch_queue", "SIZE", "of a switch port (1M)",
         [](Draft& d, const std::string& t) {
           return Bytes(t, std::uint64_t{1} << 30, &d.network().node.downlink.queue_bytes_max);
         }},
    Flag{"mtu", "BYTES", "largest IP packet, 576 to 65535 (1500)",
         [](Draft& d, const std::string& t) { return Count(t, 576, 65'535, &d.mtu); }},
    Flag{"ops_behind_max", "N", "option ops_behind_max",
         [](Draft& d, const std::string& t) {
           return Count(t, 1, 32, &d.settings().ops_behind_max);
         }},
    Flag{"arena", "SIZE", "option arena.bytes_max",
         [](Draft& d, const std::string& t) {
           return Bytes(t, std::uint64_t{1} << 36, &d.settings().arena_bytes_max) &&
                  d.settings().arena_bytes_max >= 1 << 20;
         }},
    Flag{"timeline", "", "print the whole timeline, not only its beginning",
         [](Draft& d, const std::string&) { return d.options.timeline = true; }},
    Flag{"twice", "", "run twice and compare the traces",
         [](Draft& d, const std::string&) { return d.options.twice = true; }},
    Flag{"json", "", "one JSON object on standard output, and nothing else",
         [](Draft& d, const std::string&) { return d.options.json = true; }},
    Flag{"trace", "FILE", "calls and lost packets as JSON trace events, for ui.perfetto.dev",
         [](Draft& d, const std::string& t) {
           d.options.trace_path = t;
           return !t.empty();
         }},
    Flag{"swarm", "FIRST:LAST", "run these seeds, each with options and faults of its own",
         TakeSwarm},
    Flag{"swarm-seed", "N", "run one seed of the swarm and tell about it",
         [](Draft& d, const std::string& t) {
           d.options.swarm_seed.emplace();
           return Count(t, 0, ~std::uint64_t{0} - 1, &*d.options.swarm_seed);
         }},
    Flag{"help", "", "print this", [](Draft& d, const std::string&) {
           return d.options.help = true;
         }},
};

std::string Joined(const std::vector<std::string>& faults) {
  std::string text;
  for (const std::string& fault : faults) text += (text.empty() ? "" : "; ") + fault;
  return text;
}

// Whether flags that are right by themselves are right together.
void CheckTogether(const Draft& draft, std::vector<std::string>* faults) {
  const Scenario& s = draft.options.scenario;
  const auto has_rank = [&](Rank rank) {
    if (rank >= s.job.ranks) {
      faults->push_back("there is no rank " + std::to_string(rank) + " in a job of " +
                        std::to_string(s.job.ranks));
    }
  };
  for (const PausePlan& pause : s.pauses) has_rank(pause.rank);
  for (const LateCall& late : s.late_calls) has_rank(late.rank);
  for (const NeverCall& never : s.never_calls) has_rank(never.rank);
  for (const RankBlock& block : draft.partitions) has_rank(block.rank);
  for (const RankBlock& block : draft.clogs) has_rank(block.rank);
  for (const RateOfRank& rate : draft.rates) has_rank(rate.rank);
  for (const ClockOfRank& clock : draft.clocks) has_rank(clock.rank);
  for (const WayPlan& way : s.ways) has_rank(std::max(way.pair.from, way.pair.to));
  for (const NarrowPlan& one : s.narrows) has_rank(std::max(one.pair.from, one.pair.to));
  if (s.restart) has_rank(s.restart->rank);
  const std::string what = std::string(Name(draft.reduce)) + " of " + std::string(Name(draft.type));
  if (!Supported(draft.type, draft.reduce)) {
    faults->push_back("there is no " + what);
    return;
  }
  if (draft.mode == Mode::kBounded && !MayBeBounded(draft.type, draft.reduce)) {
    faults->push_back("--mode bounded is for sum and avg of floating point types, not " + what);
  }
  if (draft.bytes % ElementBytes(draft.type) != 0) {
    faults->push_back("--bytes " + std::to_string(draft.bytes) + " are no whole " +
                      std::string(Name(draft.type)) + " elements");
  }
  if (draft.values == ValueKind::kSets &&
      !CallValues::CanTellSets(draft.type, draft.reduce, s.job.ranks)) {
    faults->push_back("--values sets cannot tell the sets of " + std::to_string(s.job.ranks) +
                      " ranks in " + what);
  }
  if ((draft.values == ValueKind::kRandom || draft.values == ValueKind::kCounts) &&
      !MayBeBounded(draft.type, draft.reduce)) {
    faults->push_back("--values " + std::string(Name(*draft.values)) +
                      " is for sum and avg of floating point types");
  }
}

BlockPlan BlockOf(const RankBlock& block, std::uint32_t ranks) {
  BlockPlan plan{{}, block.begin, block.end};
  for (Rank peer = 0; peer < ranks; ++peer) {
    if (peer == block.rank) continue;
    plan.pairs.push_back({block.rank, peer});
    plan.pairs.push_back({peer, block.rank});
  }
  return plan;
}

// What is known only once all flags are in.
void AddFaults(Draft& draft) {
  Scenario& s = draft.options.scenario;
  const std::uint32_t ranks = s.job.ranks;
  for (const RankBlock& block : draft.partitions) s.partitions.push_back(BlockOf(block, ranks));
  for (const RankBlock& block : draft.clogs) s.clogs.push_back(BlockOf(block, ranks));
  for (const RateOfRank& rate : draft.rates) {
    LinkPlan plan{rate.rank, s.job.network.node.uplink, s.job.network.node.downlink};
    plan.uplink.rate_bits_per_s = rate.up;
    plan.downlink.rate_bits_per_s = rate.down;
    s.links.push_back(plan);
  }
  if (!draft.clocks.empty()) s.job.clocks.resize(ranks);
  for (const ClockOfRank& clock : draft.clocks) s.job.clocks[clock.rank] = clock.clock;
  for (WayPlan& way : s.ways) {
    const double loss = way.conditions.loss;
    way.conditions = s.job.network.conditions;
    way.conditions.loss = loss;
  }
  if (!s.restart) return;
  s.restart->dead_after.assign(ranks, milliseconds(1));
  s.restart->started_after.assign(ranks, milliseconds(1));
}

void AddCalls(Draft& draft) {
  Scenario& s = draft.options.scenario;
  s.job.network.packet_bytes_max = draft.mtu - 28;  // IPv4 and UDP
  s.job.settings.mode = draft.mode;
  CallPlan plan;
  plan.spec.type = draft.type;
  plan.spec.reduce = draft.reduce;
  plan.spec.mode = draft.mode;
  plan.spec.count = draft.bytes / ElementBytes(draft.type);
  plan.spec.timeout = s.job.settings.op_timeout;
  plan.in_place = draft.in_place;
  plan.values = draft.values.value_or(
      CallValues::CanTellSets(draft.type, draft.reduce, s.job.ranks) ? ValueKind::kSets
                                                                     : ValueKind::kSmall);
  // A flipped bit of a payload shows only where payloads are checked.
  if (s.job.network.conditions.corrupt > 0) s.job.settings.security_check = CheckMode::kOn;
  for (std::uint64_t i = 0; i < draft.ops; ++i) {
    plan.values_seed = s.job.seed + i;
    s.calls.push_back(plan);
  }
  s.ends_within = s.job.settings.op_timeout + std::chrono::seconds(30);
}

}  // namespace

Result<ProgramOptions> ParseFlags(std::span<const std::string> arguments) {
  Draft draft;
  draft.options.scenario.job.ranks = 4;
  draft.options.scenario.job.settings = Config::Defaults().settings();
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto flag = std::find_if(kFlags.begin(), kFlags.end(), [&](const Flag& f) {
      return name == "--" + std::string(f.name);
    });
    if (flag == kFlags.end()) {
      faults.push_back("'" + argument + "' is not a flag (--help lists them)");
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (!flag->value.empty() && i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (flag->value.empty() && equals != std::string::npos) {
      faults.push_back(name + " takes no value");
    } else if (!flag->value.empty() && value.empty()) {
      faults.push_back(name + " lacks its value (" + std::string(flag->value) + ")");
    } else if (!flag->take(draft, value)) {
      faults.push_back(name + ": '" + value + "' is not right: " + std::string(flag->value) +
                       ", " + std::string(flag->help));
    }
  }
  if (faults.empty()) CheckTogether(draft, &faults);
  if (!faults.empty()) return Status(Code::kInvalidArgument, Joined(faults));
  AddFaults(draft);
  AddCalls(draft);
  return std::move(draft.options);
}

std::string HelpText() {
  std::string text =
      "optireduce-sim: whole ranks on a simulated network, in virtual time.\n\n"
      "  optireduce-sim --ranks 4 --loss 1 --bytes 1M\n"
      "  optireduce-sim --ranks 8 --mode bounded --bound 20ms --loss 30 --json\n"
      "  optireduce-sim --swarm 1:200\n\n"
      "The exit code is 0 when every checker is content, 1 when one is not, 2 for a wrong flag.\n"
      "\n";
  for (const Flag& flag : kFlags) {
    text += "  --" + std::string(flag.name);
    if (!flag.value.empty()) text += " " + std::string(flag.value);
    text += "\n      " + std::string(flag.help) + "\n";
  }
  return text;
}

}  // namespace optireduce::sim
