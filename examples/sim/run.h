// Runs one scenario to its end and collects the evidence. Makes no judgement: checkers.h does.
#ifndef OPTIREDUCE_EXAMPLES_SIM_RUN_H_
#define OPTIREDUCE_EXAMPLES_SIM_RUN_H_

#include <functional>

#include "examples/sim/evidence.h"
#include "examples/sim/scenario.h"

namespace optireduce::sim {

struct Watch {
  TraceSink on_packet;  // everything that happens on the network
  std::function<void(Instant, Rank, const JobCall&)> on_call;  // made (not ended) and ended calls
  std::function<void(Job&)> on_start;  // before the clock runs: more faults, more callbacks
};

Evidence RunScenario(const Scenario& scenario, const Watch& watch = {});

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_RUN_H_
