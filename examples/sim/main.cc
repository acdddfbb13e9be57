// optireduce-sim: whole ranks on a simulated network, in virtual time, with all checkers.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/trace_events.h"
#include "examples/sim/checkers.h"
#include "examples/sim/flags.h"
#include "examples/sim/output.h"
#include "examples/sim/run.h"
#include "examples/sim/swarm.h"
#include "examples/sim/timeline.h"

namespace optireduce::sim {
namespace {

constexpr std::uint64_t kShortTimeline = 40;

constexpr std::size_t kTraceEventsMax = 200'000;

double MicrosOf(Instant at) { return static_cast<double>(at.time_since_epoch().count()) / 1e3; }

// False: said why on standard error.
bool WriteTrace(const std::string& path, const Evidence& evidence, TraceEvents* events) {
  AddCalls(evidence, events);
  const std::string text = events->Json();
  std::FILE* const file = std::fopen(path.c_str(), "we");
  const bool written = file != nullptr &&
                       std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (written && closed) return true;
  std::fprintf(stderr, "optireduce-sim: write %s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int RunOne(const ProgramOptions& options, const Scenario& scenario) {
  Timeline timeline(scenario, options.timeline ? ~std::uint64_t{0} : kShortTimeline,
                    [](const std::string& line) { Print(line + "\n"); });
  Watch watch;
  TraceEvents events(kTraceEventsMax);
  for (Rank rank = 0; rank < scenario.job.ranks; ++rank) {
    events.NameRank(rank, "rank " + std::to_string(rank));
  }
  const bool traced = !options.trace_path.empty();
  watch.on_packet = [&](const TraceRecord& record) {
    if (!options.json) timeline.OnPacket(record);
    if (traced && record.kind == TraceKind::kDrop) {
      events.Mark(record.from, "drop to rank " + std::to_string(record.to) + ": " +
                                   std::string(Name(record.reason)),
                  MicrosOf(record.at));
    }
  };
  if (!options.json) {
    watch.on_call = [&](Instant now, Rank rank, const JobCall& call) {
      timeline.OnCall(now, rank, call);
    };
  }
  const Evidence evidence = RunScenario(scenario, watch);
  if (traced && !WriteTrace(options.trace_path, evidence, &events)) return 2;
  Findings findings = CheckAll(evidence);
  if (options.twice || options.swarm_seed) {
    for (std::string& finding : CheckEqualRuns(evidence, RunScenario(scenario))) {
      findings.push_back(std::move(finding));
    }
  }
  if (options.json) {
    Print(JsonOf(scenario, evidence, findings));
  } else {
    timeline.End();
    Print("\n" + TextOf(scenario, evidence, findings));
  }
  return findings.empty() ? 0 : 1;
}

int RunSwarm(const ProgramOptions& options) {
  const auto [first, last] = *options.swarm;
  FailingSeeds failing;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Findings findings = RunSwarmSeed(seed).findings;
    if (findings.empty()) continue;
    std::fprintf(stderr, "seed %llu: %s\n  %s\n", static_cast<unsigned long long>(seed),
                 findings.front().c_str(), ReplayCommand(seed).c_str());
    failing.emplace_back(seed, std::move(findings));
  }
  if (options.json) {
    Print(JsonOfSwarm(first, last, failing));
  } else {
    Print("seeds " + std::to_string(first) + " to " + std::to_string(last) + ": " +
          std::to_string(failing.size()) + " failing\n");
  }
  return failing.empty() ? 0 : 1;
}

int Main(const std::vector<std::string>& arguments) {
  const Result<ProgramOptions> parsed = ParseFlags(arguments);
  if (!parsed.ok()) {
    std::fprintf(stderr, "optireduce-sim: %s\n", parsed.status().text().c_str());
    return 2;
  }
  if (parsed->help) {
    Print(HelpText());
    return 0;
  }
  if (parsed->swarm) return RunSwarm(*parsed);
  if (!parsed->swarm_seed) return RunOne(*parsed, parsed->scenario);
  AnnounceSeed(*parsed->swarm_seed);
  const Scenario scenario = MakeSwarmScenario(*parsed->swarm_seed);
  if (!parsed->json) Print(Describe(scenario) + "\n");
  return RunOne(*parsed, scenario);
}

}  // namespace
}  // namespace optireduce::sim

int main(int argc, char** argv) {
  return optireduce::sim::Main(std::vector<std::string>(argv + 1, argv + argc));
}
