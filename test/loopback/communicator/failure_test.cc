// Ranks that die or stop in mid-op, and ranks that do not call the same.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>

#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr auto kFloat = DataType::kFloat32;
constexpr auto kSum = ReduceOp::kSum;
constexpr std::int64_t kSecond = 1'000'000'000;

struct Survivor {
  std::int64_t failed_at_ns = 0;
  std::int64_t op_ns = 0;  // the length of the op that failed
  char text[512] = {};
  char address[64] = {};  // of rank 1, as this rank knows it

  void SetText(const std::string& from) { std::snprintf(text, sizeof text, "%s", from.c_str()); }
};

// Ops until one fails.
void ReduceUntilFailure(Communicator& comm, std::atomic<int>* ops, Survivor* survivor,
                        const std::function<void(int)>& before_wait = {}) {
  const std::string address = comm.rank() == 1 ? "" : comm.stats().peers[1].address;
  std::snprintf(survivor->address, sizeof survivor->address, "%s", address.c_str());
  std::vector<float> tensor(1'000'003);
  for (int op = 0; op < 100'000; ++op) {
    const std::int64_t start = HostNanos();
    Work work = comm.AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum);
    if (before_wait) before_wait(op);
    const Report report = work.Wait();
    if (report.outcome == Report::Outcome::kFailed) {
      survivor->failed_at_ns = HostNanos();
      survivor->op_ns = survivor->failed_at_ns - start;
      survivor->SetText(report.status.ToString());
      EXPECT_FALSE(comm.Barrier().ok()) << "a failed group refuses later ops";
      return;
    }
    ++*ops;
  }
}

// Binds a UDP socket there, which fails while anybody else holds the port.
bool PortIsFree(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(colon + 1))));
  inet_pton(AF_INET, endpoint.substr(0, colon).c_str(), &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

// One exact sum of a job whose master makes its own listener at this port.
void ExpectRerunWorks(Job& job) {
  ForkedRanks ranks(job.ranks(), [&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(10'000);
    FillSteps(tensor, rank, 0);
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum));
    EXPECT_EQ(WrongSteps(tensor, job.ranks(), 0), 0U);
  });
  ranks.Join();
}

TEST(Killed, RankIsNamedAtOnceAndARerunOnItsPortsWorks) {
  constexpr int kRanks = 4;
  Job job(kRanks, {{"op_timeout", "60s"}});
  job.CloseListener();  // the master listens itself, as under a launcher
  const SharedArray<std::atomic<int>> ops(kRanks);
  const SharedArray<Survivor> survivors(kRanks);
  ForkedRanks ranks(kRanks, [&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    const auto r = static_cast<std::size_t>(rank);
    ReduceUntilFailure(*comm, &ops[r], &survivors[r]);
  });
  ASSERT_TRUE(AwaitFlag(ops[1], 3));
  const std::int64_t killed_at = HostNanos();
  ranks.Signal(1, SIGKILL);
  EXPECT_TRUE(ranks.Join(seconds(20)));
  for (const std::size_t rank : {0U, 2U, 3U}) {
    const Survivor& survivor = survivors[rank];
    SCOPED_TRACE("rank " + std::to_string(rank) + ": " + survivor.text);
    EXPECT_TRUE(Has(survivor.text, "rank 1"));
    EXPECT_TRUE(Has(survivor.text, survivor.address));
    EXPECT_LT(survivor.failed_at_ns - killed_at, 2 * kSecond * TimeScale());
    EXPECT_TRUE(PortIsFree(survivor.address));
  }
  ExpectRerunWorks(job);
}

TEST(Killed, MasterIsNamedToo) {
  Job job(3, {{"op_timeout", "60s"}});
  const SharedArray<std::atomic<int>> ops(3);
  const SharedArray<Survivor> survivors(3);
  const auto ranks = job.Start([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    const auto r = static_cast<std::size_t>(rank);
    ReduceUntilFailure(*comm, &ops[r], &survivors[r]);
  });
  ASSERT_TRUE(AwaitFlag(ops[0], 2));
  const std::int64_t killed_at = HostNanos();
  ranks->Signal(0, SIGKILL);
  EXPECT_TRUE(ranks->Join(seconds(20)));
  for (const std::size_t rank : {1U, 2U}) {
    EXPECT_TRUE(Has(survivors[rank].text, "rank 0")) << survivors[rank].text;
    EXPECT_LT(survivors[rank].failed_at_ns - killed_at, 2 * kSecond * TimeScale());
  }
}

