// Random seeds, and all seeds that ever failed. OPTIREDUCE_TEST_SEEDS says how many random ones;
// for every twenty of them, one is of a large job.
#include "examples/sim/swarm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include "lib/environment.h"
#include "lib/values.h"

namespace optireduce::sim {
namespace {

constexpr std::uint64_t kSeedsDefault = 200;
constexpr std::uint64_t kSmallPerLarge = 20;
constexpr std::uint64_t kParts = 8;  // ctest runs them side by side

std::uint64_t Seeds() {
  const auto text = FindVariable(ReadEnvironment(), "OPTIREDUCE_TEST_SEEDS");
  return text ? ParseCount(*text).value_or(kSeedsDefault) : kSeedsDefault;
}

void ExpectContent(std::uint64_t seed) {
  const SwarmResult result = RunSwarmSeed(seed);
  if (result.findings.empty()) return;
  std::string text;
  for (const std::string& finding : result.findings) text += "\n  " + finding;
  ADD_FAILURE() << "seed " << seed << text << "\nreplay: " << ReplayCommand(seed);
}

class Swarm : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Swarm, AllCheckersAreContent) {
  const std::uint64_t seeds = Seeds();
  for (std::uint64_t seed = 1 + GetParam(); seed <= seeds; seed += kParts) ExpectContent(seed);
}

TEST_P(Swarm, OfLargeJobs) {
  const std::uint64_t seeds = (Seeds() + kSmallPerLarge - 1) / kSmallPerLarge;
  for (std::uint64_t i = GetParam(); i < seeds; i += kParts) ExpectContent(kLargeSeeds + i);
}

INSTANTIATE_TEST_SUITE_P(Part, Swarm, testing::Range<std::uint64_t>(0, kParts));

TEST(SwarmRegression, SeedsThatFailedOnce) {
  std::ifstream file(std::string(OPTIREDUCE_TEST_SOURCE_DIR) + "/../seeds.txt");
  ASSERT_TRUE(file.is_open());
  std::uint64_t ran = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string text = line.substr(0, line.find('#'));
    std::istringstream words(text);
    for (std::string word; words >> word; ++ran) {
      const auto seed = ParseCount(word);
      ASSERT_TRUE(seed.has_value()) << "seeds.txt: " << word;
      ExpectContent(*seed);
    }
  }
  EXPECT_GT(ran, 0u);
}

// The options reach what they are to reach.
TEST(SwarmScenarios, CoverTheirRanges) {
  std::uint64_t near_wrap = 0;
  std::uint64_t bounded = 0;
  std::uint64_t paused = 0;
  std::uint64_t partitioned = 0;
  std::uint64_t late = 0;
  std::uint64_t tiny_arena = 0;
  std::uint64_t clogged = 0;
  std::uint64_t asymmetric = 0;
  std::uint64_t skewed = 0;
  std::uint64_t restarted = 0;
  std::uint64_t never = 0;
  std::uint64_t bursts = 0;
  std::uint64_t refused = 0;
  std::uint64_t busy = 0;
  std::uint64_t caught = 0;
  std::array<std::uint64_t, 9> ranks{};
  std::array<std::uint64_t, kDataTypes> types{};
  constexpr std::uint64_t kScenarios = 400;
  for (std::uint64_t seed = 1; seed <= kScenarios; ++seed) {
    const Scenario s = MakeSwarmScenario(seed);
    ASSERT_GE(s.job.ranks, 2u);
    ASSERT_LE(s.job.ranks, 8u);
    ++ranks[s.job.ranks];
    const std::uint64_t op_low = s.job.ops_before & 0xffff'ffffu;
    near_wrap += op_low + s.calls.size() >= 0xffff'ffe0u ? 1 : 0;
    for (const CallPlan& plan : s.calls) {
      bounded += plan.spec.mode == Mode::kBounded ? 1 : 0;
      ++types[static_cast<std::size_t>(plan.spec.type)];
    }
    paused += s.pauses.empty() ? 0 : 1;
    partitioned += s.partitions.empty() ? 0 : 1;
    late += s.late_calls.empty() ? 0 : 1;
    tiny_arena += s.job.settings.arena_bytes_max < 4 << 20 ? 1 : 0;
    clogged += s.clogs.empty() ? 0 : 1;
    asymmetric += s.links.empty() && s.ways.empty() ? 0 : 1;
    skewed += s.job.clocks.empty() ? 0 : 1;
    restarted += s.restart ? 1 : 0;
    never += s.never_calls.empty() ? 0 : 1;
    const PairConditions& c = s.job.network.conditions;
    bursts += c.burst_begin > 0 ? 1 : 0;
    refused += c.send_refused > 0 ? 1 : 0;
    busy += c.send_busy > 0 ? 1 : 0;
    caught += c.corrupt_caught > 0 ? 1 : 0;
    if (s.never_calls.empty()) {
      EXPECT_LT(QuietFrom(s), Instant{} + std::chrono::seconds(2));
    }
  }
  EXPECT_GT(near_wrap, kScenarios * 2 / 5);
  EXPECT_LT(near_wrap, kScenarios * 3 / 5);
  for (std::uint32_t n = 2; n <= 8; ++n) EXPECT_GT(ranks[n], 20u) << n;
  for (std::size_t type = 0; type < kDataTypes; ++type) EXPECT_GT(types[type], 50u) << type;
  for (const std::uint64_t count : {bounded, paused, partitioned, late, tiny_arena, clogged,
                                    asymmetric, skewed, bursts, refused, busy, caught}) {
    EXPECT_GT(count, kScenarios / 10);
  }
  EXPECT_GT(restarted, kScenarios / 20);
  EXPECT_GT(never, kScenarios / 50);
}

TEST(SwarmScenarios, LargeSeedsAreLargeJobs) {
  std::uint32_t most = 0;
  for (std::uint64_t seed = kLargeSeeds; seed < kLargeSeeds + 200; ++seed) {
    const std::uint32_t ranks = MakeSwarmScenario(seed).job.ranks;
    ASSERT_GE(ranks, 16u);
    ASSERT_LE(ranks, 64u);
    most = std::max(most, ranks);
  }
  EXPECT_GT(most, 60u);
}

TEST(SwarmScenarios, AreAFunctionOfTheSeed) {
  EXPECT_EQ(Describe(MakeSwarmScenario(5)), Describe(MakeSwarmScenario(5)));
  EXPECT_NE(Describe(MakeSwarmScenario(5)), Describe(MakeSwarmScenario(6)));
}

}  // namespace
}  // namespace optireduce::sim
