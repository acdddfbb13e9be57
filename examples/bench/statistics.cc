#include "examples/bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace optireduce::bench {

double Percentile(const std::vector<double>& sorted, double percent) {
  const auto count = static_cast<double>(sorted.size());
  // Per cent times count before the division: 99.9 * 1000 / 100 is whole, 0.999 * 1000 may not be.
  // What rounding still leaves above a whole number is not the next rank.
  const double rank = std::ceil(percent * count / 100 - 1e-9);
  const auto index = static_cast<std::size_t>(std::clamp(rank, 1.0, count)) - 1;
  return sorted[index];
}

Summary Summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {samples.front(), Percentile(samples, 50), Percentile(samples, 90),
          Percentile(samples, 99), samples.back()};
}

double AlgorithmBandwidth(std::uint64_t bytes, double duration_us) {
  return duration_us > 0 ? static_cast<double>(bytes) / (duration_us * 1e3) : 0;
}

double BusBandwidth(double algorithm_bandwidth, int ranks) {
  return algorithm_bandwidth * 2 * (ranks - 1) / ranks;
}

}  // namespace optireduce::bench
