// One job over loopback UDP: what its ranks are told, and how they run, as processes or threads.
#ifndef OPTIREDUCE_TEST_LOOPBACK_COMMUNICATOR_JOB_H_
#define OPTIREDUCE_TEST_LOOPBACK_COMMUNICATOR_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optireduce/communicator.h"
#include "test/support/ranks.h"
#include "test/support/values.h"

namespace optireduce::testing {

using SettingList = std::vector<std::pair<std::string, std::string>>;

class Job {
 public:
  explicit Job(int ranks, SettingList settings = {}, std::string address = "127.0.0.1");

  int ranks() const { return ranks_; }
  int port() const { return listener_.port(); }
  // Hands the listening socket to rank 0; `more` wins over the job's settings.
  CommunicatorOptions Options(int rank, const SettingList& more = {});
  // Null, and a failure of the test, where that does not work.
  std::unique_ptr<Communicator> Make(int rank, const SettingList& more = {});
  void CloseListener() { listener_.Close(); }

  // Each rank's body in a process of its own, to its end.
  void Run(const std::function<void(int rank)>& body, Duration limit = std::chrono::seconds(60));
  // The same, to be joined by the test.
  std::unique_ptr<ForkedRanks> Start(const std::function<void(int rank)>& body);
  // Each rank in a thread of this process.
  void RunThreads(const std::function<void(int rank)>& body);

 private:
  const int ranks_;
  const SettingList settings_;
  const std::string address_;
  Listener listener_;
};

// Milliseconds, as a setting's value.
std::string Millis(std::int64_t ms);
std::uint64_t CounterOf(const Stats& stats, std::string_view name);
// Waits, and expects that it has not failed.
Report WaitFor(Work work);
bool Has(const std::string& text, std::string_view part);

// Random floats of very different sizes: their sum depends on the order.
std::vector<float> RandomFloats(int rank, std::size_t count, std::uint64_t salt);

// A float32 sum whose result is known from (index, ranks), for tensors of any size.
void FillSteps(std::vector<float>& tensor, int rank, int salt);
// Elements that are not the sum of what the ranks filled in, but for rank `left_out` (-1: none).
std::size_t WrongSteps(const std::vector<float>& tensor, int ranks, int salt, int left_out = -1);

}  // namespace optireduce::testing

#endif  // OPTIREDUCE_TEST_LOOPBACK_COMMUNICATOR_JOB_H_
