// Groups that begin and end: many in a row on one port, peers that are gone before the first op or
// stopped at the end, the sockets that a group has, and processes that fork beside it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

// A pause that is shorter than the time of an op costs that time and nothing else.
TEST(Pauses, ShorterThanTheTimeoutEndWell) {
  Job job(3, {{"op_timeout", "100s"}});
  const auto ranks = job.Start([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(100'000);
    for (int op = 0; op < 4; ++op) {
      FillSteps(tensor, rank, op);
      Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum);
      if (rank == 1 && op == 2) raise(SIGSTOP);
      WaitFor(work);
      EXPECT_EQ(WrongSteps(tensor, 3, op), 0U);
    }
  });
  ASSERT_TRUE(ranks->AwaitStopped(1));
  SleepFor(std::chrono::milliseconds(300));
  ranks->Signal(1, SIGCONT);
  EXPECT_TRUE(ranks->Join());
}

// Who comes back after the others have given up learns it, and what it still sends does not reach
// the group that they have made without it.
TEST(Pauses, LongerThanTheTimeoutEndForThePausedRankToo) {
  Job job(3, {{"op_timeout", Millis(500 * TimeScale())}});
  Job next(2);
  const SharedFlag without_it(1);
  const auto ranks = job.Start([&](int rank) {
    if (rank != 0) next.CloseListener();
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    ASSERT_TRUE(comm->Barrier().ok());
    std::vector<float> tensor(300'000, 1.0F);
    Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum);
    if (rank == 1) raise(SIGSTOP);
    const Report report = work.Wait();
    EXPECT_EQ(report.outcome, Report::Outcome::kFailed);
    EXPECT_TRUE(Has(report.status.text(), "rank 1 (") || rank == 1) << report.status.ToString();
    EXPECT_FALSE(comm->Barrier().ok());
    if (rank == 1) return;
    const auto survivors = next.Make(rank / 2);
    ASSERT_TRUE(survivors);
    ++without_it[0];
    for (int op = 0; op < 60; ++op) {
      FillSteps(tensor, survivors->rank(), op);
      WaitFor(survivors->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum));
      EXPECT_EQ(WrongSteps(tensor, 2, op), 0U);
    }
  });
  next.CloseListener();
  ASSERT_TRUE(ranks->AwaitStopped(1));
  EXPECT_TRUE(AwaitFlag(without_it[0], 2));
  ranks->Signal(1, SIGCONT);
  EXPECT_TRUE(ranks->Join());
}

// Who leaves does not wait for a peer that does nothing any more: serving has its limit, and so has
// the wait for goodbyes.
TEST(Ends, BesideAStoppedPeerTakeNoLongerThanTheirLimits) {
  Job job(2);
  const SharedFlag left(1);
  const auto ranks = job.Start([&](int rank) {
    auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    ASSERT_TRUE(comm->Barrier().ok());
    std::vector<float> tensor(500'000);
    if (rank == 1) raise(SIGSTOP);
    Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum);
    const std::int64_t start = HostNanos();
    comm.reset();
    // A second for each of the two, and what the machine adds.
    EXPECT_LT(HostNanos() - start, 4'000'000'000LL * TimeScale());
    EXPECT_EQ(work.Wait().outcome, Report::Outcome::kFailed);
    left[0] = 1;
  });
  ASSERT_TRUE(ranks->AwaitStopped(1));
  EXPECT_TRUE(AwaitFlag(left[0], 1));
  ranks->Signal(1, SIGKILL);
  EXPECT_TRUE(ranks->Join());
}

// The local addresses of this process's sockets of the internet, as texts.
std::vector<std::string> LocalAddresses() {
  std::vector<std::string> out;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage storage{};
    socklen_t bytes = sizeof storage;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (storage.ss_family == AF_INET) {
      const auto* in4 = reinterpret_cast<const sockaddr_in*>(&storage);
      out.emplace_back(inet_ntop(AF_INET, &in4->sin_addr, text, sizeof text));
    } else if (storage.ss_family == AF_INET6) {
      const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&storage);
      out.emplace_back(inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text));
    }
  }
  return out;
}

TEST(Sockets, AreAllBoundToTheChosenAddress) {
  for (const char* const address : {"127.0.0.1", "::1"}) {
    Job job(3, {}, address);
    job.CloseListener();  // the master makes its own
    ForkedRanks ranks(3, [&](int rank) {
      const auto comm = job.Make(rank);
      ASSERT_TRUE(comm);
      const std::vector<std::string> bound = LocalAddresses();
      // A datagram port, and the ways to the master; there also its listener.
      EXPECT_GE(bound.size(), rank == 0 ? 4U : 2U);
      for (const std::string& local : bound) EXPECT_EQ(local, address);
      EXPECT_TRUE(comm->Barrier().ok());
    });
    EXPECT_TRUE(ranks.Join());
  }
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
