// Groups that begin and end: many in a row on one port, peers that are gone before the first op,
// and processes that fork beside them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

constexpr auto kFloat = DataType::kFloat32;
constexpr auto kSum = ReduceOp::kSum;

// Nobody probes for a free port or waits for an old one to become free.
TEST(Starts, FiftyInARowOnOnePort) {
  constexpr int kRanks = 4;
  const int starts = Rounds(50, 10);
  Job job(kRanks);
  job.CloseListener();  // the master listens itself, as under a launcher
  ForkedRanks ranks(kRanks, [&](int rank) {
    for (int start = 0; start < starts; ++start) {
      SCOPED_TRACE("start " + std::to_string(start));
      const auto comm = job.Make(rank);
      ASSERT_TRUE(comm);
      std::vector<float> tensor(1000);
      FillSteps(tensor, rank, start);
      WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum));
      EXPECT_EQ(WrongSteps(tensor, kRanks, start), 0U);
    }
  });
  EXPECT_TRUE(ranks.Join());
}

// A peer that ends without a word between the meeting and the first op: no lazy connection waits.
TEST(Starts, APeerThatIsGoneBeforeTheFirstOpIsNamedAtOnce) {
  Job job(3, {{"op_timeout", "60s"}});
  const Meeting meeting(2);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    if (rank == 1) _exit(0);
    meeting.Meet();
    const std::int64_t start = HostNanos();
    const Status status = comm->Barrier();
    EXPECT_LT(HostNanos() - start, 2'000'000'000LL * TimeScale());
    EXPECT_EQ(status.code(), Code::kPeerLost) << status.ToString();
    EXPECT_TRUE(Has(status.text(), "rank 1 (")) << status.ToString();
    meeting.Meet();
  });
}

// One worker as a data loader has them: it allocates, touches what it inherited, and ends.
[[noreturn]] void Worker(std::unique_ptr<Communicator>& comm, std::vector<float>& tensor) {
  alarm(60);  // instead of a hang
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i);
  const Report refused =
      comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum).Wait();
  comm.reset();
  _exit(refused.outcome == Report::Outcome::kFailed &&
                Has(refused.status.text(), "a forked child must make its own")
            ? 0
            : 1);
}

TEST(Forks, OfWorkersBesideRunningOpsHangNobody) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own locks may be held when a process with threads forks";
#endif
  constexpr int kWorkers = 4;
  const int epochs = Rounds(100, 10);
  Job job(2);
  job.Run([&](int rank) {
    auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(200'000);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      FillSteps(tensor, rank, epoch);
      Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum);
      std::vector<pid_t> workers;
      for (int i = 0; i < kWorkers; ++i) {
        const pid_t pid = fork();
        if (pid == 0) Worker(comm, tensor);
        workers.push_back(pid);
      }
      WaitFor(work);
      EXPECT_EQ(WrongSteps(tensor, 2, epoch), 0U);
      for (const pid_t pid : workers) {
        int status = 0;
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      }
    }
  });
}

}  // namespace
}  // namespace optireduce::testing
