#include "examples/bench/runner.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>

#include "examples/bench/sizes.h"

namespace optireduce::bench {
namespace {

using Clock = std::chrono::steady_clock;

// The part of the time cap that a warm-up may take.
constexpr int kWarmUpPart = 4;

// User and system time of all threads of this process.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string RowText(const Row& row) {
  return SizeText(row.bytes) + " " + std::string(Name(row.type)) + " " + OpName(row.op) +
         (row.in_place ? " in place" : " out of place");
}

}  // namespace

Runner::Runner(const Options& options, Communicator* communicator, Publisher* publisher)
    : options_(options), communicator_(*communicator), publisher_(publisher) {}

Status Runner::Run() {
  OR_RETURN_IF_ERROR(MakeTensors());
  if (publisher_ != nullptr) OR_RETURN_IF_ERROR(publisher_->Begin());
  if (!options_.trace_path.empty()) {
    bool unused = false;
    OR_RETURN_IF_ERROR(AnyRank(false, &unused));  // all leave the barrier at about one time
    spans_.TurnOn();
  }
  for (const auto& [type, op] : options_.kinds) {
    for (const std::uint64_t bytes : options_.sizes) {
      for (const bool in_place : {false, true}) {
        Row row;
        row.count = bytes / ElementBytes(type);
        row.bytes = row.count * ElementBytes(type);
        row.type = type;
        row.op = op;
        row.in_place = in_place;
        const Status measured = MeasureRow(&row);
        if (!measured.ok()) return measured.Context(RowText(row));
        wrong_ += row.wrong.value_or(0);
        if (publisher_ != nullptr) OR_RETURN_IF_ERROR(publisher_->Add(std::move(row)));
      }
    }
  }
  OR_RETURN_IF_ERROR(PublishTrace());
  return publisher_ != nullptr ? publisher_->End() : Status::Ok();
}

Status Runner::MakeTensors() {
  const std::uint64_t bytes = *std::max_element(options_.sizes.begin(), options_.sizes.end());
  contribution_.reset(new (std::nothrow) std::byte[bytes + 1]());
  result_.reset(new (std::nothrow) std::byte[bytes + 1]());
  if (contribution_ != nullptr && result_ != nullptr) return Status::Ok();
  return {Code::kResource, "no memory for two tensors of " + SizeText(bytes)};
}

Status Runner::MeasureRow(Row* row) {
  const Spans::Scope span(&spans_, RowText(*row));
  const Values values(row->type, row->op, options_.values, communicator_.rank(),
                      communicator_.size(), options_.seed);
  OR_RETURN_IF_ERROR(WarmUp(*row, values));
  Tally tally;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    const Spans::Scope iteration(&spans_, "iteration");
    bool stop = i > 0 && Clock::now() - start > options_.time_cap;
    values.Fill(row->in_place ? result_.get() : contribution_.get(), row->count, ++shift_);
    OR_RETURN_IF_ERROR(AnyRank(stop, &stop));
    if (stop) break;
    const bool check = options_.check_every != 0 && i % options_.check_every == 0;
    OR_RETURN_IF_ERROR(Iterate(*row, values, check, &tally));
    Show(*row, std::to_string(i + 1) + " of " + std::to_string(options_.iterations));
  }
  return Collect(communicator_, tally, row);
}

Status Runner::WarmUp(const Row& row, const Values& values) {
  const Spans::Scope span(&spans_, "warm-up");
  Tally unused;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < options_.warm_up_iterations; ++i) {
    bool stop = Clock::now() - start > options_.time_cap / kWarmUpPart;
    values.Fill(row.in_place ? result_.get() : contribution_.get(), row.count, ++shift_);
    OR_RETURN_IF_ERROR(AnyRank(stop, &stop));
    if (stop) break;
    OR_RETURN_IF_ERROR(Iterate(row, values, false, &unused));
    Show(row, "warm-up");
  }
  return Status::Ok();
}

Status Runner::Iterate(const Row& row, const Values& values, bool check, Tally* tally) {
  const std::byte* const in = row.in_place ? result_.get() : contribution_.get();
  Spans::Scope span(&spans_, "all_reduce");
  const double cpu_before = CpuSeconds();
  const Clock::time_point start = Clock::now();
  Work work = communicator_.AllReduce(in, result_.get(), row.count, row.type, row.op);
  const Report& report = work.Wait();
  const Duration duration = Clock::now() - start;
  tally->cpu_s += CpuSeconds() - cpu_before;
  span.End();
  if (report.outcome == Report::Outcome::kFailed) return report.status;
  tally->durations_us.push_back(static_cast<double>(duration.count()) / 1e3);
  tally->entries += report.entries;
  tally->late_entries += report.late_entries;
  tally->lost_entries += report.lost_entries;
  const bool divergent = report.outcome == Report::Outcome::kDivergent;
  if (divergent) ++tally->divergent_ops;
  if (!check) return Status::Ok();
  const Spans::Scope checking(&spans_, "check");
  ++tally->checked;
  const Values::Findings found = values.Check(result_.get(), row.count, shift_);
  tally->findings.max_relative_error =
      std::max(tally->findings.max_relative_error, found.max_relative_error);
  // What a bounded op leaves out is lost, which it reports, and not wrong.
  const bool whole = !divergent && report.missing_elements == 0 && report.late_entries == 0 &&
                     report.lost_entries == 0;
  if (whole) tally->findings.wrong += found.wrong;
  return Status::Ok();
}

Status Runner::PublishTrace() {
  if (!spans_.on()) return Status::Ok();
  const std::vector<double>& own = spans_.times();
  std::vector<double> all(own.size() * static_cast<std::size_t>(communicator_.size()));
  std::copy(own.begin(), own.end(),
            all.begin() + static_cast<std::ptrdiff_t>(own.size()) * communicator_.rank());
  OR_RETURN_IF_ERROR(
      Combine(communicator_, all.data(), all.size(), DataType::kFloat64, ReduceOp::kSum));
  if (publisher_ == nullptr) return Status::Ok();
  return publisher_->WriteTrace(spans_.Json(all, publisher_->hosts()));
}

Status Runner::AnyRank(bool mine, bool* anyone) {
  std::uint8_t flag = mine ? 1 : 0;
  OR_RETURN_IF_ERROR(Combine(communicator_, &flag, 1, DataType::kUInt8, ReduceOp::kMax));
  *anyone = flag != 0;
  return Status::Ok();
}

void Runner::Show(const Row& row, const std::string& what) {
  if (publisher_ != nullptr) publisher_->progress().Show(RowText(row) + ": " + what);
}

}  // namespace optireduce::bench
