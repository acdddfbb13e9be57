// What a running or failed communicator shows to who looks into it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "collectives/state_signal.h"
#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Files PATH.r0 to PATH.r3, gone at the end.
class RankFiles {
 public:
  explicit RankFiles(const std::string& name)
      : path_(::testing::TempDir() + name + "." + std::to_string(getpid())) {}
  ~RankFiles() {
    for (int rank = 0; rank < 4; ++rank) unlink(PathOf(rank).c_str());
  }
  const std::string& path() const { return path_; }
  std::string Text(int rank) const {
    std::ifstream file(PathOf(rank), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Ends when the file has the words; empty after a long time without.
  std::string AwaitText(int rank, const std::string& words) const {
    for (int i = 0; i < 2000; ++i) {
      const std::string text = Text(rank);
      if (Has(text, words) && text.ends_with('\n')) return text;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return "";
  }

 private:
  std::string PathOf(int rank) const { return path_ + ".r" + std::to_string(rank); }
  const std::string path_;
};

void Reduce(Communicator& comm, int ops = 1) {
  std::vector<float> tensor(100'000, 1);
  for (int i = 0; i < ops; ++i) {
    WaitFor(comm.AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                           ReduceOp::kSum));
  }
}

bool IsDefault(int signal_number) {
  struct sigaction action {};
  return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

TEST(State, ASignalShowsEveryCommunicatorOfTheProcess) {
  const RankFiles files("optireduce_state");
  Job job(2, {{"state.signal", "usr1"}, {"state.file", files.path()}});
  job.RunThreads([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    Reduce(*comm, 3);
    if (rank == 0) kill(getpid(), SIGUSR1);
    const std::string text = files.AwaitText(rank, "packets_sent=");
    EXPECT_THAT(text, AllOf(HasSubstr("state of rank " + std::to_string(rank) + " ("),
                            HasSubstr(" of 2, udp 127.0.0.1:"),
                            ContainsRegex("ops: called [0-9]+, ended [0-9]+\n"),
                            ContainsRegex("rank " + std::to_string(1 - rank) +
                                          " \\(127.0.0.1:[0-9]+\\): heard [0-9.]+ ms ago, rtt "
                                          "[0-9.]+ ms, in flight [0-9]+ of [0-9]+, sent"),
                            HasSubstr("ops_agreed=3")));
    Reduce(*comm);  // nobody leaves before the other has looked
  });
  EXPECT_TRUE(IsDefault(SIGUSR1));
}

TEST(State, AnOpenOpSaysWhomItWaitsFor) {
  const RankFiles files("optireduce_open");
  Job job(2, {{"state.signal", "usr2"}, {"state.file", files.path()}});
  job.RunThreads([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    if (rank == 0) {
      std::vector<float> tensor(10, 1);
      Work work = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(),
                                  DataType::kFloat32, ReduceOp::kSum);
      // Once the engine has taken it up.
      for (int i = 0; i < 500 && !Has(files.Text(0), "the oldest waits for rank 1 ("); ++i) {
        kill(getpid(), SIGUSR2);
        std::this_thread::sleep_for(milliseconds(20));
      }
      WaitFor(work);
    } else {
      EXPECT_NE(files.AwaitText(0, "the oldest waits for rank 1 ("), "");
      std::vector<float> tensor(10, 1);
      WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                              ReduceOp::kSum));
    }
  });
}

volatile sig_atomic_t own_signals = 0;

TEST(State, TheProgramsOwnHandlerStays) {
  ASSERT_TRUE(IsDefault(SIGUSR1));
  own_signals = 0;
  signal(SIGUSR1, [](int) { own_signals = own_signals + 1; });
  ::testing::internal::CaptureStderr();
  Job job(2, {{"state.signal", "usr1"}, {"log.level", "warning"}});
  job.RunThreads([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    Reduce(*comm);
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("state.signal: the program handles or ignores signal"));
  raise(SIGUSR1);
  EXPECT_EQ(own_signals, 1);
  signal(SIGUSR1, SIG_DFL);
}

TEST(State, AForkedChildLeavesTheParentAlone) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  // TSan refuses a thread after a fork beside others; ASan's allocator may be locked in the child.
  GTEST_SKIP() << "a child forked beside threads starts one, which this sanitizer cannot do";
#endif
  std::atomic<int> looks{0};
  auto watch = StateSignal::Watch(SIGUSR1, [&] { ++looks; });
  ASSERT_TRUE(watch.ok());
  ForkedRanks child(1, [&](int) {
    raise(SIGUSR1);  // nobody's, and survived
    std::atomic<int> own{0};
    auto other = StateSignal::Watch(SIGUSR1, [&] { ++own; });
    ASSERT_TRUE(other.ok());
    raise(SIGUSR1);
    for (int i = 0; i < 2000 && own == 0; ++i) std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(own, 1);
  });
  child.Join();
  EXPECT_EQ(looks, 0);
  raise(SIGUSR1);
  for (int i = 0; i < 2000 && looks == 0; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(looks, 1);
}

TEST(State, OneLinePerOpOnRequest) {
  ::testing::internal::CaptureStderr();
  Job job(2, {{"log.ops", "on"}, {"log.level", "error"}});
  job.RunThreads([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    Reduce(*comm, 30);  // more than any limit on lines lets through
  });
  const std::string text = ::testing::internal::GetCapturedStderr();
  const std::string line = "op: sum of float32, 100000 elements, exact: agreed in ";
  int lines = 0;
  for (std::size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 60);
}

TEST(State, AnOpThatWaitsLongIsWarnedOfAndGoesOn) {
  ::testing::internal::CaptureStderr();
  Job job(2, {{"op_warning", "100ms"}, {"log.level", "warning"}});
  job.RunThreads([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    Reduce(*comm, 2);
    if (rank == 1) SleepFor(milliseconds(350));
    Reduce(*comm, 2);
  });
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ContainsRegex("warning: no op has ended for [1-9][0-9][0-9] ms, of 300000 ms "
                                  "\\(op_timeout\\); op 3 \\(all_reduce sum of 100000 float32 "
                                  "\\(exact\\)\\) waits for rank 1 \\(.*: has not called it"));
}

TEST(State, AFailureLeavesTheLastEventsOfEachRank) {
  const RankFiles files("optireduce_flight");
  Job job(3, {{"op_timeout", "300ms"}, {"flight_record.file", files.path()}});
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    Reduce(*comm);
    if (rank == 1) {
      std::this_thread::sleep_for(seconds(2));  // never calls
      return;
    }
    EXPECT_FALSE(comm->Barrier().ok());
  });
  for (const int rank : {0, 2}) {
    EXPECT_THAT(files.Text(rank),
                AllOf(HasSubstr("rank 1 ("), HasSubstr("state of rank " + std::to_string(rank)),
                      HasSubstr("flight recorder of rank " + std::to_string(rank)),
                      HasSubstr("op_called"), HasSubstr("group_failed")));
  }
}

