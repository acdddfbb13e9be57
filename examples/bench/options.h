// What one run of the benchmark is to do, after the command line has been read and found sane.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_OPTIONS_H_
#define OPTIREDUCE_EXAMPLES_BENCH_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "examples/bench/values.h"
#include "optireduce/time.h"
#include "optireduce/types.h"

namespace optireduce::bench {

struct Options {
  // What to measure: each size with each kind, in this order, out of place and in place.
  std::vector<std::uint64_t> sizes;
  std::vector<std::pair<DataType, ReduceOp>> kinds;
  std::uint64_t iterations = 0;
  std::uint64_t warm_up_iterations = 0;
  std::uint64_t check_every = 1;  // iterations; 0: never
  Duration time_cap{};            // of the iterations of one row
  ValueKind values = ValueKind::kIntegers;
  std::uint64_t seed = 1;

  // What to say about it.
  std::vector<double> percentiles = {50, 90, 99};
  std::string json_path;  // "-": standard output, in the place of the table
  std::string csv_path;
  std::string trace_path;
  bool samples = false;

  // Who takes part: this many ranks, forked here; 0: whoever the environment names.
  int local_ranks = 0;
  // The library's options that the command line sets.
  std::vector<std::pair<std::string, std::string>> settings;
  std::string config_file;  // empty: what OPTIREDUCE_CONFIG_FILE says

  bool print_config = false;
};

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_OPTIONS_H_
