// Callers as they are: they overwrite their tensors at once, call late, have many ops in flight,
// give up, and drop the communicator in the middle of things.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

using std::chrono::milliseconds;
constexpr auto kFloat = DataType::kFloat32;
constexpr auto kSum = ReduceOp::kSum;

// The tensor is the caller's again the instant an op ends, however much its peers still repair.
TEST(Callers, OverwriteTheirTensorsAtOnce) {
  constexpr int kRanks = 4;
  Job job(kRanks, {{"fault.loss_pct", "10"}});
  const int ops = Rounds(60, 10);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> in(30'011);
    std::vector<float> out(30'011);
    for (int op = 0; op < ops; ++op) {
      const bool in_place = op % 2 == 0;
      float* const target = in_place ? in.data() : out.data();
      FillSteps(in, rank, op);
      std::vector<float> copy;
      AllReduceOptions options;
      std::atomic<bool> called{op % 4 >= 2};
      if (op % 4 < 2) {
        options.on_end = [&](const Report&) {
          copy.assign(target, target + in.size());
          std::fill(in.begin(), in.end(), -1e30F);
          std::fill(out.begin(), out.end(), 1e30F);
          called = true;
        };
      }
      WaitFor(comm->AllReduce(in.data(), target, in.size(), kFloat, kSum, options));
      if (op % 4 >= 2) {
        copy.assign(target, target + in.size());
        std::fill(in.begin(), in.end(), -1e30F);
        std::fill(out.begin(), out.end(), 1e30F);
      }
      while (!called) std::this_thread::yield();
      EXPECT_EQ(WrongSteps(copy, kRanks, op), 0U) << "op " << op;
    }
  });
}

struct LateEnd {
  std::int64_t elapsed_ns = 0;
  std::uint64_t hash = 0;
  std::uint64_t lost = 0;
  std::uint64_t own_left_out = 0;
  bool agreed = false;
  std::size_t wrong = 0;  // against the sum of the others
};

// In bounded mode a rank that calls 200 ms late holds nobody up, and gets what the others got.
TEST(Callers, ThatAreLateHoldNobodyUp) {
  constexpr int kRanks = 4;
  constexpr int kLate = 1;
  constexpr int kOps = 3;
  const std::int64_t bound_ms = 100 * std::min(TimeScale(), 4);
  const std::int64_t slack_ns = std::int64_t{50'000'000} * TimeScale();
  Job job(kRanks, {{"mode", "bounded"}, {"bounded.bound", Millis(bound_ms)}});
  const SharedArray<LateEnd> ends(kRanks * kOps);
  const Meeting meeting(kRanks);
  constexpr std::size_t kCount = 100'003;
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(kCount);
    for (int op = 0; op < kOps; ++op) {
      FillSteps(tensor, rank, op);
      meeting.Meet();
      if (rank == kLate) SleepFor(milliseconds(2 * bound_ms));
      const std::int64_t start = HostNanos();
      const Report report =
          WaitFor(comm->AllReduce(tensor.data(), tensor.data(), kCount, kFloat, kSum));
      LateEnd& end = ends[static_cast<std::size_t>(op * kRanks + rank)];
      end.elapsed_ns = HostNanos() - start;
      end.hash = HashOf(tensor.data(), kCount * sizeof(float));
      end.agreed = report.outcome == Report::Outcome::kAgreed;
      end.lost = report.lost_entries;
      end.own_left_out = report.own_left_out_entries;
      end.wrong = WrongSteps(tensor, kRanks, op, kLate);
      meeting.Meet();
    }
    // In time again: it is in again.
    FillSteps(tensor, rank, 5);
    AllReduceOptions exact;
    exact.mode = Mode::kExact;
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), kCount, kFloat, kSum, exact));
    EXPECT_EQ(WrongSteps(tensor, kRanks, 5), 0U);
  });
  for (int op = 0; op < kOps; ++op) {
    for (int rank = 0; rank < kRanks; ++rank) {
      SCOPED_TRACE("op " + std::to_string(op) + " rank " + std::to_string(rank));
      const LateEnd& end = ends[static_cast<std::size_t>(op * kRanks + rank)];
      EXPECT_TRUE(end.agreed);
      EXPECT_EQ(end.hash, ends[static_cast<std::size_t>(op * kRanks)].hash);
      EXPECT_EQ(end.wrong, 0U) << "the sum of all the others";
      EXPECT_EQ(end.lost, kCount);
      EXPECT_EQ(end.own_left_out, rank == kLate ? kCount : 0U);
      // Who is in time has the bound; who is late finds the results ready.
      EXPECT_LE(end.elapsed_ns, (rank == kLate ? bound_ms / 2 : bound_ms) * 1'000'000 + slack_ns);
    }
  }
}

