// Everything that decides what a simulated run does: options of the job, its calls, and its faults.
// Plain data: one scenario gives one run, bit for bit.
#ifndef OPTIREDUCE_EXAMPLES_SIM_SCENARIO_H_
#define OPTIREDUCE_EXAMPLES_SIM_SCENARIO_H_

#include <cstdint>
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

// A rank makes this call and those after it so much later than it could.
struct LateCall {
  Rank rank = 0;
  std::uint64_t call = 0;
  Duration by{};
};

struct PausePlan {
  Rank rank = 0;
  Instant begin{};
  Instant end{};
};

struct PartitionPlan {
  std::vector<NodePair> pairs;
  Instant begin{};
  Instant end{};
};

struct Scenario {
  JobOptions job;
  std::vector<CallPlan> calls;
  std::uint32_t calls_in_flight = 1;  // of one rank, as its caller has it
  std::vector<Duration> start_after;  // by rank, of its first call
  std::vector<LateCall> late_calls;
  std::vector<PausePlan> pauses;
  std::vector<PartitionPlan> partitions;
  Instant heal_at = kNever;           // faults and partitions end; kNever: they stay
  // Progress: every call ends at most so long after the faults, late calls and pauses are over.
  Duration ends_within = std::chrono::seconds(10);
};

// The number of ops that a call travels as.
std::uint64_t OpsOf(const Scenario& scenario, const CallSpec& spec);

// When the last fault, late call or pause is over, as far as it is known before the run.
Instant QuietFrom(const Scenario& scenario);

// For people: options, one a line, then calls and faults.
std::string Describe(const Scenario& scenario);

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_SCENARIO_H_
