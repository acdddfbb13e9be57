// Ranks that die, stall or disagree: everybody ends in time and says why.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/lab/contender.h"
#include "test/loopback/bench/process.h"

namespace optireduce::bench {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr seconds kLong(120);
constexpr seconds kOpTimeout(2);
// What the benchmark gives survivors to notice, and what a loaded machine may add.
constexpr seconds kNotice(3);
constexpr seconds kSlack(10);

// Three ranks that go on until something happens to them.
std::vector<std::string> EndlessRun(const std::string& json = "") {
  std::vector<std::string> arguments = {
      "--np", "3", "-b", "256K", "-e", "256K", "-w", "0", "-n", "10000000", "--time_cap", "10m",
      "--set", "op_timeout=" + std::to_string(kOpTimeout.count()) + "s"};
  if (!json.empty()) arguments.insert(arguments.end(), {"--json", json});
  return Bench(arguments);
}

// A port that nobody listens on.
std::string FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(fd);
  return std::to_string(ntohs(address.sin_port));
}

std::vector<std::string> RankVariables(int rank, int ranks, const std::string& port) {
  return {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks),
          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
          "OPTIREDUCE_OP_TIMEOUT=" + std::to_string(kOpTimeout.count()) + "s"};
}

// What happens when rank 1 of a run gets a signal in mid-op.
Finished SignalRankOne(int signal_number, const std::string& json = "") {
  Process run(EndlessRun(json));
  EXPECT_TRUE(run.AwaitOut("CPU s/GB", kLong));
  const std::vector<pid_t> ranks = run.Children();
  EXPECT_EQ(ranks.size(), 3U);
  if (ranks.size() == 3) kill(ranks[1], signal_number);
  return run.Wait(kOpTimeout + kNotice + kSlack);
}

TEST(Failure, AKilledRankIsNamed) {
  const std::string json = TemporaryPath("json");
  const Finished run = SignalRankOne(SIGKILL, json);
  EXPECT_FALSE(run.timed_out);
  EXPECT_NE(run.exit_code, 0);
  // Nothing that looks like a result is left.
  EXPECT_THAT(ReadFile(json), HasSubstr("\"complete\": false"));
  unlink(json.c_str());
  EXPECT_THAT(run.out, Not(HasSubstr("# wrong elements")));
  EXPECT_THAT(run.err, AllOf(HasSubstr("was killed by signal 9"), HasSubstr("rank 1 (process"),
                             HasSubstr("rank 0 of 3: "), HasSubstr("rank 2 of 3: ")));
}

TEST(Failure, AStoppedRankIsNamedByTheOthers) {
  const Finished run = SignalRankOne(SIGSTOP);
  EXPECT_FALSE(run.timed_out);
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, AllOf(HasSubstr("rank 0 of 3: "), HasSubstr("rank 2 of 3: "),
                             HasSubstr("rank 1 (")));
}

TEST(Failure, AnInterruptedRunLeavesNoCompleteFile) {
  const std::string json = TemporaryPath("json");
  {
    Process run(EndlessRun(json));
    EXPECT_TRUE(run.AwaitOut("CPU s/GB", kLong));
  }  // is killed
  EXPECT_THAT(ReadFile(json), HasSubstr("\"complete\": false"));
  unlink(json.c_str());
}

TEST(Failure, RanksWithDifferentSizesAllSaySo) {
  const std::string port = FreePort();
  Process zero(Bench({"-b", "1K", "-e", "1K", "-n", "3"}), RankVariables(0, 2, port));
  Process one(Bench({"-b", "2K", "-e", "2K", "-n", "3"}), RankVariables(1, 2, port));
  for (Process* const process : {&zero, &one}) {
    const Finished run = process->Wait(kLong);
    EXPECT_FALSE(run.timed_out);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.err, AllOf(HasSubstr("mismatch"), HasSubstr("512"), HasSubstr("256")));
  }
}

TEST(Failure, RanksWithDifferentTypesAllSaySo) {
  const std::string port = FreePort();
  Process zero(Bench({"-b", "1K", "-e", "1K", "-d", "int32"}), RankVariables(0, 2, port));
  Process one(Bench({"-b", "1K", "-e", "1K"}), RankVariables(1, 2, port));
  for (Process* const process : {&zero, &one}) {
    const Finished run = process->Wait(kLong);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.err, AllOf(HasSubstr("mismatch"), HasSubstr("int32"), HasSubstr("float32")));
  }
}

TEST(Launch, SeparateProcessesMeetAsUnderTorchrun) {
  const std::string port = FreePort();
  const std::vector<std::string> arguments = Bench({"-b", "1K", "-e", "1K", "-n", "3"});
  Process one(arguments, RankVariables(1, 2, port));
  Process zero(arguments, RankVariables(0, 2, port));
  const Finished head = zero.Wait(kLong);
  EXPECT_EQ(head.exit_code, 0) << head.err;
  EXPECT_THAT(head.out, HasSubstr("2 ranks on "));
  const Finished other = one.Wait(kLong);
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(other.out, "");
}

TEST(Launch, TheTeachingExampleSums) {
  const std::string port = FreePort();
  const std::vector<std::string> program = {OPTIREDUCE_TEST_BIN_DIR "/allreduce_example"};
  Process one(program, RankVariables(1, 2, port));
  Process zero(program, RankVariables(0, 2, port));
  EXPECT_THAT(zero.Wait(kLong).out, HasSubstr("rank 0 of 2: 3"));
  EXPECT_THAT(one.Wait(kLong).out, HasSubstr("rank 1 of 2: 3"));
}

// The referee's contender, as one process of a group of two. Called in a forked child.
[[noreturn]] void Contend(int rank, const std::string& port, const char* mode) {
  for (const std::string& entry : RankVariables(rank, 2, port)) {
    const std::size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  constexpr std::size_t kCount = 100'000;
  const std::vector<float> in(kCount, static_cast<float>(rank + 1));
  std::vector<float> out(kCount);
  Contender contender(rank, 2, mode, in.data(), out.data(), kCount);
  for (int i = 0; i < 3; ++i) contender.AllReduce();
  contender.communicator.reset();
  _exit(out.front() == 3 && out.back() == 3 ? 0 : 1);
}

TEST(Contender, ReducesInBothModes) {
  for (const char* const mode : {"exact", "bounded"}) {
    const std::string port = FreePort();
    const pid_t other = fork();
    if (other == 0) Contend(1, port, mode);
    EXPECT_EXIT(Contend(0, port, mode), testing::ExitedWithCode(0), "");
    int wait_status = 0;
    EXPECT_EQ(waitpid(other, &wait_status, 0), other);
    EXPECT_TRUE(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
  }
}

TEST(Contender, RefusesModesThatItDoesNotHave) {
  EXPECT_EXIT(Contend(0, "1", "shm"), testing::ExitedWithCode(1), "network only");
  EXPECT_EXIT(Contend(0, "1", "fast"), testing::ExitedWithCode(1), "modes are");
}

}  // namespace
}  // namespace optireduce::bench