TEST(State, ARunThatEndsWellLeavesNoFile) {
  const RankFiles files("optireduce_none");
  Job job(2, {{"flight_record.file", files.path()}});
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    Reduce(*comm);
  });
  EXPECT_EQ(files.Text(0) + files.Text(1), "");
}

TEST(State, PeerStatsTellOfTheLink) {
  for (const char* const loss : {"0", "20"}) {
    Job job(2, {{"fault.loss_pct", loss}});
    job.RunThreads([&](int rank) {
      const auto comm = job.Make(rank);
      ASSERT_TRUE(comm);
      EXPECT_GT(comm->stats().peers[static_cast<std::size_t>(1 - rank)].credit_packets, 0U);
      Reduce(*comm, 5);
      const PeerStats peer = comm->stats().peers[static_cast<std::size_t>(1 - rank)];
      EXPECT_TRUE(peer.heard);
      EXPECT_LT(peer.since_heard, seconds(60));
      EXPECT_GT(peer.smoothed_rtt, Duration{0});
      EXPECT_LE(peer.packets_in_flight, 4096U);
      if (loss == std::string("20")) {
        EXPECT_GT(peer.packets_missing, 0U);
        EXPECT_GT(peer.packets_repeated, 0U);
      }
      Reduce(*comm);
    });
  }
}

}  // namespace
}  // namespace optireduce::testing
