// The results of simulated runs as text for people and as one JSON object. Prints nothing.
#ifndef OPTIREDUCE_EXAMPLES_SIM_OUTPUT_H_
#define OPTIREDUCE_EXAMPLES_SIM_OUTPUT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/trace_events.h"
#include "examples/sim/checkers.h"
#include "examples/sim/evidence.h"

namespace optireduce::sim {

// A run in numbers.
struct Summary {
  bool same_bits = false;
  double max_abs_error = 0;  // against the exact sum, of ranks that agreed
  double max_rel_error = 0;  // of the exact value, or of 1 where that is 0
  std::uint64_t entries = 0;
  std::uint64_t late_entries = 0;  // an op counts once, not once per rank
  std::uint64_t lost_entries = 0;
  std::uint64_t divergent = 0;  // ends, of all ranks and calls
  std::uint64_t failed = 0;
  std::uint64_t not_ended = 0;
};
Summary Summarize(const Evidence& evidence);

std::string TextOf(const Scenario& scenario, const Evidence& evidence, const Findings& findings);
std::string JsonOf(const Scenario& scenario, const Evidence& evidence, const Findings& findings);

// The calls of a run as spans of their ranks, in lanes where they overlap.
void AddCalls(const Evidence& evidence, TraceEvents* events);

// Of a swarm: seeds with findings.
using FailingSeeds = std::vector<std::pair<std::uint64_t, Findings>>;
std::string JsonOfSwarm(std::uint64_t first, std::uint64_t last, const FailingSeeds& failing);

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_OUTPUT_H_