TEST(Stopped, RankIsNamedAfterTheOpTimeout) {
  constexpr int kRanks = 4;
  const std::int64_t timeout_ms = 1000 * TimeScale();
  Job job(kRanks, {{"op_timeout", Millis(timeout_ms)}});
  job.CloseListener();
  const SharedArray<std::atomic<int>> ops(kRanks);
  const SharedArray<Survivor> survivors(kRanks);
  ForkedRanks ranks(kRanks, [&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    const auto r = static_cast<std::size_t>(rank);
    ReduceUntilFailure(*comm, &ops[r], &survivors[r], [&](int op) {
      if (rank == 1 && op == 3) raise(SIGSTOP);
    });
  });
  ASSERT_TRUE(ranks.AwaitStopped(1));
  // The others end by themselves; the stopped one is ended by this test.
  for (const std::size_t rank : {0U, 2U, 3U}) {
    const std::int64_t until = HostNanos() + 30 * kSecond * TimeScale();
    while (survivors[rank].failed_at_ns == 0 && HostNanos() < until) SleepFor(milliseconds(5));
    const Survivor& survivor = survivors[rank];
    SCOPED_TRACE("rank " + std::to_string(rank) + ": " + survivor.text);
    EXPECT_TRUE(Has(survivor.text, "rank 1"));
    EXPECT_TRUE(Has(survivor.text, survivor.address));
    EXPECT_GE(survivor.op_ns, timeout_ms * 1'000'000 / 2);
    EXPECT_LT(survivor.op_ns, timeout_ms * 1'000'000 + 2 * kSecond * TimeScale());
  }
  ranks.Signal(1, SIGKILL);
  EXPECT_TRUE(ranks.Join(seconds(20)));
  ExpectRerunWorks(job);
}

// The time of one call, not that of the group: seconds where others have half a minute.
TEST(Timeout, OfACallIsItsOwnAndNamesWhoHasNotCalled) {
  Job job(2, {{"op_timeout", "100s"}});
  SharedFlag over(1);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    EXPECT_TRUE(comm->Barrier().ok());
    if (rank == 1) {
      AwaitFlag(over[0], 1);
      return;
    }
    std::vector<float> tensor(10);
    AllReduceOptions options;
    options.timeout = milliseconds(300);
    const std::int64_t start = HostNanos();
    Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum, options);
    const Report report = work.Wait();
    const std::int64_t took = HostNanos() - start;
    over[0] = 1;
    ASSERT_EQ(report.outcome, Report::Outcome::kFailed);
    EXPECT_EQ(report.status.code(), Code::kTimeout);
    EXPECT_TRUE(Has(report.status.ToString(), "300 ms")) << report.status.ToString();
    EXPECT_TRUE(Has(report.status.ToString(), "rank 1")) << report.status.ToString();
    EXPECT_GE(took, 300'000'000);
    EXPECT_LE(took, 2 * kSecond + 300'000'000);
  });
}

