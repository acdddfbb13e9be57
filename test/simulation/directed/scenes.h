// Scenarios to start from, and a watch that looks at a job while it runs.
#ifndef OPTIREDUCE_TEST_SIMULATION_DIRECTED_SCENES_H_
#define OPTIREDUCE_TEST_SIMULATION_DIRECTED_SCENES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "examples/sim/checkers.h"
#include "examples/sim/run.h"
#include "lib/config.h"

namespace optireduce::sim {

// `calls` float32 sums of `count` elements, on a clean network of 10 Gbit/s.
inline Scenario Scene(std::uint32_t ranks, Mode mode, std::uint64_t count,
                      std::uint64_t calls = 1) {
  Scenario scenario;
  scenario.job.ranks = ranks;
  scenario.job.settings = Config::Defaults().settings();
  scenario.job.settings.mode = mode;
  scenario.job.settings.security_check = CheckMode::kOn;
  CallPlan plan;
  plan.spec.mode = mode;
  plan.spec.count = count;
  plan.values = ValueKind::kSets;
  for (std::uint64_t i = 0; i < calls; ++i) {
    plan.values_seed = i;
    plan.in_place = i % 2 == 1;
    scenario.calls.push_back(plan);
  }
  return scenario;
}

// 30 % loss, duplicates, reordering and corruption.
inline void AddHeavyFaults(Scenario* scenario) {
  PairConditions& conditions = scenario->job.network.conditions;
  conditions.loss = 0.3;
  conditions.duplicate = 0.05;
  conditions.reorder = 0.1;
  conditions.corrupt = 0.02;
}

inline Evidence RunAndCheck(const Scenario& scenario, const Watch& watch = {}) {
  Evidence evidence = RunScenario(scenario, watch);
  for (const std::string& finding : CheckAll(evidence)) ADD_FAILURE() << finding;
  return evidence;
}

inline std::uint64_t Total(const Evidence& evidence, Counter counter) {
  std::uint64_t sum = 0;
  for (const RankEvidence& rank : evidence.by_rank) sum += rank.count(counter);
  return sum;
}

inline std::uint64_t DropsOf(const Evidence& evidence, DropReason reason) {
  return evidence.network.dropped_for(reason);
}

// Calls `look` every `every` of virtual time, 1000 times at most.
inline Watch LookEvery(Duration every, std::function<void(Job&)> look) {
  Watch watch;
  watch.on_start = [every, look](Job& job) {
    for (int i = 1; i <= 1000; ++i) {
      job.world().Schedule(Instant{} + i * every, [&job, look] { look(job); });
    }
  };
  return watch;
}

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TEST_SIMULATION_DIRECTED_SCENES_H_
