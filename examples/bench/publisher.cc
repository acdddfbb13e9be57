#include "examples/bench/publisher.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "examples/bench/format.h"
#include "examples/bench/result_file.h"

namespace optireduce::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTerminalInterval(100);
constexpr milliseconds kLogInterval(2000);

}  // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + (terminal_ ? milliseconds(0) : kLogInterval)) {}

Progress::~Progress() { Clear(); }

void Progress::Show(const std::string& what) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? kTerminalInterval : kLogInterval);
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "optireduce-bench: %s\n", what.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::Clear() {
  if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

Publisher::Publisher(const Options& options, RunInfo info)
    : options_(options), info_(std::move(info)) {}

Status Publisher::Begin() {
  if (!options_.csv_path.empty()) {
    OR_RETURN_IF_ERROR(CheckWritable(options_.csv_path));
    RemoveStale(options_.csv_path);
    csv_ = CsvHead(options_.percentiles, options_.samples);
  }
  OR_RETURN_IF_ERROR(WriteJson(false));
  return json_on_stdout() ? Status::Ok() : Print(TableHead(info_, options_.percentiles));
}

Status Publisher::Add(Row row) {
  progress_.Clear();
  if (!json_on_stdout()) {
    OR_RETURN_IF_ERROR(
        Print(TableRow(row, info_.world_size, options_.percentiles, options_.samples)));
  }
  if (!options_.csv_path.empty()) {
    csv_ += CsvRow(row, info_.world_size, options_.percentiles, options_.samples);
  }
  rows_.push_back(std::move(row));
  return WriteJson(false);
}

Status Publisher::End() {
  progress_.Clear();
  if (!options_.csv_path.empty()) OR_RETURN_IF_ERROR(ReplaceFile(options_.csv_path, csv_));
  if (json_on_stdout()) return Print(Json(info_, rows_, options_.percentiles, true));
  OR_RETURN_IF_ERROR(WriteJson(true));
  return Print(TableFoot(rows_, info_.world_size));
}

Status Publisher::WriteJson(bool complete) {
  if (options_.json_path.empty() || json_on_stdout()) return Status::Ok();
  return ReplaceFile(options_.json_path, Json(info_, rows_, options_.percentiles, complete));
}

Status Publisher::WriteTrace(const std::string& json) {
  return ReplaceFile(options_.trace_path, json);
}

Status Publisher::Print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return Status::Ok();
  return {Code::kUnavailable, "write to standard output"};
}

}  // namespace optireduce::bench
