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
  const auto value = ParseNumber(text);  // Gbit/s
  if (!value || *value < 0 || *value > 1000) return false;
  const auto bits = static_cast<std::uint64_t>(*value * 1e9);
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
    Flag{"values", "small|sets|random",
         "contributions: whole numbers, powers of two that tell who is in a sum, or random "
         "numbers (sets where the type can)",
         [](Draft& d, const std::string& t) {
           d.values.emplace();
           return Named(t, 3, &*d.values);
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
    Flag{"burst_loss", "PERCENT", "of the packets with which a burst of 44 begins to be lost (0)",
         [](Draft& d, const std::string& t) {
           d.conditions().burst_packets_max = 44;
           return Percent(t, &d.conditions().burst_loss);
         }},
    Flag{"duplicate", "PERCENT", "of the packets that come twice (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().duplicate); }},
    Flag{"reorder", "PERCENT", "of the packets that later ones overtake (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().reorder); }},
    Flag{"corrupt", "PERCENT", "of the packets that a bit flips in (0)",
         [](Draft& d, const std::string& t) { return Percent(t, &d.conditions().corrupt); }},
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
  if (draft.values == ValueKind::kRandom && !MayBeBounded(draft.type, draft.reduce)) {
    faults->push_back("--values random is for sum and avg of floating point types");
  }
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
