// A program run by a test: its output is collected, and it never outlives the test.
//
// One thread.
#ifndef OPTIREDUCE_TEST_LOOPBACK_BENCH_PROCESS_H_
#define OPTIREDUCE_TEST_LOOPBACK_BENCH_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace optireduce::bench {

struct Finished {
  int exit_code = -1;  // 128 + the signal's number when killed
  bool timed_out = false;
  std::string out;
  std::string err;
};

class Process {
 public:
  // `environment` entries are added to the test's own; no launcher's variable is passed on.
  explicit Process(std::vector<std::string> arguments, std::vector<std::string> environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Direct children, by age.
  std::vector<pid_t> Children() const;
  // What has been written so far.
  std::string Out() const;
  // Until `marker` is in the output, or the process has gone on for `limit`.
  bool AwaitOut(const std::string& marker, std::chrono::seconds limit);
  // Until it ends; after `limit` it is killed.
  Finished Wait(std::chrono::seconds limit);

 private:
  std::string out_path_;
  std::string err_path_;
  pid_t pid_ = -1;
};

// The benchmark under test.
std::vector<std::string> Bench(std::vector<std::string> arguments);
// A file name of this test alone.
std::string TemporaryPath(const std::string& name);
std::string ReadFile(const std::string& path);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_TEST_LOOPBACK_BENCH_PROCESS_H_
