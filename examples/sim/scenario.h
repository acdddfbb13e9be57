// Everything that decides what a simulated run does: options of the job, its calls, and its faults.
// Plain data: one scenario gives one run, bit for bit.
#ifndef OPTIREDUCE_EXAMPLES_SIM_SCENARIO_H_
#define OPTIREDUCE_EXAMPLES_SIM_SCENARIO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/sim/job.h"
#include "examples/sim/values.h"

namespace optireduce::sim {

// One call, which every rank makes.
struct CallPlan {
  CallSpec spec;
  bool in_place = false;
  ValueKind values = ValueKind::kSmall;
  std::uint64_t values_seed = 0;
};

// A rank makes this call and those after it so much later than it could; or never.
struct LateCall {
  Rank rank = 0;
  std::uint64_t call = 0;
  Duration by{};
};
struct NeverCall {
  Rank rank = 0;
  std::uint64_t call = 0;
};

struct PausePlan {
  Rank rank = 0;
  Instant begin{};
  Instant end{};
};

// Of a partition (packets are lost) or a clog (they queue until the end).
struct BlockPlan {
  std::vector<NodePair> pairs;
  Instant begin{};
  Instant end{};
};

// From this instant on a path loses packets that are larger.
struct NarrowPlan {
  NodePair pair;
  Instant at{};
  std::size_t packet_bytes_max = 0;
};

// A rank whose links are not like those of the others.
struct LinkPlan {
  Rank rank = 0;
  LinkConfig uplink{};
  LinkConfig downlink{};
};

// A way that is not like the others, nor like the way back.
struct WayPlan {
  NodePair pair;
  PairConditions conditions;
};

// The job is the second run of its ranks. In the first, which makes the same calls, one rank is
// killed; the others hear of it, fail and die, each in its own time, and are started again. What
// the first run sent is still on its way then.
struct RestartPlan {
  Rank rank = 0;
  Instant killed_at{};
  std::vector<Duration> dead_after;   // by rank: after the news of it; not that of the killed one
  std::vector<Duration> started_after;  // by rank: after its own end
  bool same_key = false;  // as after a change of members; else as after a new launch
};

struct Scenario {
  JobOptions job;
  std::vector<CallPlan> calls;
  std::uint32_t calls_in_flight = 1;  // of one rank, as its caller has it
  std::vector<Duration> start_after;  // by rank, of its first call
  std::vector<LateCall> late_calls;
  std::vector<NeverCall> never_calls;
  std::vector<PausePlan> pauses;
  std::vector<BlockPlan> partitions;
  std::vector<BlockPlan> clogs;
  std::vector<NarrowPlan> narrows;
  std::vector<LinkPlan> links;
  std::vector<WayPlan> ways;
  std::optional<RestartPlan> restart;
  Instant heal_at = kNever;           // faults, partitions and clogs end; kNever: they stay
  // Progress: every call ends at most so long after the faults, late calls and pauses are over.
  Duration ends_within = std::chrono::seconds(10);
};

// The number of ops that a call travels as.
std::uint64_t OpsOf(const Scenario& scenario, const CallSpec& spec);

// When the rank is started for the run that is judged.
Instant StartOf(const Scenario& scenario, Rank rank);

// When the last fault, late call, pause or restart is over, as far as it is known before the run.
// After a call that some rank never makes others may wait until its timeout.
Instant QuietFrom(const Scenario& scenario);

// For people: options, one a line, then calls and faults.
std::string Describe(const Scenario& scenario);

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_SCENARIO_H_
