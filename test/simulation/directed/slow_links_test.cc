// Links of 1 Gbit/s: tensors of any size take the time of their bytes, and never stall.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "test/simulation/directed/scenes.h"

namespace optireduce::sim {
namespace {

using std::chrono::milliseconds;

// From the first rank's call to the last rank's end.
Duration Took(const CallsEvidence& call) {
  Instant first = kNever;
  Instant last{};
  for (const CallEvidence& rank : call.by_rank) {
    first = std::min(first, rank.called_at);
    last = std::max(last, rank.ended_at);
  }
  return last - first;
}

TEST(SlowLinks, EverySizeTakesTheTimeOfItsBytes) {
  constexpr std::uint32_t kRanks = 8;
  constexpr std::uint64_t kBytesPerSecond = 125'000'000;
  Scenario scenario = Scene(kRanks, Mode::kExact, 0, 7);
  scenario.job.network.node.uplink.rate_bits_per_s = 8 * kBytesPerSecond;
  scenario.job.network.node.downlink.rate_bits_per_s = 8 * kBytesPerSecond;
  scenario.job.settings.bucket_bytes_max = std::uint64_t{2} << 20;
  const std::uint64_t counts[] = {1'000, 10'000, 100'000, 200'000, 400'000, 1'000'000, 2'000'000};
  for (std::size_t i = 0; i < std::size(counts); ++i) scenario.calls[i].spec.count = counts[i];
  const Evidence evidence = RunAndCheck(scenario);
  Duration before{0};
  for (std::size_t i = 0; i < std::size(counts); ++i) {
    // Each link carries the tensor less this rank's share, once in either stage.
    const std::uint64_t bytes = counts[i] * sizeof(float) * 2 * (kRanks - 1) / kRanks;
    const Duration least{static_cast<std::int64_t>(bytes * 1'000'000'000 / kBytesPerSecond)};
    const Duration took = Took(evidence.calls[i]);
    std::printf("%llu elements: %.2f ms, at least %.2f ms\n",
                static_cast<unsigned long long>(counts[i]), static_cast<double>(took.count()) / 1e6,
                static_cast<double>(least.count()) / 1e6);
    EXPECT_GE(took, least) << counts[i];
    EXPECT_LE(took, least * 3 / 2 + milliseconds(2)) << counts[i];
    EXPECT_GT(took, before) << counts[i];
    before = took;
  }
}

}  // namespace
}  // namespace optireduce::sim
