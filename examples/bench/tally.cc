#include "examples/bench/tally.h"

#include <array>

namespace optireduce::bench {

Status Combine(Communicator& communicator, void* values, std::size_t count, DataType type,
               ReduceOp op) {
  AllReduceOptions exact;
  exact.mode = Mode::kExact;
  Work work = communicator.AllReduce(values, values, count, type, op, exact);
  const Report& report = work.Wait();
  return report.outcome == Report::Outcome::kFailed ? report.status : Status::Ok();
}

Status Collect(Communicator& communicator, const Tally& tally, Row* row) {
  row->samples_us = tally.durations_us;
  OR_RETURN_IF_ERROR(Combine(communicator, row->samples_us.data(), row->samples_us.size(),
                             DataType::kFloat64, ReduceOp::kMax));
  std::array<std::uint64_t, 3> most = {tally.late_entries, tally.lost_entries, tally.divergent_ops};
  OR_RETURN_IF_ERROR(
      Combine(communicator, most.data(), most.size(), DataType::kInt64, ReduceOp::kMax));
  std::array<std::uint64_t, 1> sum = {tally.findings.wrong};
  OR_RETURN_IF_ERROR(
      Combine(communicator, sum.data(), sum.size(), DataType::kInt64, ReduceOp::kSum));
  std::array<double, 1> cpu_s = {tally.cpu_s};
  OR_RETURN_IF_ERROR(
      Combine(communicator, cpu_s.data(), cpu_s.size(), DataType::kFloat64, ReduceOp::kSum));
  std::array<double, 1> error = {tally.findings.max_relative_error};
  OR_RETURN_IF_ERROR(
      Combine(communicator, error.data(), error.size(), DataType::kFloat64, ReduceOp::kMax));
  row->entries = tally.entries;
  row->late_entries = most[0];
  row->lost_entries = most[1];
  row->divergent_ops = most[2];
  if (tally.checked > 0) {
    row->wrong = sum[0];
    row->max_relative_error = error[0];
  }
  const double gigabytes =
      static_cast<double>(row->bytes) * static_cast<double>(row->samples_us.size()) / 1e9;
  row->cpu_s_per_gb = gigabytes > 0 ? cpu_s[0] / gigabytes : 0;
  return Status::Ok();
}

}  // namespace optireduce::bench
