// One row of results: one size, type, operator and place, over all ranks and iterations.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_ROW_H_
#define OPTIREDUCE_EXAMPLES_BENCH_ROW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optireduce/communicator.h"
#include "optireduce/types.h"

namespace optireduce::bench {

struct Row {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;

  // One for each iteration, in order: the longest of the ranks' own durations.
  std::vector<double> samples_us;

  // Over all ranks; nothing when no result was checked. `wrong` counts elements of ops that left
  // nothing out; the error is that of all checked ops.
  std::optional<std::uint64_t> wrong;
  std::optional<double> max_relative_error;

  // Over all iterations, as the rank with the most of them saw it.
  std::uint64_t entries = 0;
  std::uint64_t late_entries = 0;
  std::uint64_t lost_entries = 0;
  std::uint64_t divergent_ops = 0;

  double cpu_s_per_gb = 0;  // user and system time of all ranks, during the ops

  // The share of entries left out.
  double loss_pct() const {
    return entries == 0 ? 0
                        : 100 * static_cast<double>(late_entries + lost_entries) /
                              static_cast<double>(entries);
  }
};

// What all rows have in common.
struct RunInfo {
  std::string version;
  std::vector<std::string> hosts;  // by rank
  int world_size = 0;
  std::string transport;
  std::vector<Communicator::SettingView> settings;
};

// What nccl-tests and users call it: "prod", "band".
const char* OpName(ReduceOp op);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_ROW_H_
