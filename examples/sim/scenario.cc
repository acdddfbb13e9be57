#include "examples/sim/scenario.h"

#include <algorithm>
#include <string_view>

#include "lib/values.h"

namespace optireduce::sim {
namespace {

std::string Ms(Instant at) { return FormatDuration(at - Instant{}); }

std::string PercentText(double probability) { return FormatNumber(probability * 100) + " %"; }

// "name value" pairs, a few a line.
class Lines {
 public:
  void Add(std::string_view name, const std::string& value) {
    const std::string part = std::string(name) + " " + value;
    if (!line_.empty() && line_.size() + part.size() > 96) Break();
    line_ += (line_.empty() ? "" : ", ") + part;
  }
  void Add(std::string_view name, std::uint64_t value) { Add(name, std::to_string(value)); }
  void Break() {
    if (!line_.empty()) text_ += line_ + "\n";
    line_.clear();
  }
  void Line(const std::string& text) {
    Break();
    text_ += text + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string line_;
  std::string text_;
};

void AddConditions(const PairConditions& c, Lines* lines) {
  lines->Add("loss", PercentText(c.loss));
  lines->Add("bursts", PercentText(c.burst_begin) + " of " + FormatNumber(1 / c.burst_end) +
                           " losing " + PercentText(c.burst_loss));
  lines->Add("duplicate", PercentText(c.duplicate));
  lines->Add("corrupt", PercentText(c.corrupt));
  lines->Add("corrupt and caught", PercentText(c.corrupt_caught));
  lines->Add("reorder", PercentText(c.reorder) + " by " + FormatDuration(c.reorder_delay_max));
  lines->Add("busy sends", PercentText(c.send_busy));
  lines->Add("refused sends", PercentText(c.send_refused));
}

void AddNetwork(const NetworkConfig& network, Lines* lines) {
  const NodeConfig& node = network.node;
  const PairConditions& c = network.conditions;
  lines->Add("packets of", network.packet_bytes_max);
  lines->Add("segments", network.segments_max);
  lines->Add("rate", std::to_string(node.uplink.rate_bits_per_s / 1'000'000) + " Mbit/s");
  lines->Add("uplink queue", FormatBytes(node.uplink.queue_bytes_max) +
                                 (node.uplink_full == UplinkFull::kBusy ? " (busy when full)"
                                                                        : " (drops when full)"));
  lines->Add("switch queue", FormatBytes(node.downlink.queue_bytes_max));
  lines->Add("receive queue", FormatBytes(node.receive_queue_bytes_max));
  lines->Add("latency", FormatDuration(node.uplink.propagation));
  lines->Add("jitter", FormatDuration(node.uplink.jitter) + "/" +
                           FormatDuration(node.downlink.jitter));
  AddConditions(c, lines);
}

std::string Pairs(const std::vector<NodePair>& pairs) {
  std::string text;
  for (const NodePair pair : pairs) {
    text += " " + std::to_string(pair.from) + ">" + std::to_string(pair.to);
  }
  return text;
}

std::string LinkText(const LinkConfig& link) {
  return std::to_string(link.rate_bits_per_s / 1'000'000) + " Mbit/s, queue " +
         FormatBytes(link.queue_bytes_max) + ", latency " + FormatDuration(link.propagation);
}

// Everything that happens to one rank or one way only, a line each.
void AddEvents(const Scenario& scenario, Lines* lines) {
  const auto rank_text = [](Rank rank) { return "rank " + std::to_string(rank); };
  for (const LateCall& late : scenario.late_calls) {
    lines->Line(rank_text(late.rank) + " makes call " + std::to_string(late.call) + " later by " +
                FormatDuration(late.by));
  }
  for (const NeverCall& never : scenario.never_calls) {
    lines->Line(rank_text(never.rank) + " never makes call " + std::to_string(never.call));
  }
  for (const PausePlan& pause : scenario.pauses) {
    lines->Line(rank_text(pause.rank) + " stops from " + Ms(pause.begin) + " to " + Ms(pause.end));
  }
  for (const BlockPlan& block : scenario.partitions) {
    lines->Line("blocked from " + Ms(block.begin) + " to " + Ms(block.end) + ":" +
                Pairs(block.pairs));
  }
  for (const BlockPlan& block : scenario.clogs) {
    lines->Line("clogged from " + Ms(block.begin) + " to " + Ms(block.end) + ":" +
                Pairs(block.pairs));
  }
  for (const NarrowPlan& narrow : scenario.narrows) {
    lines->Line("narrow from " + Ms(narrow.at) + " on, packets of " +
                std::to_string(narrow.packet_bytes_max) + " bytes:" + Pairs({narrow.pair}));
  }
  for (const LinkPlan& link : scenario.links) {
    lines->Line(rank_text(link.rank) + " sends at " + LinkText(link.uplink) + "; receives at " +
                LinkText(link.downlink));
  }
  for (const WayPlan& way : scenario.ways) {
    lines->Add("way", Pairs({way.pair}));
    AddConditions(way.conditions, lines);
    lines->Add("more latency", FormatDuration(way.conditions.extra_delay));
    lines->Break();
  }
  for (std::size_t rank = 0; rank < scenario.job.clocks.size(); ++rank) {
    const RankClock& clock = scenario.job.clocks[rank];
    lines->Line(rank_text(static_cast<Rank>(rank)) + " has a clock ahead by " +
                FormatDuration(clock.offset) + " that gains " + std::to_string(clock.ppm) + " ppm");
  }
  if (!scenario.restart) return;
  lines->Line(rank_text(scenario.restart->rank) + " of an earlier run is killed at " +
              Ms(scenario.restart->killed_at) +
              (scenario.restart->same_key ? "; this is the next epoch" : ""));
  for (Rank rank = 0; rank < scenario.job.ranks; ++rank) {
    lines->Line(rank_text(rank) + " starts again at " + Ms(StartOf(scenario, rank)));
  }
}

}  // namespace

std::uint64_t OpsOf(const Scenario& scenario, const CallSpec& spec) {
  const std::uint64_t elements =
      OpElementsMax(scenario.job.settings.bucket_bytes_max, spec.type, spec.reduce);
  return std::max<std::uint64_t>(1, (spec.count + elements - 1) / elements);
}

Instant StartOf(const Scenario& scenario, Rank rank) {
  if (!scenario.restart) return Instant{};
  const RestartPlan& restart = *scenario.restart;
  Instant dead = restart.killed_at;
  if (rank != restart.rank) dead += scenario.job.control_delay + restart.dead_after[rank];
  return dead + restart.started_after[rank];
}

Instant QuietFrom(const Scenario& scenario) {
  Instant quiet{};
  for (Rank rank = 0; rank < scenario.job.ranks; ++rank) {
    quiet = std::max(quiet, StartOf(scenario, rank));
  }
  if (scenario.heal_at != kNever) quiet = std::max(quiet, scenario.heal_at);
  for (const PausePlan& pause : scenario.pauses) quiet = std::max(quiet, pause.end);
  for (const BlockPlan& partition : scenario.partitions) {
    if (scenario.heal_at == kNever) quiet = std::max(quiet, partition.end);
  }
  for (const BlockPlan& clog : scenario.clogs) quiet = std::max(quiet, clog.end);
  for (const NarrowPlan& narrow : scenario.narrows) quiet = std::max(quiet, narrow.at);
  Duration late{};
  for (const Duration after : scenario.start_after) late = std::max(late, after);
  for (const LateCall& call : scenario.late_calls) late += call.by;
  if (!scenario.never_calls.empty()) {
    for (const CallPlan& plan : scenario.calls) late += plan.spec.timeout;
  }
  return quiet + late;
}

std::string Describe(const Scenario& scenario) {
  const JobOptions& job = scenario.job;
  const Settings& s = job.settings;
  Lines lines;
  lines.Add("ranks", job.ranks);
  lines.Add("seed", job.seed);
  lines.Add("ops before", job.ops_before);
  lines.Add("first packet", job.first_number);
  lines.Add("calls in flight", scenario.calls_in_flight);
  lines.Add("ops behind", s.ops_behind_max);
  lines.Add("ops in flight", s.ops_in_flight_max);
  lines.Add("bound", FormatDuration(s.bounded_bound));
  lines.Add("share", std::to_string(s.bounded_scatter_share_pct) + " %");
  lines.Add("grace", std::to_string(s.bounded_fetch_grace_pct) + " %");
  lines.Add("credit", FormatBytes(s.credit_bytes_total) + "/" + FormatBytes(s.credit_bytes_start));
  lines.Add("bucket", FormatBytes(s.bucket_bytes_max));
  lines.Add("arena", FormatBytes(s.arena_bytes_max));
  lines.Add("tag mode", static_cast<std::uint64_t>(s.security_tag));
  lines.Add("turn", FormatDuration(job.turn_cost));
  AddNetwork(job.network, &lines);
  lines.Add("healed at", scenario.heal_at == kNever ? "never" : Ms(scenario.heal_at));
  lines.Break();
  for (std::size_t i = 0; i < scenario.calls.size(); ++i) {
    const CallPlan& plan = scenario.calls[i];
    lines.Line("call " + std::to_string(i) + ": " + std::to_string(plan.spec.count) + " " +
               std::string(Name(plan.spec.type)) + " " + std::string(Name(plan.spec.reduce)) +
               " " + std::string(Name(plan.spec.mode)) + (plan.in_place ? " in place" : ""));
  }
  AddEvents(scenario, &lines);
  return lines.text();
}

}  // namespace optireduce::sim