// Below bounded.bytes_min a tensor is exact in bounded mode too: a loss there is not worth it.
TEST(Callers, WaitForSmallTensorsInBoundedMode) {
  constexpr int kRanks = 3;
  Job job(kRanks, {{"mode", "bounded"}, {"bounded.bound", "20ms"}, {"bounded.bytes_min", "4000"}});
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(999);
    FillSteps(tensor, rank, 1);
    if (rank == 1) SleepFor(milliseconds(100));
    const Report report =
        WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum));
    EXPECT_EQ(report.lost_entries, 0U);
    EXPECT_EQ(WrongSteps(tensor, kRanks, 1), 0U);
    EXPECT_TRUE(comm->Barrier().ok());
    // One element more: the late rank is left out.
    tensor.resize(1000);
    FillSteps(tensor, rank, 2);
    if (rank == 1) SleepFor(milliseconds(100 * TimeScale()));
    const Report bounded =
        WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum));
    EXPECT_GT(bounded.lost_entries, 0U);
    EXPECT_TRUE(comm->Barrier().ok());
  });
}

// Gives callers of several threads one order.
class Turns {
 public:
  void Take(int turn, const std::function<void()>& call) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == turn; });
    call();
    ++next_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int next_ = 0;
};

TEST(Callers, HaveManyOpsInFlightFromTwoThreads) {
  constexpr int kRanks = 3;
  constexpr int kOps = 16;
  for (const char* const in_flight : {"8", "1"}) {
    Job job(kRanks, {{"ops_in_flight_max", in_flight}});
    job.Run([&](int rank) {
      const auto comm = job.Make(rank);
      ASSERT_TRUE(comm);
      std::vector<std::vector<float>> tensors(kOps);
      std::atomic<int> callbacks{0};
      AllReduceOptions options;
      options.on_end = [&](const Report& report) {
        callbacks += report.outcome == Report::Outcome::kAgreed ? 1 : 1000;
      };
      Turns turns;
      const auto calls = [&](int first) {
        std::vector<Work> works;
        for (int op = first; op < kOps; op += 2) {
          auto& tensor = tensors[static_cast<std::size_t>(op)];
          tensor.resize(static_cast<std::size_t>(op % 3 == 0 ? 50'000 : 17));
          FillSteps(tensor, rank, op);
          turns.Take(op, [&] {
            works.push_back(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat,
                                            kSum, options));
          });
        }
        for (auto work = works.rbegin(); work != works.rend(); ++work) WaitFor(*work);
      };
      std::thread other([&] { calls(1); });
      calls(0);
      other.join();
      for (int op = 0; op < kOps; ++op) {
        EXPECT_EQ(WrongSteps(tensors[static_cast<std::size_t>(op)], kRanks, op), 0U);
      }
      EXPECT_TRUE(comm->Barrier().ok());
      AwaitFlag(callbacks, kOps);
      EXPECT_EQ(callbacks, kOps);
      const Stats stats = comm->stats();
      EXPECT_EQ(CounterOf(stats, "ops_called"), kOps + 1U);
      EXPECT_EQ(CounterOf(stats, "ops_agreed"), kOps + 1U);
      ASSERT_EQ(stats.peers.size(), static_cast<std::size_t>(kRanks));
      for (int peer = 0; peer < kRanks; ++peer) {
        const PeerStats& of_peer = stats.peers[static_cast<std::size_t>(peer)];
        EXPECT_EQ(of_peer.address.empty(), peer == rank);
        EXPECT_EQ(of_peer.packets_sent > 0, peer != rank);
        EXPECT_EQ(of_peer.packets_received > 0, peer != rank);
      }
    });
  }
}

TEST(Callers, MeetAtABarrier) {
  constexpr int kRanks = 3;
  Job job(kRanks);
  const SharedFlag arrived(1);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    for (int round = 1; round <= 5; ++round) {
      if (round % kRanks == rank) SleepFor(milliseconds(30));
      ++arrived[0];
      EXPECT_TRUE(comm->Barrier().ok());
      EXPECT_GE(arrived[0], round * kRanks) << "somebody has not called it yet";
    }
  });
}

