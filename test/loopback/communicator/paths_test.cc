// What the paths between the ranks carry: found before the first op, or named. In network
// namespaces whose loopback swallows packets; skipped where the process may not make one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

// Runs `body` in a new network namespace after these shell commands; false where that is not
// allowed. On the thread of the test: a process that forks its ranks has no other.
bool InNamespace(const std::string& commands, const std::function<void()>& body) {
  const int before = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (before < 0) return false;
  bool entered = false;
  if (unshare(CLONE_NEWNET) == 0) {
    // NOLINTNEXTLINE(cert-env33-c): commands of this file
    entered = std::system(("set -e; ip link set lo up; " + commands).c_str()) == 0;
    if (entered) body();
    EXPECT_EQ(setns(before, CLONE_NEWNET), 0);
  }
  close(before);
  return entered;
}

std::string Rules(const std::string& rules) {
  return "nft add table inet t; "
         "nft 'add chain inet t out { type filter hook output priority 0; }'; " +
         rules;
}

// Each rank expects this in the description of its transport, and the sum to be right.
void ExpectExactOver(Job& job, std::string_view transport) {
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    EXPECT_TRUE(Has(comm->transport(), transport)) << comm->transport();
    std::vector<float> tensor(300'001);
    FillSteps(tensor, rank, 1);
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                            ReduceOp::kSum));
    EXPECT_EQ(WrongSteps(tensor, job.ranks(), 1), 0U);
    EXPECT_GT(CounterOf(comm->stats(), "probes_sent"), 0U);
  });
}

TEST(Paths, OfUsualSizeAreUsedAtOnce) {
  Job job(3);
  ExpectExactOver(job, "path MTU 1500 ");
}

TEST(Paths, OfAnInterfaceThatIsNarrowAreUsedAsTheyAre) {
  const bool entered = InNamespace("ip link set lo mtu 1400", [] {
    Job job(3);
    ExpectExactOver(job, "path MTU 1400 ");
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace";
}

TEST(Paths, ThatSwallowLargePacketsInOneDirectionAreFound) {
  const std::string rule = "nft add rule inet t out ip saddr 127.0.0.3 ip daddr 127.0.0.2 "
                           "ip length gt 1390 drop";
  const bool entered = InNamespace(Rules(rule), [] {
    Job job(3);
    job.Run([&](int rank) {
      // The rule would see a super-packet whole, where a network sees its packets.
      const auto comm = job.Make(
          rank, {{"net.bind", "127.0.0." + std::to_string(rank + 2)}, {"udp.gso", "off"}});
      ASSERT_TRUE(comm);
      EXPECT_TRUE(Has(comm->transport(), "path MTU 1380 ")) << comm->transport();
      std::vector<float> tensor(300'001);
      FillSteps(tensor, rank, 1);
      WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                              ReduceOp::kSum));
      EXPECT_EQ(WrongSteps(tensor, job.ranks(), 1), 0U);
    });
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace with nftables";
}

TEST(Paths, OfOneRankWithALowerLimitLowerAll) {
  Job job(3);
  job.Run([&](int rank) {
    const auto comm = job.Make(
        rank, {{"path_mtu", rank == 1 ? "1280" : "9000"}, {"op_timeout", "10s"}});
    ASSERT_TRUE(comm);
    EXPECT_TRUE(Has(comm->transport(), "path MTU 1280 ")) << comm->transport();
    std::vector<float> tensor(100'003);
    FillSteps(tensor, rank, 2);
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                            ReduceOp::kSum));
    EXPECT_EQ(WrongSteps(tensor, job.ranks(), 2), 0U);
  });
}

TEST(Paths, ThatCarryNothingAreNamedOnEveryRank) {
  const std::string rule =
      "nft add rule inet t out ip saddr 127.0.0.3 ip daddr 127.0.0.4 meta l4proto udp drop";
  const bool entered = InNamespace(Rules(rule), [] {
    Job job(3);
    job.Run([&](int rank) {
      const Result<std::unique_ptr<Communicator>> made = Communicator::Create(
          job.Options(rank, {{"net.bind", "127.0.0." + std::to_string(rank + 2)}}));
      ASSERT_FALSE(made.ok());
      const std::string text = made.status().ToString();
      EXPECT_TRUE(Has(text, "127.0.0.3:")) << text;
      EXPECT_TRUE(Has(text, "127.0.0.4:")) << text;
      EXPECT_TRUE(Has(text, "gets no answer over UDP from")) << text;
    }, std::chrono::seconds(40));
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace with nftables";
}

}  // namespace
}  // namespace optireduce::testing
