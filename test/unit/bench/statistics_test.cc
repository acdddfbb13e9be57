#include "examples/bench/statistics.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace optireduce::bench {
namespace {

std::vector<double> OneTo(int n) {
  std::vector<double> samples(static_cast<std::size_t>(n));
  std::iota(samples.begin(), samples.end(), 1.0);
  return samples;
}

TEST(Percentile, IsTheNearestRank) {
  EXPECT_EQ(Percentile(OneTo(100), 50), 50);
  EXPECT_EQ(Percentile(OneTo(100), 90), 90);
  EXPECT_EQ(Percentile(OneTo(100), 99), 99);
  EXPECT_EQ(Percentile(OneTo(100), 100), 100);
  EXPECT_EQ(Percentile(OneTo(5), 50), 3);
  EXPECT_EQ(Percentile(OneTo(4), 50), 2);
  EXPECT_EQ(Percentile(OneTo(1), 1), 1);
  EXPECT_EQ(Percentile(OneTo(1000), 99.9), 999);
  EXPECT_EQ(Percentile(OneTo(10000), 99.9), 9990);
}

TEST(Percentile, BeyondTheSamplesIsTheMaximum) {
  for (int n = 1; n < 100; ++n) EXPECT_EQ(Percentile(OneTo(n), 99), n);
  EXPECT_EQ(Percentile(OneTo(999), 99.9), 999);
}

TEST(Summarize, SortsFirst) {
  const Summary summary = Summarize({5, 1, 4, 2, 3, 10, 9, 8, 7, 6});
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.p50, 5);
  EXPECT_EQ(summary.p90, 9);
  EXPECT_EQ(summary.p99, 10);
  EXPECT_EQ(summary.max, 10);
  EXPECT_EQ(Summarize({}).max, 0);
}

TEST(Bandwidth, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(AlgorithmBandwidth(1'000'000, 1000), 1.0);  // 1 MB in 1 ms: 1 GB/s
  EXPECT_DOUBLE_EQ(BusBandwidth(1.0, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusBandwidth(1.0, 1), 0.0);
  EXPECT_EQ(AlgorithmBandwidth(1, 0), 0);
}

}  // namespace
}  // namespace optireduce::bench
