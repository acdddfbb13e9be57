// The swarm: each seed makes a scenario of its own, with options and faults drawn at random. Half
// of all seeds start near a wrap of the op and packet numbers. Seeds from kLargeSeeds on are jobs
// of 16 to 64 ranks, the others of 2 to 8.
#ifndef OPTIREDUCE_EXAMPLES_SIM_SWARM_H_
#define OPTIREDUCE_EXAMPLES_SIM_SWARM_H_

#include <cstdint>
#include <string>

#include "examples/sim/checkers.h"
#include "examples/sim/scenario.h"

namespace optireduce::sim {

inline constexpr std::uint64_t kLargeSeeds = 1'000'000'000;

// A pure function of the seed.
Scenario MakeSwarmScenario(std::uint64_t seed);

struct SwarmResult {
  Evidence evidence;
  Findings findings;
};

// Runs a seed, every eighth one twice to compare, and checks everything.
SwarmResult RunSwarmSeed(std::uint64_t seed);

// The command that runs this seed again and tells everything about it.
std::string ReplayCommand(std::uint64_t seed);

// Prints the replay command to standard error should a check of the library's own abort the
// process while this seed runs.
void AnnounceSeed(std::uint64_t seed);

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_SWARM_H_
