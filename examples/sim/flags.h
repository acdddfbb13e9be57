// The command line of optireduce-sim, as a scenario or a range of swarm seeds. Prints nothing, ends
// no process: faults come back as one status that names them all.
#ifndef OPTIREDUCE_EXAMPLES_SIM_FLAGS_H_
#define OPTIREDUCE_EXAMPLES_SIM_FLAGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "examples/sim/scenario.h"
#include "optireduce/status.h"

namespace optireduce::sim {

struct ProgramOptions {
  bool help = false;
  bool json = false;
  bool timeline = false;  // all of it
  bool twice = false;     // run twice and compare
  std::string trace_path;  // of a file of JSON trace events; empty: none
  std::optional<std::pair<std::uint64_t, std::uint64_t>> swarm;  // first and last seed
  std::optional<std::uint64_t> swarm_seed;
  Scenario scenario;  // unless a swarm is asked for
};

Result<ProgramOptions> ParseFlags(std::span<const std::string> arguments);
std::string HelpText();

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_FLAGS_H_
