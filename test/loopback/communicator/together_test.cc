// Two groups of one process: they run side by side, whoever is in them.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

constexpr auto kFloat = DataType::kFloat32;
constexpr auto kSum = ReduceOp::kSum;

// Sixteen ops in flight at once, waited for from the last to the first.
void ReduceSixteen(Communicator& comm, int salt) {
  constexpr int kOps = 16;
  std::vector<std::vector<float>> tensors(kOps);
  std::vector<Work> works;
  for (int op = 0; op < kOps; ++op) {
    auto& tensor = tensors[static_cast<std::size_t>(op)];
    tensor.resize(op % 4 == 0 ? 40'000 : 23);
    FillSteps(tensor, comm.rank(), salt + op);
    works.push_back(comm.AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum));
  }
  for (int op = kOps - 1; op >= 0; --op) {
    WaitFor(works[static_cast<std::size_t>(op)]);
    EXPECT_EQ(WrongSteps(tensors[static_cast<std::size_t>(op)], comm.size(), salt + op), 0U) << op;
  }
}

// Processes 0, 1 and 2 are one group, 1 and 2 another; a thread for each.
TEST(Together, OverlappingGroupsAreBothExact) {
  const SettingList settings = {{"ops_in_flight_max", "16"}, {"fault.loss_pct", "2"}};
  Job all(3, settings);
  Job some(2, settings);
  const auto processes = all.Start([&](int process) {
    if (process != 1) some.CloseListener();
    const auto of_all = all.Make(process);
    const auto of_some = process > 0 ? some.Make(process - 1) : nullptr;
    ASSERT_TRUE(of_all && (of_some || process == 0));
    std::thread other([&] {
      for (int round = 0; of_some && round < 3; ++round) ReduceSixteen(*of_some, 100 + round);
    });
    for (int round = 0; round < 3; ++round) ReduceSixteen(*of_all, round);
    other.join();
  });
  some.CloseListener();
  processes->Join();
}

// Each of two ranks waits in the group in which the other has not called yet: the error of each
// says which call waits for whom.
TEST(Together, GroupsInOppositeOrderEndWithBothCalls) {
  const SettingList settings = {{"op_timeout", Millis(400 * TimeScale())}};
  Job first(2, settings);
  Job second(2, settings);
  const Meeting meeting(2);
  const auto processes = first.Start([&](int rank) {
    if (rank != 0) second.CloseListener();
    const auto a = first.Make(rank);
    const auto b = second.Make(rank);
    ASSERT_TRUE(a && b);
    meeting.Meet();
    std::vector<float> tensor(1000);
    Communicator& own_first = rank == 0 ? *a : *b;
    const std::size_t count = rank == 0 ? 1000 : 10;
    const Report report =
        own_first.AllReduce(tensor.data(), tensor.data(), count, kFloat, kSum).Wait();
    ASSERT_EQ(report.outcome, Report::Outcome::kFailed);
    EXPECT_EQ(report.status.code(), Code::kTimeout);
    const std::string text = report.status.ToString();
    EXPECT_TRUE(Has(text, "op 1 (all_reduce sum of " + std::to_string(count) + " float32")) << text;
    EXPECT_TRUE(Has(text, "rank " + std::to_string(1 - rank) + " (")) << text;
    EXPECT_TRUE(Has(text, "has not called it")) << text;
    meeting.Meet();
  });
  second.CloseListener();
  processes->Join(std::chrono::seconds(20));
}

// The port of a job that runs, given to another job by mistake: that one is refused, and told by
// whom the port is held or the rank is taken; the first one does not notice.
TEST(Together, ASecondJobOnThePortOfTheFirstIsRefused) {
  constexpr int kRanks = 2;
  Job job(kRanks);
  Job other(kRanks);  // for its options; it meets nowhere
  const Meeting meeting(2 * kRanks);
  job.CloseListener();
  other.CloseListener();
  ForkedRanks ranks(2 * kRanks, [&](int process) {
    const int rank = process % kRanks;
    if (process < kRanks) {
      const auto comm = job.Make(rank);
      meeting.Meet();
      ASSERT_TRUE(comm);
      EXPECT_TRUE(comm->Barrier().ok());
      meeting.Meet();
      ReduceSixteen(*comm, 1);
      return;
    }
    meeting.Meet();
    CommunicatorOptions options = other.Options(rank);
    options.master_port = job.port();
    const Result<std::unique_ptr<Communicator>> made = Communicator::Create(options);
    meeting.Meet();
    ASSERT_FALSE(made.ok());
    const std::string text = made.status().ToString();
    EXPECT_TRUE(Has(text, std::to_string(job.port()))) << text;
    EXPECT_TRUE(Has(text, rank == 0 ? "in use" : "rank 1 is taken already by pid ")) << text;
  });
  ranks.Join(std::chrono::seconds(30));
}

}  // namespace
}  // namespace optireduce::testing
