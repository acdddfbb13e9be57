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
  lines->Add("loss", PercentText(c.loss));
  lines->Add("bursts of loss", PercentText(c.burst_loss) + " x " +
                                   std::to_string(c.burst_packets_max));
  lines->Add("duplicate", PercentText(c.duplicate));
  lines->Add("corrupt", PercentText(c.corrupt));
  lines->Add("reorder",
             PercentText(c.reorder) + " by " + FormatDuration(c.reorder_delay_max));
}

}  // namespace

std::uint64_t OpsOf(const Scenario& scenario, const CallSpec& spec) {
  const std::uint64_t elements =
      OpElementsMax(scenario.job.settings.bucket_bytes_max, spec.type, spec.reduce);
  return std::max<std::uint64_t>(1, (spec.count + elements - 1) / elements);
}

Instant QuietFrom(const Scenario& scenario) {
  Instant quiet{};
  if (scenario.heal_at != kNever) quiet = scenario.heal_at;
  for (const PausePlan& pause : scenario.pauses) quiet = std::max(quiet, pause.end);
  for (const PartitionPlan& partition : scenario.partitions) {
    if (scenario.heal_at == kNever) quiet = std::max(quiet, partition.end);
  }
  Duration late{};
  for (const Duration after : scenario.start_after) late = std::max(late, after);
  for (const LateCall& call : scenario.late_calls) late += call.by;
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
  for (const LateCall& late : scenario.late_calls) {
    lines.Line("rank " + std::to_string(late.rank) + " makes call " + std::to_string(late.call) +
               " later by " + FormatDuration(late.by));
  }
  for (const PausePlan& pause : scenario.pauses) {
    lines.Line("rank " + std::to_string(pause.rank) + " stops from " + Ms(pause.begin) + " to " +
               Ms(pause.end));
  }
  for (const PartitionPlan& partition : scenario.partitions) {
    std::string text = "blocked from " + Ms(partition.begin) + " to " + Ms(partition.end) + ":";
    for (const NodePair pair : partition.pairs) {
      text += " " + std::to_string(pair.from) + ">" + std::to_string(pair.to);
    }
    lines.Line(text);
  }
  return lines.text();
}

}  // namespace optireduce::sim