// A stopped rank costs a bounded op its bound and its grace. When it goes on, the job does.
TEST(Stopped, RankHoldsUpNoBoundedOp) {
  constexpr int kRanks = 4;
  constexpr int kOps = 8;
  const std::int64_t bound_ms = 100 * std::min(TimeScale(), 4);
  Job job(kRanks, {{"mode", "bounded"}, {"bounded.bound", Millis(bound_ms)}});
  const SharedFlag done(1);
  const SharedArray<std::int64_t> worst_ns(kRanks);
  const auto ranks = job.Start([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(200'003);
    for (int op = 0; op < kOps; ++op) {
      FillSteps(tensor, rank, op);
      Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum);
      if (rank == 1 && op == 2) raise(SIGSTOP);
      const Report report = WaitFor(std::move(work));
      auto& worst = worst_ns[static_cast<std::size_t>(rank)];
      worst = std::max<std::int64_t>(worst, report.elapsed.count());
      EXPECT_TRUE(report.outcome == Report::Outcome::kAgreed || rank == 1 || op >= 2) << op;
    }
    if (rank != 1) ++done[0];
    AwaitFlag(done[0], kRanks - 1);
    AllReduceOptions exact;
    exact.mode = Mode::kExact;
    FillSteps(tensor, rank, 3);
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum, exact));
    EXPECT_EQ(WrongSteps(tensor, kRanks, 3), 0U);
  });
  ASSERT_TRUE(ranks->AwaitStopped(1));
  EXPECT_TRUE(AwaitFlag(done[0], kRanks - 1));
  ranks->Signal(1, SIGCONT);
  EXPECT_TRUE(ranks->Join());
  for (const std::size_t rank : {0U, 2U, 3U}) {
    std::printf("rank %zu: longest op %.1f ms, bound + grace %lld ms\n", rank,
                static_cast<double>(worst_ns[rank]) / 1e6, static_cast<long long>(2 * bound_ms));
    EXPECT_LT(worst_ns[rank], 2 * bound_ms * 1'000'000 + 50'000'000LL * TimeScale());
  }
}

// What one rank of a job calls, where ranks shall not agree.
struct OddCall {
  std::size_t count = 20'000;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Mode mode = Mode::kExact;
  std::uint64_t key = 0;
  const char* says = "";  // the part of the error that describes it
};

class Mismatch : public ::testing::TestWithParam<OddCall> {};

TEST_P(Mismatch, FailsTheGroupOnAllRanksWithBothSides) {
  constexpr int kRanks = 3;
  const OddCall odd = GetParam();
  Job job(kRanks);
  Job next(kRanks);
  const auto ranks = job.Start([&](int rank) {
    if (rank != 0) next.CloseListener();
    {
      const auto comm = job.Make(rank);
      ASSERT_TRUE(comm);
      std::vector<double> memory(40'000, 1.0);
      const OddCall call = rank == 2 ? odd : OddCall{};
      AllReduceOptions options;
      options.mode = call.mode;
      options.key = call.key;
      const Report report = comm->AllReduce(memory.data(), memory.data(), call.count, call.type,
                                            call.op, options)
                                .Wait();
      EXPECT_EQ(report.outcome, Report::Outcome::kFailed);
      const std::string text = report.status.ToString();
      EXPECT_EQ(report.status.code(), Code::kMismatch) << text;
      EXPECT_TRUE(Has(text, "sum of 20000 float32 (exact)")) << text;
      EXPECT_TRUE(Has(text, odd.says)) << text;
      EXPECT_TRUE(Has(text, "rank 2")) << text;
      const Status later = comm->Barrier();
      EXPECT_TRUE(Has(later.text(), odd.says)) << later.ToString();
    }
    // The process can go on with another group.
    const auto comm = next.Make(rank);
    ASSERT_TRUE(comm);
    EXPECT_TRUE(comm->Barrier().ok());
  });
  next.CloseListener();
  ranks->Join(seconds(20));
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Mismatch,
    ::testing::Values(
        OddCall{.count = 20'001, .says = "sum of 20001 float32 (exact)"},
        OddCall{.count = 0, .says = "sum of 0 float32 (exact)"},
        OddCall{.type = DataType::kFloat64, .says = "sum of 20000 float64 (exact)"},
        OddCall{.op = ReduceOp::kMax, .says = "max of 20000 float32 (exact)"},
        OddCall{.mode = Mode::kBounded, .says = "sum of 20000 float32 (bounded)"},
        OddCall{.key = 7, .says = "sum of 20000 float32 (exact, key 7)"}));

// Ranks that make a different number of calls: the one that is short says goodbye.
TEST(Mismatch, AMissingCallFailsTheOthersWhenItsRankLeaves) {
  Job job(3);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    ASSERT_TRUE(comm->Barrier().ok());
    if (rank == 2) return;
    const Status status = comm->Barrier();
    EXPECT_EQ(status.code(), Code::kPeerLost) << status.ToString();
    EXPECT_TRUE(Has(status.text(), "rank 2")) << status.ToString();
  });
}

}  // namespace
}  // namespace optireduce::testing
