// What is said about the durations of one row's iterations. All of it can be recomputed from the
// samples: percentiles are by nearest rank, so each is one of the samples.
//
// Pure functions, any thread.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_STATISTICS_H_
#define OPTIREDUCE_EXAMPLES_BENCH_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace optireduce::bench {

// Nearest rank: the smallest sample that at least `percent` per cent of all samples do not exceed.
// A percentile beyond what the samples resolve (99 of fewer than 100, 99.9 of fewer than 1000) is
// the maximum. `sorted` is ascending and not empty; percent is in (0, 100].
double Percentile(const std::vector<double>& sorted, double percent);

struct Summary {
  double min = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};

// Of samples in any order; all 0 when there are none.
Summary Summarize(std::vector<double> samples);

// GB (1e9 bytes) a second at a duration in microseconds; 0 when the duration is 0.
double AlgorithmBandwidth(std::uint64_t bytes, double duration_us);

// nccl-tests' bus bandwidth of an all-reduce: what each rank's link carries at least.
double BusBandwidth(double algorithm_bandwidth, int ranks);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_STATISTICS_H_
