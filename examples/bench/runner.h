// Measures all rows of a run, on each rank; rank 0 publishes them.
//
// One thread. What the ranks tell each other (when to stop, durations, counts) goes through small
// exact ops of the communicator itself, never timed.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_RUNNER_H_
#define OPTIREDUCE_EXAMPLES_BENCH_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "examples/bench/options.h"
#include "examples/bench/publisher.h"
#include "examples/bench/row.h"
#include "examples/bench/spans.h"
#include "examples/bench/tally.h"
#include "examples/bench/values.h"
#include "optireduce/communicator.h"

namespace optireduce::bench {

class Runner {
 public:
  // `publisher` is null on all ranks but 0. Everything outlives the runner.
  Runner(const Options& options, Communicator* communicator, Publisher* publisher);

  // The first failure, which is one of every rank: a rank that fails alone ends the group.
  Status Run();

  // Elements that were wrong on any rank. The same on all ranks.
  std::uint64_t wrong() const { return wrong_; }

 private:
  Status MakeTensors();
  Status MeasureRow(Row* row);
  Status WarmUp(const Row& row, const Values& values);
  Status Iterate(const Row& row, const Values& values, bool check, Tally* tally);
  // Also the barrier before an iteration: true on every rank when it is so on one.
  Status AnyRank(bool mine, bool* anyone);
  void Show(const Row& row, const std::string& what);
  // Gathers the spans of all ranks at rank 0.
  Status PublishTrace();

  const Options& options_;
  Communicator& communicator_;
  Publisher* const publisher_;
  std::unique_ptr<std::byte[]> contribution_;
  std::unique_ptr<std::byte[]> result_;
  std::uint64_t shift_ = 0;  // of the values: another one for each iteration
  std::uint64_t wrong_ = 0;
  Spans spans_;
};

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_RUNNER_H_