// An op that cannot end, and its communicator goes: it ends with a cause, here and on the others.
TEST(Callers, DestroyACommunicatorWhoseOpsRun) {
  Job job(3);
  job.Run([&](int rank) {
    auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    ASSERT_TRUE(comm->Barrier().ok());
    std::vector<float> tensor(100'000, 1.0F);
    std::atomic<int> callbacks{0};
    AllReduceOptions options;
    options.on_end = [&](const Report&) { ++callbacks; };
    if (rank == 2) {
      // Says goodbye without its call.
      comm.reset();
      return;
    }
    Work work =
        comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum, options);
    if (rank == 0) {
      comm.reset();
      EXPECT_TRUE(work.Finished());
    }
    const Report report = work.Wait();
    EXPECT_EQ(report.outcome, Report::Outcome::kFailed);
    EXPECT_FALSE(report.status.ok());
    EXPECT_FALSE(report.status.text().empty());
    if (rank == 1) {
      EXPECT_EQ(report.status.code(), Code::kPeerLost) << report.status.ToString();
      EXPECT_TRUE(Has(report.status.text(), "rank 2") || Has(report.status.text(), "rank 0"))
          << report.status.ToString();
    }
    comm.reset();
    EXPECT_EQ(callbacks, 1);
  });
}

TEST(Callers, KeepAWorkLongerThanItsCommunicator) {
  Job job(2, {{"fault.loss_pct", "5"}});
  job.Run([&](int rank) {
    auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(50'000);
    FillSteps(tensor, rank, 1);
    Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), kFloat, kSum);
    // Nobody waits: destruction serves until the op has ended.
    comm.reset();
    EXPECT_TRUE(work.Finished());
    Work copy = work;
    EXPECT_EQ(copy.Wait().outcome, Report::Outcome::kAgreed) << copy.Wait().status.ToString();
    EXPECT_EQ(WrongSteps(tensor, 2, 1), 0U);
  });
}

TEST(Callers, AbortOnAllRanks) {
  constexpr int kRanks = 3;
  Job job(kRanks);
  const SharedArray<std::int64_t> aborted_at(1);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    ASSERT_TRUE(comm->Barrier().ok());
    std::vector<float> tensor(10'000, 1.0F);
    Report report;
    if (rank == 1) {
      SleepFor(milliseconds(50));
      aborted_at[0] = HostNanos();
      comm->Abort({Code::kResource, "loss is not a number any more"});
      report = comm->AllReduce(tensor.data(), tensor.data(), 5, kFloat, kSum).Wait();
    } else {
      report = comm->AllReduce(tensor.data(), tensor.data(), 10'000, kFloat, kSum).Wait();
      EXPECT_LT(HostNanos() - aborted_at[0], 2'000'000'000LL * TimeScale());
      EXPECT_TRUE(Has(report.status.text(), "rank 1")) << report.status.ToString();
    }
    EXPECT_EQ(report.outcome, Report::Outcome::kFailed);
    EXPECT_TRUE(Has(report.status.text(), "loss is not a number any more"))
        << report.status.ToString();
    // And so does every later op.
    const Status later = comm->Barrier();
    EXPECT_TRUE(Has(later.text(), "loss is not a number any more")) << later.ToString();
  });
}

}  // namespace
}  // namespace optireduce::testing
