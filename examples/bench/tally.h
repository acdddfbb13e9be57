// What each rank adds up over the iterations of a row, and how the ranks make one row of it.
// Free functions over the communicator's own small exact ops: every rank calls them alike.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_TALLY_H_
#define OPTIREDUCE_EXAMPLES_BENCH_TALLY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/bench/row.h"
#include "examples/bench/values.h"
#include "optireduce/communicator.h"
#include "optireduce/status.h"

namespace optireduce::bench {

struct Tally {
  std::vector<double> durations_us;
  Values::Findings findings;
  std::uint64_t checked = 0;
  std::uint64_t entries = 0;
  std::uint64_t late_entries = 0;
  std::uint64_t lost_entries = 0;
  std::uint64_t divergent_ops = 0;
  double cpu_s = 0;
};

// Reduces in place, over all ranks.
Status Combine(Communicator& communicator, void* values, std::size_t count, DataType type,
               ReduceOp op);

// Fills in what is measured, the same on all ranks: of durations the longest, of processor time and
// wrong elements the sum, of errors and losses the most.
Status Collect(Communicator& communicator, const Tally& tally, Row* row);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_TALLY_H_
