// Where the results of rank 0 go as they come: the table on standard output, the JSON and the CSV
// in their files, and a progress line on standard error.
//
// One thread.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_PUBLISHER_H_
#define OPTIREDUCE_EXAMPLES_BENCH_PUBLISHER_H_

#include <chrono>
#include <string>
#include <vector>

#include "examples/bench/options.h"
#include "examples/bench/row.h"
#include "optireduce/status.h"

namespace optireduce::bench {

// On a terminal one line that is written over; elsewhere a line now and then.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(const std::string& what);
  void Clear();

 private:
  const bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

class Publisher {
 public:
  Publisher(const Options& options, RunInfo info);

  Status Begin();
  Status Add(Row row);
  Status End();
  // What --trace asks for.
  Status WriteTrace(const std::string& json);
  const std::vector<std::string>& hosts() const { return info_.hosts; }

  Progress& progress() { return progress_; }

 private:
  bool json_on_stdout() const { return options_.json_path == "-"; }
  Status WriteJson(bool complete);
  Status Print(const std::string& text);

  const Options& options_;
  const RunInfo info_;
  std::vector<Row> rows_;
  std::string csv_;
  Progress progress_;
};

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_PUBLISHER_H_
