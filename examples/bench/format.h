// The results as a table for people, and as JSON and CSV for programs.
//
// Pure functions, any thread. GB is 1e9 bytes, bandwidths are those of the median.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_FORMAT_H_
#define OPTIREDUCE_EXAMPLES_BENCH_FORMAT_H_

#include <span>
#include <string>
#include <vector>

#include "examples/bench/row.h"

namespace optireduce::bench {

// "p50", "p99.9".
std::string PercentileName(double percent);

// Lines that start with '#': who ran, how, and the names and units of the columns.
std::string TableHead(const RunInfo& info, const std::vector<double>& percentiles);
std::string TableRow(const Row& row, int world_size, const std::vector<double>& percentiles,
                     bool samples);
std::string TableFoot(std::span<const Row> rows, int world_size);

// One object; docs/benchmark.md describes it. `complete` is false as long as rows are missing.
std::string Json(const RunInfo& info, std::span<const Row> rows,
                 const std::vector<double>& percentiles, bool complete);

std::string CsvHead(const std::vector<double>& percentiles, bool samples);
std::string CsvRow(const Row& row, int world_size, const std::vector<double>& percentiles,
                   bool samples);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_FORMAT_H_
